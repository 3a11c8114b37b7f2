"""All CPUs of a machine to the work that earns the most per CPU-second.

The density of a job is what it still earns per CPU-second that it still needs: u L / remaining,
with u its unit utility if it had all its CPUs from now on, L its ideal run time and `remaining`
what is left of it. Taking jobs in this order and the last one in part is how a knapsack of
divisible things is filled best.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from outrider_policies.planning.machine_plan import MachinePlan, Run
from outrider_policies.planning.queued_jobs import WaitingJobs

DENSEST: Final = "densest"


class _Claim(NamedTuple):
    """A job's claim to CPUs: the densest first, runs before waiting jobs, then as they came."""

    density: float
    run: Run | None
    row: int
    unit: float
    asked: int


def give_to_densest(plan: MachinePlan, waiting: WaitingJobs) -> None:
    """Give all CPUs of a machine anew, in the order of density, to its jobs and those that wait."""
    free = plan.free + sum(run.cpus for run in plan.runs)
    claims = [*_claims_of_runs(plan), *_claims_of_queue(plan, waiting)]
    granted: list[tuple[_Claim, int]] = []
    for claim in sorted(claims, key=lambda claim: -claim.density):
        if free and claim.density > 0.0:
            cpus = min(claim.asked, free)
            granted.append((claim, cpus))
            free -= cpus
    staying = [claim.run for claim, _ in granted if claim.run is not None]
    plan.suspend([run for run in plan.runs if run not in staying], waiting)
    for claim, cpus in granted:
        if claim.run is not None:
            plan.give(claim.run, cpus, DENSEST)
    for claim, cpus in granted:
        if claim.run is None and waiting.could_run(claim.row, plan.machine, plan.left):
            plan.place(waiting, claim.row, cpus, claim.unit, DENSEST)
    plan.expect(plan.runs)


def _claims_of_runs(plan: MachinePlan) -> Iterable[_Claim]:
    if not plan.runs:
        return
    remaining_s = np.array([run.left_s for run in plan.runs]) / plan.speed
    units = plan.units(plan.runs, remaining_s)
    for run, seconds, unit in zip(plan.runs, remaining_s.tolist(), units.tolist(), strict=True):
        yield _Claim(unit * run.ideal_s / seconds, run, -1, unit, run.asked)


def _claims_of_queue(plan: MachinePlan, waiting: WaitingJobs) -> Iterable[_Claim]:
    rows = np.flatnonzero(
        waiting.may_run_on(plan.machine, plan.left) & (waiting.asked <= plan.cpus)
    )
    remaining_s = waiting.left_s[rows] / plan.speed
    units = waiting.units(rows, remaining_s)
    densities = units * waiting.ideal_s[rows] / remaining_s
    for at in np.flatnonzero(densities > 0.0).tolist():
        row = int(rows[at])
        yield _Claim(float(densities[at]), None, row, float(units[at]), int(waiting.asked[row]))
