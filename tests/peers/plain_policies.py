"""Policies whose wishes are plain to see, and are not what a batch system does by itself."""

from pathlib import Path
from typing import Any

from outrider.api import NOWHERE, Choice, Job, Orders, Policy, SiteView

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


class YoungestFirst(Orders, Policy):
    """Starts the job that was submitted last before all others."""

    name = "youngest_first"
    description = "for tests: the job that was submitted last starts first"
    api_version = 1

    def order(self, job: Job, view: SiteView) -> float:
        """The later submitted, the sooner."""
        return -(job.submit_s or 0.0)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """On any machine."""
        return Choice(view.draw(self.rng), "youngest", 1.0)


def install_policies(folder: Path) -> dict[str, str]:
    """What the environment must say for a daemon to find these policies."""
    info = folder / "peers-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: peers\nVersion: 1.0\n")
    module = "tests.peers.plain_policies"
    points = f"by_user = {module}:ByUser\nyoungest_first = {module}:YoungestFirst\n"
    (info / "entry_points.txt").write_text(f"[outrider.policies]\n{points}")
    return {"PYTHONPATH": f"{folder}:{REPOSITORY}"}
