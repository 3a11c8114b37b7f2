"""One run: a policy, trained if it learns, on one stream of arrivals at one machine."""

import heapq
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any, Final

import numpy as np

from outrider.api.policy import Policy
from outrider.engine import PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.state.site import Site
from outrider.formats.workload import GridRules, Workload
from outrider.model.events import COMPLETED, RESIZED, RESUMED, STARTED, SUSPENDED, Event
from outrider.model.localtime import TraceTime
from outrider.model.utility import Rising, TimeUtility, make_utility
from outrider.replay.run import ReplayDecisionLog, TraceRun, keep_nothing
from outrider.simulation.generators.grids.workloads import CPUS, LONGEST_S, vengerov_grid
from outrider.simulation.grid_site import GridRunningJob, GridSite
from outrider_lab.papers.vengerov.grid import (
    AGGRESSIVE,
    BAD,
    INTEGER,
    LEARNED,
    REPLAN,
    ZERO,
    Size,
    Treatment,
)
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import DrawnWorkload

# -- steps -----------------------------------------------------------------------------------------
# One run of the paper's simulator: the engine joined to one machine, in whole steps or not.

_ROUNDING_S: Final = 1e-7
_RECONSIDER_S: Final = 3600.0


class WholeStepGrid(GridSite):
    """Grid on which runs end at whole steps: a step that is needed in part is used up."""

    def _set_cpus(self, job: int, run: GridRunningJob, cpus: int) -> None:
        super()._set_cpus(job, run, cpus)
        if run.rate > 0.0:
            self._schedules += 1
            run.number = self._schedules  # the end that was put down before is void now
            whole_s = float(ceil(run.end_s() - _ROUNDING_S))
            heapq.heappush(self._heap, (whole_s, COMPLETED, job, run.number, None))


class StepRun(TraceRun):
    """A run of one policy on one machine.

    Args:
        workload: the trace.
        policy: decides.
        until_s: stop after this second.
        utilities: time utility functions by job class.
        whole_steps: runs end at whole steps.
    """

    def __init__(
        self,
        workload: Workload,
        policy: Policy,
        until_s: float,
        utilities: Mapping[str, TimeUtility],
        whole_steps: bool,
    ) -> None:
        clock = TraceTime(workload.start)
        grid = (WholeStepGrid if whole_steps else GridSite)(workload, until_s, utilities)
        site = Site(clock, [], utilities=utilities)
        accounting = Accounting(clock, {}, False, utilities=utilities)
        runners = [PolicyRunner(policy, True, _RECONSIDER_S, exact=False)]
        super().__init__(grid, site, accounting, runners, ReplayDecisionLog(keep_nothing))


# -- machine run -----------------------------------------------------------------------------------

_WORK: Final = f"{__name__}:run_on_machine"
TRAINING_SEEDS: Final = 10_000
"""Added to a seed to train on: no arrivals that judge are ever learned from."""
WINDOWS: Final = 20
"""Stretches of equal length over which productivity is followed."""
BAD_OUTPUTS: Final = (1.0, 3.0, 1.0, 3.0, -3.0, -1.0, -3.0, -1.0)
"""A value function that likes low utility and idle CPUs: the opposite of what it would learn."""
RISING: Final = Rising(least=0.5, full_s=20.0)
"""Shape of a rising utility: half immediately, all after twice the longest job (section 6)."""


def spec_of(treatment: Treatment, size: Size, seed: int) -> RunSpec:
    """Return the run of a treatment: the seed draws the arrivals, and is the policy's too."""
    scene = treatment.scene
    drawn = DrawnWorkload(
        "vengerov",
        seed,
        (("rate", scene.rate), ("steps", scene.steps), ("drop_hopeless", scene.drop_hopeless)),
    )
    learns = treatment.policy == LEARNED
    options = (
        ("shape", scene.shape),
        ("train_steps", size.train_steps if learns and treatment.start == ZERO else 0),
        ("test_steps", size.test_steps),
        ("tells_rules", learns),
    )
    return RunSpec(_WORK, drawn, _policy_of(treatment), seed, options)


def _policy_of(treatment: Treatment) -> PolicySpec:
    name = treatment.policy if treatment.policy in (AGGRESSIVE, REPLAN) else "fuzzy_td"
    settings: dict[str, Any] = {}
    if name != REPLAN:
        settings = {"preempt": treatment.deeds.preempt, "oversubscribe": treatment.deeds.over}
    if treatment.policy == LEARNED:
        settings |= {"inputs": treatment.inputs, "longest_s": float(LONGEST_S)}
    if treatment.beyond:
        settings |= {"skip_hopeless": True, "weigh_replan": True}
    if treatment.start != ZERO:
        settings |= {"first_outputs": BAD_OUTPUTS, "learn": treatment.start == BAD}
    return PolicySpec.of(name, settings)


