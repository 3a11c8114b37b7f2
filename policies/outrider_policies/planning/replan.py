"""No learning, no loyalty: at every change the CPUs go to the work that earns the most a second."""

from collections.abc import Iterable

from outrider.api import Move, Queue, SiteView
from outrider_policies.planning.best_fit_stage import open_plans
from outrider_policies.planning.density import allocate_by_density
from outrider_policies.planning.planner import RoundPlanner
from outrider_policies.planning.queued_jobs import QueuedJobs
from outrider_policies.planning.settings import LengthSettings


class Replan(RoundPlanner[LengthSettings]):
    """Gives the CPUs of each machine anew to its jobs and those that wait, in order of density.

    Runs that do not come in again are preempted, the last job that comes in is shrunk onto what
    is left, and what could not earn anything any more is never chosen
    (`outrider_policies.planning.density`). The best there is for one decision alone: a policy that
    looks ahead must be shown against it.
    """

    name = "replan"
    description = "gives all CPUs anew at every change, to the jobs that earn most a CPU-second"
    api_version = 1

    def rearrange(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """Machine by machine; a job is given to the first that takes it."""
        queued = QueuedJobs(queue, view, self.lengths)
        plans = open_plans(view, self.lengths)
        for plan in plans:
            allocate_by_density(plan, queued)
        return [move for plan in plans for move in plan.moves()]
