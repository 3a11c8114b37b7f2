"""Best fit: each job where it leaves the fewest CPUs unused."""

from typing import Any

from outrider.api import NO_MACHINE, NOWHERE, Choice, Job, Policy, SiteView


class BestFit(Policy):
    """The oldest job that fits goes to the free machine with the fewest CPUs left for it.

    This keeps wide machines free for wide jobs. The queue discipline decides which jobs may start
    before one that fits nowhere now; under `first_fit` a wide job can wait long at a busy site.
    """

    name = "best_fit"
    description = "oldest job that fits, on the free machine that it fills best"
    api_version = 1
    features = ("cpus",)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """The tightest machine that is left in this pass."""
        machine = view.tightest(job.spec.cpus)
        return Choice(machine, "best_fit" if machine != NOWHERE else NO_MACHINE, 1.0)

    def explain(self, job: Job, view: SiteView) -> str:
        """What it waits for."""
        wide = len(view.fitting(job.spec.cpus))
        return f"it needs {job.spec.cpus} CPUs on one machine; {wide} free machines have them now"