def run_on_machine(spec: RunSpec) -> dict[str, Any]:
    """Train if there is something to train, then measure.

    Returns:
        `utility_k` (thousands of unit utility x CPU-seconds), `utilisation_ratio` (equation 7: busy
        CPU-seconds over all), `productivity` (equation 8), `by_window` (utility a step in each
        stretch), `completed`, `outputs` (what each rule says at the end; None for who does not
        learn).

    Raises:
        OutriderError: the policy is not installed or failed.
    """
    train_steps, test_steps = spec.option("train_steps"), spec.option("test_steps")
    policy = spec.make_policy()
    if train_steps:
        past = _workload(spec, spec.seed + TRAINING_SEEDS, train_steps)
        run = _run(spec, past, policy, train_steps)
        for _ in run.stream():
            pass
        memory = policy.save(run.site)
        policy = spec.make_policy()
        policy.restore(_without_course(memory), run.site)
    workload = _workload(spec, spec.seed, test_steps)
    run = _run(spec, workload, policy, test_steps)
    figures = _measured(run.stream(), workload, _utility(spec), test_steps)
    rules = policy.scores((), run.site).values() if spec.option("tells_rules") else ()
    return figures | {"outputs": list(rules) or None}


def _without_course(memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was learned without the machine's course: the next run begins empty."""
    return {**memory, "transitions": [], "planned_s": None, "has_news": True}


def _workload(spec: RunSpec, seed: int, steps: int) -> Workload:
    """Return arrivals of so many steps; the seed is the spec's own, or one to train on."""
    workload = vengerov_grid(
        spec.drawn.option("rate"), seed, steps=spec.drawn.option("steps"), length_s=float(steps)
    )
    workload.rules = GridRules(drop_hopeless=spec.drawn.option("drop_hopeless"))
    return workload


def _utility(spec: RunSpec) -> TimeUtility:
    shape = spec.option("shape")
    return RISING if shape == "rising" else make_utility({"shape": shape}, str(spec))


def _run(spec: RunSpec, workload: Workload, policy: Policy, steps: int) -> StepRun:
    in_steps = spec.drawn.option("steps") == INTEGER
    return StepRun(workload, policy, float(steps), {"batch": _utility(spec)}, in_steps)


def _measured(
    events: Iterator[Event], workload: Workload, utility: TimeUtility, steps: int
) -> dict[str, Any]:
    """Return the measurements of the run, from its events and the true lengths alone."""
    cpus: dict[int, int] = {}
    busy = busy_s = since_s = 0.0
    ends: list[tuple[float, int]] = []
    for time_s, kind, subject, extra in events:
        before = cpus.get(subject, 0) if kind in _CHANGES else 0
        if kind == COMPLETED:
            ends.append((time_s, subject))
        if kind in _CHANGES:
            busy_s += busy * (time_s - since_s)
            since_s = time_s
            cpus[subject] = _cpus_after(kind, extra)
            busy += cpus[subject] - before
    busy_s += busy * (steps - since_s)
    end_s, jobs = np.array([end for end, _ in ends]), np.array([job for _, job in ends], dtype=int)
    ideal_s = workload.run_s[jobs]
    unit = utility.unit(end_s - workload.submit_s[jobs], ideal_s)
    worth = unit * ideal_s * workload.cpus[jobs]
    window = np.minimum(end_s * WINDOWS / steps, WINDOWS - 1).astype(int)
    return {
        "utility_k": float(worth.sum()) / 1000.0,
        "utilisation_ratio": busy_s / (CPUS * steps),
        "productivity": float(worth.sum()) / (CPUS * steps),
        "by_window": (np.bincount(window, worth, WINDOWS) * WINDOWS / steps).tolist(),
        "completed": len(jobs),
    }


_CHANGES: Final = frozenset({STARTED, RESIZED, RESUMED, SUSPENDED, COMPLETED})


def _cpus_after(kind: int, extra: Any) -> int:
    """Return CPUs of a job after an event about its run."""
    if kind in (STARTED, RESUMED):
        return int(extra[1])
    return int(extra) if kind == RESIZED else 0
