"""The first stage of Vengerov's scheduler: best fit, without preemption or shrinking."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from outrider.api import SiteView
from outrider_policies.planning.machine_plan import MachinePlan
from outrider_policies.planning.queued_jobs import WaitingJobs
from outrider_policies.planning.run_lengths import RunLengths

BEST_FIT: Final = "best_fit"


def fit_best(plan: MachinePlan, waiting: WaitingJobs) -> None:
    """Place the waiting job that leaves the fewest CPUs free, until none fits.

    Of equally wide jobs the one of the highest unit utility upon completion is placed, of these
    the first in line.
    """
    while plan.free:
        fits = waiting.may_run_on(plan.machine, plan.left) & (waiting.asked <= plan.free)
        rows = np.flatnonzero(fits)
        if not len(rows):
            return
        asked = waiting.asked[rows]
        widest = asked.max()
        rows = rows[asked == widest]
        units = waiting.units(rows, waiting.left_s[rows] / plan.speed)
        best = int(units.argmax())
        plan.place(waiting, int(rows[best]), int(widest), float(units[best]), BEST_FIT)


def open_plans(view: SiteView, lengths: RunLengths) -> list[MachinePlan]:
    """A plan for every machine that is open to jobs, with nothing changed yet."""
    return [
        MachinePlan(machine, view, lengths)
        for machine in range(view.machines_n)
        if view.cpus_of(machine)
    ]


def fill(plans: Iterable[MachinePlan], waiting: WaitingJobs) -> None:
    """Shrunk runs grow, then best fit: machine by machine (section 4.2, first heuristic)."""
    for plan in plans:
        plan.grow()
        fit_best(plan, waiting)
