"""Vengerov's baseline: preempt and shrink whenever jobs are queued, without learning."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from outrider.api import Move, Queue, SiteView
from outrider_policies.planning.best_fit_stage import grow_and_fit
from outrider_policies.planning.forcing import (
    Candidates,
    place_candidate,
    preemption_candidates,
    shrink_candidates,
)
from outrider_policies.planning.machine_plan import MachinePlan
from outrider_policies.planning.open_machines import OpenMachines
from outrider_policies.planning.planner import RoundPlanner
from outrider_policies.planning.queued_jobs import QueuedJobs
from outrider_policies.planning.settings import PlanningSettings


class Aggressive(RoundPlanner[PlanningSettings]):
    """Best fit; then the smallest queued job preempts others, or is shrunk to the free CPUs.

    Vengerov 2005, section 5, second row of figure 2: "considers preemptive scheduling followed by
    oversubscribing", with the smallest job, which the paper found better than the one of the
    highest utility. Of equally small jobs, the one of the highest unit utility is taken; a job
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
        """Best fit over all machines, then preempting and shrinking on each."""
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
