"""The first stage of Vengerov's scheduler: best fit, without preempting or shrinking runs."""

from typing import Final

from outrider_policies.planning.machine_plan import MachinePlan
from outrider_policies.planning.queued_jobs import QueuedJobs

BEST_FIT: Final = "best_fit"


def fit_best(plan: MachinePlan, queued: QueuedJobs) -> None:
    """Place the queued job that leaves the fewest CPUs free, until none fits.

    Of equally wide jobs the one of the highest unit utility at completion comes first, of equal
    ones the first in the queue.
    """
    while plan.free:
        fits = queued.may_run_on(plan.machine, plan.left) & (queued.requested <= plan.free)
        (rows,) = fits.nonzero()
        if not len(rows):
            return
        requested = queued.requested[rows]
        widest = requested.max()
        rows = rows[requested == widest]
        units = queued.at_speed(plan.speed)[1][rows]
        best = int(units.argmax())
        plan.place(queued, int(rows[best]), int(widest), float(units[best]), BEST_FIT)


def grow_and_fit(plan: MachinePlan, queued: QueuedJobs) -> None:
    """Grow shrunk runs, then best fit (section 4.2, first heuristic)."""
    plan.grow()
    fit_best(plan, queued)
