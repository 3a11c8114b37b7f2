"""No learning, no loyalty: at every change the CPUs go to the work that earns the most a second."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from outrider.api import Move, Queue, SiteView
from outrider_policies.learners.best_fit_stage import open_plans
from outrider_policies.learners.machine_plan import MachinePlan, Run
from outrider_policies.learners.planning_settings import LengthSettings
from outrider_policies.learners.round_planner import RoundPlanner
from outrider_policies.learners.waiting_jobs import WaitingJobs

DENSEST: Final = "densest"


class Replan(RoundPlanner):
    """Gives the CPUs of each machine anew to its jobs and those that wait, in order of density.

    The density of a job is what it still earns per CPU-second it still needs: u L / remaining, with
    u its unit utility if it had all its CPUs from now on, L its ideal run time and `remaining` what
    is left of it. Runs that do not come in again are preempted, the last job that comes in is
    squeezed onto what is left, and what could not earn anything any more is never chosen. The best
    there is for one decision alone: a policy that looks ahead must be shown against it.
    """

    name = "replan"
    description = "gives all CPUs anew at every change, to the jobs that earn most a CPU-second"
    settings_type = LengthSettings

    def rearrange(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """Machine by machine; a job is given to the first that takes it."""
        waiting = WaitingJobs(queue, view, self.lengths)
        plans = open_plans(view, self.lengths)
        for plan in plans:
            _replan(plan, waiting)
        return [move for plan in plans for move in plan.moves()]


class _Claim(NamedTuple):
    """A job's claim to CPUs: the densest first, runs before waiting jobs, then as they came."""

    density: float
    run: Run | None
    row: int
    unit: float
    asked: int


def _replan(plan: MachinePlan, waiting: WaitingJobs) -> None:
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
        if claim.run is None:
            plan.place(waiting, claim.row, cpus, claim.unit, DENSEST)


def _claims_of_runs(plan: MachinePlan) -> Iterable[_Claim]:
    if not plan.runs:
        return
    remaining_s = np.array([run.left_s for run in plan.runs]) / plan.speed
    units = plan.units(plan.runs, remaining_s)
    for run, seconds, unit in zip(plan.runs, remaining_s.tolist(), units.tolist(), strict=True):
        yield _Claim(unit * run.ideal_s / seconds, run, -1, unit, run.asked)


def _claims_of_queue(plan: MachinePlan, waiting: WaitingJobs) -> Iterable[_Claim]:
    rows = np.flatnonzero(waiting.may_run_on(plan.machine) & (waiting.asked <= plan.cpus))
    remaining_s = waiting.left_s[rows] / plan.speed
    units = waiting.units(rows, remaining_s)
    densities = units * waiting.ideal_s[rows] / remaining_s
    for at in np.flatnonzero(densities > 0.0).tolist():
        row = int(rows[at])
        yield _Claim(float(densities[at]), None, row, float(units[at]), int(waiting.asked[row]))
