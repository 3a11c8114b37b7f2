"""A policy whose wishes are plain to see: alice's jobs wait, bob's run in cluster B."""

from pathlib import Path
from typing import Any

from outrider.api import NOWHERE, Choice, Job, Policy, SiteView

REPOSITORY = Path(__file__).resolve().parents[2]


class ByUser(Policy):
    """Keeps alice's jobs, or those of the account alice, in the queue; starts others in B."""

    name = "by_user"
    description = "for tests: alice's jobs wait, bob's run in cluster B"
    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Alice's jobs wait for as long as may be; others start in B, if there is room."""
        is_alices = job.spec.user.startswith("alice") or job.spec.vo == "alice"
        if is_alices and may_defer:
            return Choice(NOWHERE, "later", 1.0)
        try:
            return Choice(
                view.draw_in(list(view.cluster_names).index("B"), self.rng), "group_b", 1.0
            )
        except (LookupError, ValueError):
            return Choice(NOWHERE, "no_machine", 1.0)


def install_policy(folder: Path) -> dict[str, str]:
    """What the environment must say for a daemon to find the policy `by_user`."""
    info = folder / "by_user-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: by-user\nVersion: 1.0\n")
    points = "[outrider.policies]\nby_user = tests.peers.by_user_policy:ByUser\n"
    (info / "entry_points.txt").write_text(points)
    return {"PYTHONPATH": f"{folder}:{REPOSITORY}"}
