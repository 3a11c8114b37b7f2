"""Best fit: each job where it leaves the fewest CPUs unused."""

from collections.abc import Hashable
from typing import Any

from outrider.api import NO_MACHINE, NOWHERE, Choice, Groups, Job, Policy, SiteView


class BestFit(Groups, Policy):
    """The oldest job that fits goes to the free machine with the fewest CPUs left for it.

    Wide machines stay whole for wide jobs. A job that fits on no free machine waits until one
    frees, and those behind it may start before it: without reservations a wide job can wait long
    at a busy site.
    """

    name = "best_fit"
    description = "oldest job that fits, on the free machine that it fills best"
    api_version = 1
    features = ("cpus",)

    def group_key(self, job: Job, view: SiteView) -> Hashable:
        """Jobs of equal width are alike."""
        return job.spec.cpus

    def evaluate_group(self, key: Any, view: SiteView) -> list[int]:
        """Free machines that are wide enough, the best fit last; `choose` takes from the end."""
        return list(view.fitting(key))

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """The tightest machine that no other width took in this round."""
        if evaluation is None:  # a site with a backfill rule asks about one job at a time
            evaluation = self.evaluate_group(job.spec.cpus, view)
        while evaluation:
            machine = evaluation.pop()
            if view.is_free(machine):
                return Choice(machine, "best_fit", 1.0)
        return Choice(NOWHERE, NO_MACHINE)

    def explain(self, job: Job, view: SiteView) -> str:
        """What it waits for."""
        wide = len(view.fitting(job.spec.cpus))
        return f"it needs {job.spec.cpus} CPUs on one machine; {wide} free machines have them now"
