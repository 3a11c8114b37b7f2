"""What can be done for a job that does not fit: force it in, or shrink it (Vengerov 2005, 4.1)."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider_policies.planning.best_fit_stage import fit_best
from outrider_policies.planning.machine_plan import MachinePlan, Run
from outrider_policies.planning.queued_jobs import WaitingJobs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

FORCED: Final = "forced"
SHRUNK: Final = "shrunk"


class Candidates(NamedTuple):
    """Waiting jobs that could be given a place on a machine, one element each.

    Attributes:
        rows: in the queue.
        cpus: they would get.
        remaining_s: seconds until they would complete on these.
        units: unit utilities then.
        preempted_n: runs that would be suspended for them, the least in remaining utility first.
    """

    rows: Rows
    cpus: Ints
    remaining_s: Floats
    units: Floats
    preempted_n: Rows

    def where(self, mask: NDArray[np.bool_]) -> "Candidates":
        """Those for which the mask is true."""
        return Candidates(
            self.rows[mask],
            self.cpus[mask],
            self.remaining_s[mask],
            self.units[mask],
            self.preempted_n[mask],
        )


def by_remaining_utility(plan: MachinePlan) -> list[Run]:
    """The runs of a machine in the order in which they would be suspended."""
    return sorted(plan.runs, key=lambda run: run.remaining_utility)


def forcible(plan: MachinePlan, waiting: WaitingJobs) -> Candidates:
    """Jobs that could run on all their CPUs if others were suspended (steps 4 and 5).

    One that would have to suspend a run of a remaining utility as high as its own is none: of two
    jobs that are both worth nothing any more, neither should push the other out.
    """
    can = waiting.may_run_on(plan.machine, plan.left) & (waiting.asked <= plan.cpus)
    rows = np.flatnonzero(can)
    runs = by_remaining_utility(plan)
    free_after = plan.free + np.cumsum([0, *(run.cpus for run in runs)])
    asked = waiting.asked[rows]
    preempted_n = np.searchsorted(free_after, asked)
    remaining_s = waiting.left_s[rows] / plan.speed
    units = waiting.units(rows, remaining_s)
    highest = np.array([-np.inf, *(run.remaining_utility for run in runs)])[preempted_n]
    candidates = Candidates(rows, asked, remaining_s, units, preempted_n)
    return candidates.where(highest < units / remaining_s)


def shrinkable(plan: MachinePlan, waiting: WaitingJobs) -> Candidates:
    """Jobs on the free CPUs, even if these are fewer than they ask for (step 8)."""
    rows = (
        np.flatnonzero(waiting.may_run_on(plan.machine, plan.left))
        if plan.free
        else np.empty(0, np.intp)
    )
    asked = waiting.asked[rows]
    cpus = np.minimum(asked, plan.free)
    remaining_s = waiting.left_s[rows] * asked / (np.maximum(cpus, 1) * plan.speed)
    units = waiting.units(rows, remaining_s)
    return Candidates(rows, cpus, remaining_s, units, np.zeros(len(rows), dtype=np.intp))


def carry_out(
    plan: MachinePlan,
    waiting: WaitingJobs,
    candidates: Candidates,
    chosen: int,
    scores: dict[str, float] | None = None,
) -> Run:
    """Give a candidate its place, and what it leaves over to those that fit there.

    Jobs that were preempted for it wait like all others then.
    """
    preempted = int(candidates.preempted_n[chosen])
    plan.suspend(by_remaining_utility(plan)[:preempted], waiting)
    row, cpus = int(candidates.rows[chosen]), int(candidates.cpus[chosen])
    reason = FORCED if preempted else SHRUNK
    placed = plan.place(waiting, row, cpus, float(candidates.units[chosen]), reason)
    placed.scores = scores
    fit_best(plan, waiting)
    return placed
