"""Ways to start a job that does not fit: preempt others, or shrink it (Vengerov 2005, 4.1)."""

from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider_policies.planning.best_fit_stage import fit_best
from outrider_policies.planning.machine_plan import MachinePlan, Run
from outrider_policies.planning.queued_jobs import QueuedJobs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

FORCED: Final = "forced"
SHRUNK: Final = "shrunk"


class Candidates(NamedTuple):
    """Queued jobs that could be placed on a machine.

    Attributes:
        rows: (n,) rows in the queue.
        cpus: (n,) CPUs that each would get.
        remaining_s: (n,) seconds until it would complete on these.
        units: (n,) unit utility at that time.
        preempted_n: (n,) runs that would be suspended for it, lowest remaining utility first.
    """

    rows: Rows
    cpus: Ints
    remaining_s: Floats
    units: Floats
    preempted_n: Rows

    def where(self, mask: NDArray[np.bool_]) -> "Candidates":
        """The candidates for which the (n,) mask is true."""
        return Candidates(
            self.rows[mask],
            self.cpus[mask],
            self.remaining_s[mask],
            self.units[mask],
            self.preempted_n[mask],
        )


def by_remaining_utility(plan: MachinePlan) -> list[Run]:
    """The runs of a machine in the order of suspension: lowest remaining utility first."""
    return sorted(plan.runs, key=lambda run: run.remaining_utility)


def preemption_candidates(plan: MachinePlan, queued: QueuedJobs) -> Candidates:
    """Jobs that could run on all requested CPUs if other runs were suspended (steps 4 and 5).

    A job may only preempt runs of lower remaining utility than its own: of two jobs that are both
    worth nothing any more, neither should preempt the other.
    """
    runs = by_remaining_utility(plan)
    free_after = np.array([*accumulate((run.cpus for run in runs), initial=plan.free)])
    most = min(plan.cpus, int(free_after[-1]))  # less than all where a machine is overbooked
    can = queued.may_run_on(plan.machine, plan.left) & (queued.requested <= most)
    (rows,) = can.nonzero()
    requested = queued.requested[rows]
    preempted_n = free_after.searchsorted(requested)
    all_remaining_s, all_units = queued.at_speed(plan.speed)
    remaining_s, units = all_remaining_s[rows], all_units[rows]
    highest = np.array([-np.inf, *(run.remaining_utility for run in runs)])[preempted_n]
    candidates = Candidates(rows, requested, remaining_s, units, preempted_n)
    return candidates.where(highest < units / remaining_s)


def shrink_candidates(plan: MachinePlan, queued: QueuedJobs) -> Candidates:
    """Jobs on the free CPUs, even if these are fewer than requested (step 8)."""
    rows = np.empty(0, np.intp)
    if plan.free:
        (rows,) = queued.may_run_on(plan.machine, plan.left).nonzero()
    requested = queued.requested[rows]
    cpus = np.minimum(requested, plan.free)
    remaining_s = queued.left_s[rows] * requested / (np.maximum(cpus, 1) * plan.speed)
    units = queued.units(rows, remaining_s)
    return Candidates(rows, cpus, remaining_s, units, np.zeros(len(rows), dtype=np.intp))


def place_candidate(
    plan: MachinePlan,
    queued: QueuedJobs,
    candidates: Candidates,
    chosen: int,
    scores: dict[str, float] | None = None,
) -> Run:
    """Place a candidate, then fill the CPUs it leaves free by best fit.

    Jobs that were preempted for it are queued, and may be placed again.
    """
    preempted = int(candidates.preempted_n[chosen])
    plan.suspend(by_remaining_utility(plan)[:preempted], queued)
    row, cpus = int(candidates.rows[chosen]), int(candidates.cpus[chosen])
    reason = FORCED if preempted else SHRUNK
    placed = plan.place(queued, row, cpus, float(candidates.units[chosen]), reason)
    placed.scores = scores
    fit_best(plan, queued)
    return placed
