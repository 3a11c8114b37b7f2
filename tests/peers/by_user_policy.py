"""A policy whose wishes are plain to see: alice's jobs wait, bob's run in cluster B."""

from typing import Any

from outrider.api import NOWHERE, Choice, Job, Policy, SiteView


class ByUser(Policy):
    """Keeps alice's jobs in the queue and starts bob's in cluster B."""

    name = "by_user"
    description = "for tests: alice's jobs wait, bob's run in cluster B"
    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Alice's jobs wait for as long as may be; others start in B, if there is room."""
        if job.spec.user.startswith("alice") and may_defer:
            return Choice(NOWHERE, "later", 1.0)
        try:
            return Choice(
                view.draw_in(list(view.cluster_names).index("B"), self.rng), "group_b", 1.0
            )
        except (LookupError, ValueError):
            return Choice(NOWHERE, "no_machine", 1.0)
