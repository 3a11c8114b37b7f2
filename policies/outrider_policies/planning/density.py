"""Allocation of all CPUs of a machine in order of utility density (fractional knapsack).

The density of a job is the utility that it still earns per CPU-second that it still needs:
u L / remaining, with u its unit utility if it had all its CPUs from now on, L its ideal run time
and `remaining` what is left of it. The last job that fits may get fewer CPUs than it requests.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from outrider_policies.planning.machine_plan import MachinePlan, Run
from outrider_policies.planning.queued_jobs import QueuedJobs

DENSEST: Final = "densest"


class _Demand(NamedTuple):
    """A job's demand for CPUs; sorted by density, then runs before queued jobs, then by age."""

    density: float
    run: Run | None
    row: int
    unit: float
    requested: int


def allocate_by_density(plan: MachinePlan, queued: QueuedJobs) -> None:
    """Reallocate all CPUs of a machine by density, to its runs and to queued jobs."""
    free = plan.free + sum(run.cpus for run in plan.runs)
    demands = [*_demands_of_runs(plan), *_demands_of_queue(plan, queued)]
    granted: list[tuple[_Demand, int]] = []
    for demand in sorted(demands, key=lambda demand: -demand.density):
        if free and demand.density > 0.0:
            cpus = min(demand.requested, free)
            granted.append((demand, cpus))
            free -= cpus
    staying = [demand.run for demand, _ in granted if demand.run is not None]
    plan.suspend([run for run in plan.runs if run not in staying], queued)
    for demand, cpus in granted:
        if demand.run is not None:
            plan.set_cpus(demand.run, cpus, DENSEST)
    for demand, cpus in granted:
        if demand.run is None and queued.could_run(demand.row, plan.machine, plan.left):
            plan.place(queued, demand.row, cpus, demand.unit, DENSEST)
    plan.update_completions(plan.runs)


def _demands_of_runs(plan: MachinePlan) -> Iterable[_Demand]:
    if not plan.runs:
        return
    remaining_s = np.array([run.left_s for run in plan.runs]) / plan.speed
    units = plan.units(plan.runs, remaining_s)
    for run, seconds, unit in zip(plan.runs, remaining_s.tolist(), units.tolist(), strict=True):
        yield _Demand(unit * run.ideal_s / seconds, run, -1, unit, run.requested)


def _demands_of_queue(plan: MachinePlan, queued: QueuedJobs) -> Iterable[_Demand]:
    may_run = queued.may_run_on(plan.machine, plan.left)
    (rows,) = (may_run & (queued.requested <= plan.cpus)).nonzero()
    all_remaining_s, all_units = queued.at_speed(plan.speed)
    remaining_s, units = all_remaining_s[rows], all_units[rows]
    densities = units * queued.ideal_s[rows] / remaining_s
    for at in np.flatnonzero(densities > 0.0).tolist():
        row = int(rows[at])
        yield _Demand(float(densities[at]), None, row, float(units[at]), int(queued.requested[row]))
