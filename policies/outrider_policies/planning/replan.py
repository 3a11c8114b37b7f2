"""Reallocation without learning: CPUs go to the jobs of highest utility per CPU-second."""

from collections.abc import Iterable

from outrider.api import Move, Queue, SiteView
from outrider_policies.planning.density import allocate_by_density
from outrider_policies.planning.machine_plan import MachinePlan
from outrider_policies.planning.open_machines import OpenMachines
from outrider_policies.planning.planner import RoundPlanner
from outrider_policies.planning.queued_jobs import QueuedJobs
from outrider_policies.planning.settings import LengthSettings


class Replan(RoundPlanner[LengthSettings]):
    """Reallocates the CPUs of each machine to its runs and the queued jobs, by utility density.

    Density is utility per CPU-second. Runs that get no CPUs are preempted, the last job that gets
    any is shrunk to what is left, and jobs that can no longer earn anything get none
    (`outrider_policies.planning.density`). This is the best single decision, without looking
    ahead: the baseline for a policy that does.
    """

    name = "replan"
    description = "reallocates all CPUs at every change, to the jobs that earn most a CPU-second"
    api_version = 1

    def rearrange(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """Reallocate machine by machine; a job is placed on the first that has CPUs for it."""
        queued = QueuedJobs(queue, view, self.lengths)
        plans = []
        for machine in OpenMachines(view, self.lengths).to_reallocate(queued):
            plan = MachinePlan(machine, view, self.lengths)
            allocate_by_density(plan, queued)
            plans.append(plan)
        return [move for plan in plans for move in plan.moves()]
