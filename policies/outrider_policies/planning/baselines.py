"""Planning without learning: preempt and shrink always, or reallocate by utility density."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from outrider.api import Move, Queue, SiteView
from outrider_policies.planning.machine_plan import (
    Candidates,
    MachinePlan,
    allocate_by_density,
    grow_and_fit,
    place_candidate,
    preemption_candidates,
    shrink_candidates,
)
from outrider_policies.planning.open_machines import OpenMachines
from outrider_policies.planning.planner import LengthSettings, PlanningSettings, RoundPlanner
from outrider_policies.planning.queued_jobs import QueuedJobs

# -- aggressive ------------------------------------------------------------------------------------
# Vengerov's baseline: preempt and shrink whenever jobs are queued, without learning.


class Aggressive(RoundPlanner[PlanningSettings]):
    """Policy that fits best, then preempts for the smallest queued job, or shrinks it.

    Vengerov 2005, section 5, second row of figure 2: "considers preemptive scheduling followed by
    oversubscribing", with the smallest job, which the paper found better than the one of the
    highest utility. Of equally small jobs, the one of the highest unit utility is taken. A job
    without utility left preempts no others. This is the baseline for a learned policy.
    """

    name = "aggressive"
    description = "preempts for, or shrinks, the smallest queued job whenever one is queued"
    api_version = 1
    presets: ClassVar = {
        "over": {"preempt": False},
        "preempt": {"oversubscribe": False},
    }

    def rearrange(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """Plan best fit over all machines, then preempt and shrink on each."""
        queued = QueuedJobs(queue, view, self.lengths)
        machines = OpenMachines(view, self.lengths)
        plans: dict[int, MachinePlan] = {}
        for machine in machines.to_fill(queued):
            plans[machine] = MachinePlan(machine, view, self.lengths)
            grow_and_fit(plans[machine], queued)
        for machine in machines.to_force(queued, plans):
            if machine not in plans:
                plans[machine] = MachinePlan(machine, view, self.lengths)
            self._add_smallest(plans[machine], queued)
        return [move for machine in sorted(plans) for move in plans[machine].moves()]

    def _add_smallest(self, plan: MachinePlan, queued: QueuedJobs) -> None:
        if self.settings.preempt:
            _take_smallest(preemption_candidates(plan, queued), plan, queued)
        if self.settings.oversubscribe:
            _take_smallest(shrink_candidates(plan, queued), plan, queued)


def _take_smallest(candidates: Candidates, plan: MachinePlan, queued: QueuedJobs) -> None:
    if len(candidates.rows):
        requested = queued.requested[candidates.rows]
        smallest = int(np.lexsort((-candidates.units, requested))[0])
        place_candidate(plan, queued, candidates, smallest)


# -- replan ----------------------------------------------------------------------------------------
# Reallocation without learning: CPUs go to the jobs of highest utility per CPU-second.


class Replan(RoundPlanner[LengthSettings]):
    """Policy that reallocates each machine's CPUs to its runs and queued jobs by utility density.

    Density is utility per CPU-second. Runs that get no CPUs are preempted, the last job that gets
    any is shrunk to what is left, and jobs that can no longer earn anything get none
    (`outrider_policies.planning.machine_plan`). This is the best single decision, without looking
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
