"""The first stage of Vengerov's scheduler: best fit, without preempting or shrinking runs."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from outrider.api import SiteView
from outrider_policies.planning.machine_plan import MachinePlan
from outrider_policies.planning.queued_jobs import QueuedJobs
from outrider_policies.planning.run_lengths import RunLengths

BEST_FIT: Final = "best_fit"


def fit_best(plan: MachinePlan, queued: QueuedJobs) -> None:
    """Place the queued job that leaves the fewest CPUs free, until none fits.

    Of equally wide jobs the one of the highest unit utility at completion comes first, of equal
    ones the first in the queue.
    """
    while plan.free:
        fits = queued.may_run_on(plan.machine, plan.left) & (queued.requested <= plan.free)
        rows = np.flatnonzero(fits)
        if not len(rows):
            return
        requested = queued.requested[rows]
        widest = requested.max()
        rows = rows[requested == widest]
        units = queued.units(rows, queued.left_s[rows] / plan.speed)
        best = int(units.argmax())
        plan.place(queued, int(rows[best]), int(widest), float(units[best]), BEST_FIT)


def open_plans(view: SiteView, lengths: RunLengths) -> list[MachinePlan]:
    """A plan without changes for every machine that is open to jobs."""
    return [
        MachinePlan(machine, view, lengths)
        for machine in range(view.machines_n)
        if view.cpus_of(machine)
    ]


def fill(plans: Iterable[MachinePlan], queued: QueuedJobs) -> None:
    """Grow shrunk runs, then best fit, machine by machine (section 4.2, first heuristic)."""
    for plan in plans:
        plan.grow()
        fit_best(plan, queued)
