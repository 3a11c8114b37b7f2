"""Policies whose decisions are easy to recognise, and differ from a batch system's."""

from pathlib import Path
from typing import Any

from outrider.api import NOWHERE, Choice, Job, Orders, Policy, SiteView

REPOSITORY = Path(__file__).resolve().parents[2]


class ByUser(Policy):
    """Policy that defers jobs of alice, or of the account alice, and starts others in B."""

    name = "by_user"
    description = "for tests: alice's jobs wait, bob's run in cluster B"
    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Defer alice's jobs as long as possible; start others in B, if they fit."""
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
    """Policy that starts the job first that was submitted last."""

    name = "youngest_first"
    description = "for tests: the job that was submitted last starts first"
    api_version = 1

    def order(self, job: Job, view: SiteView) -> float:
        """Return a smaller value for a later submission."""
        return -(job.submit_s or 0.0)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose any free machine."""
        return Choice(view.draw(self.rng), "youngest", 1.0)


def install_policies(folder: Path) -> dict[str, str]:
    """Return environment variables by which a daemon finds these policies."""
    info = folder / "peers-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: peers\nVersion: 1.0\n")
    module = "tests.peers.plain_policies"
    points = f"by_user = {module}:ByUser\nyoungest_first = {module}:YoungestFirst\n"
    (info / "entry_points.txt").write_text(f"[outrider.policies]\n{points}")
    return {"PYTHONPATH": f"{folder}:{REPOSITORY}"}
