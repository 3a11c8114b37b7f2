"""One run of the reproduction: its arrivals, its policy, and what came of it."""

import datetime as dt
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from outrider.api.capabilities import Ranks
from outrider.api.policy import Policy
from outrider.api.queue import Queue
from outrider.api.site_view import SiteView
from outrider.formats.digests import file_sha256
from outrider.formats.job_classes import as_classes
from outrider.formats.workload import Floats, Workload, one_cpu_machines
from outrider.model.decisions import Choice
from outrider.model.errors import TraceError
from outrider.model.jobs import Job
from outrider.replay.grid_run import GridRun
from outrider.replay.trials import effective_settings
from outrider.simulation.estimates import estimate_rule, estimated
from outrider.simulation.generators.grids import perez_grid
from outrider.simulation.generators.grids.workloads import PROXY
from outrider_lab.papers.perez.figures import FirstStarts, figures_of
from outrider_lab.papers.perez.grid import TARGETS, WINDOW, Situation, Size
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import (
    DrawnWorkload,
    TraceSource,
    WorkloadFile,
)

_WORK: Final = f"{__name__}:run_on_grid"


class DecisionClock:
    """Times the decisions of a policy: whose turn it is (`rank`) and where it runs (`choose`).

    What ranking takes is counted with the first choice that follows it. Processor time of this
    thread: how busy the machine is otherwise does not count.

    Args:
        policy: timed from now on.
    """

    def __init__(self, policy: Policy) -> None:
        self.seconds: list[float] = []
        self._ranking_s = 0.0
        self._choose = policy.choose
        policy.choose = self._timed_choose  # type: ignore[method-assign]  # of this one policy only
        if isinstance(policy, Ranks):
            self._rank = policy.rank
            policy.rank = self._timed_rank  # type: ignore[method-assign]

    def _timed_rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        began_s = time.thread_time()
        places = self._rank(queue, view)
        self._ranking_s += time.thread_time() - began_s
        return places

    def _timed_choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        began_s = time.thread_time()
        choice = self._choose(job, evaluation, view, may_defer)
        self.seconds.append(self._ranking_s + time.thread_time() - began_s)
        self._ranking_s = 0.0
        return choice

    def percentiles(self) -> dict[str, float]:
        """Return ``decision_s.p50`` and ``decision_s.p99``; nan where nothing was decided."""
        p50, p99 = np.percentile(self.seconds, (50, 99)) if self.seconds else (np.nan, np.nan)
        return {"decision_s.p50": float(p50), "decision_s.p99": float(p99)}


def spec_of(situation: Situation, policy: PolicySpec, size: Size, seed: int) -> RunSpec:
    """Return the run of a policy in a situation; the seed draws the jobs and the choices."""
    options = (
        ("row", situation.row),
        ("targets", situation.targets),
        ("estimates", situation.estimates),
        ("skipped_first", size.skipped_first),
        ("unreported", 0 if situation.row == WINDOW else size.unreported),
    )
    return RunSpec(_WORK, trace_of(situation, size, seed), policy, seed, options)


def trace_of(situation: Situation, size: Size, seed: int) -> DrawnWorkload | WorkloadFile:
    """Return the jobs of a situation: drawn, or the user's file."""
    if situation.trace:
        digest = file_sha256(Path(situation.trace))
        return WorkloadFile(situation.trace, class_by=PROXY, digest=digest)
    if situation.row == WINDOW:
        return DrawnWorkload("egee", seed, (("jobs", size.window_jobs),))
    return DrawnWorkload("perez", seed, (("row", situation.row), ("jobs", size.jobs)))


def run_on_grid(spec: RunSpec) -> dict[str, Any]:
    """Run one spec in this process.

    Returns:
        ``figures``, as `RunFigures` has them, and ``settings`` as they took effect.

    Raises:
        OutriderError: the trace cannot be read, the policy cannot be made, or it failed.
    """
    workload = arrivals(spec)
    targets = targets_of(spec, workload)
    policy = spec.make_policy()
    clock, starts = DecisionClock(policy), FirstStarts(workload)
    began_s = time.process_time()
    run = GridRun(workload, [policy], starts.keep, shares=dict(targets))
    run.run()
    cpu_s = time.process_time() - began_s
    waiting = int(np.isnan(starts.start_s).sum())
    if waiting:
        raise TraceError(f"{spec}: {waiting} jobs never started")
    found = figures_of(
        workload, starts.start_s, targets, spec.option("skipped_first"), spec.option("unreported")
    )
    more = clock.percentiles() | _refusals(workload, starts) | {"cpu_s": cpu_s}
    found = msgspec.structs.replace(found, scalars=found.scalars | more)
    settings = effective_settings(policy, run.runners[0].reconsider_s)
    return {"figures": msgspec.structs.asdict(found), "settings": settings}


def arrivals(spec: RunSpec) -> Workload:
    """Return the workload of a run; the same for every policy on that trace."""
    return estimated(_arrivals(spec.trace), estimate_rule(spec.option("estimates")), spec.seed)


@lru_cache(maxsize=1)
def _arrivals(trace: TraceSource) -> Workload:
    if isinstance(trace, WorkloadFile):
        return trace.load()
    if not isinstance(trace, DrawnWorkload):
        raise TypeError(f"{trace.name}: a campus; expected a workload")
    if trace.generator == "egee":
        return egee_window(trace.seed, trace.option("jobs"))
    return perez_grid(float(trace.option("row")), trace.seed, jobs=trace.option("jobs"))


def targets_of(spec: RunSpec, workload: Workload) -> Mapping[str, float]:
    """Return each VO's target share; equal ones where the trace has none."""
    if spec.option("row") != WINDOW:
        return TARGETS[spec.option("targets")]
    vos = sorted(set(workload.vo))
    return workload.shares or dict.fromkeys(vos, 1.0 / len(vos))


def _refusals(workload: Workload, starts: FirstStarts) -> dict[str, float]:
    """Return the ratio of interactive jobs refused an immediate start, and the others' waits."""
    interactive = np.array([name == "interactive" for name in workload.job_class])
    refused = np.zeros(len(interactive), dtype=bool)
    refused[list(starts.refused)] = True
    accepted_s = (starts.start_s - workload.submit_s)[interactive & ~refused]
    return {
        "refused_ratio": float(refused[interactive].mean()) if interactive.any() else np.nan,
        "accepted.mean": float(accepted_s.mean()) if len(accepted_s) else np.nan,
    }


# -- egee ------------------------------------------------------------------------------------------
# Windows like the one the paper measured at an EGEE site; that trace itself is not public.
#
# What the paper says of it (V.B): 6000 sequential jobs on P = 100 processors, 17 to 26 May 2006;
# more than 62 % of the jobs run under 15 minutes and make less than 3 % of the work. Of its load
# only the waits under the native scheduler are known (table III). What it does not say is chosen
# here: users come with bursts of alike jobs, more by day than by night and fewer at weekends; long
# jobs are log-normal; the load is what brings waits of the native scheduler near table III's.

MACHINES: Final = 100
JOBS: Final = 6000
START: Final = dt.datetime(2006, 5, 17)  # noqa: DTZ001 - a local wall clock; a Wednesday
DAYS: Final = 9.5
SHORT_RATIO: Final = 0.62
LOAD: Final = 0.65
SHARES: Final = {"1": 0.5, "2": 0.25, "3": 0.15, "4": 0.1}

_USERS: Final = 40
_SMALLEST_RUN_S: Final = 5.0
_LONG_MEDIAN_S: Final = 4 * 3600.0
_LONG_SPREAD: Final = 1.0
_WITHIN_A_BURST: Final = 0.3
_MOST_IN_A_BURST: Final = 60.0
_BURST_S: Final = 600.0
_DAY_S: Final = 86_400.0
_NIGHT_RATIO: Final = 0.3
_WEEKEND_RATIO: Final = 0.5


class _Streams(NamedTuple):
    """One generator for each thing that is drawn."""

    bursts: np.random.Generator
    times: np.random.Generator
    runs: np.random.Generator
    users: np.random.Generator


def egee_window(seed: int, jobs: int = JOBS) -> Workload:
    """Return a window of one seed: below 10000 to judge with, from there on to train with.

    Args:
        seed: of everything that is drawn.
        jobs: the span of the window grows with them, the load is the same.
    """
    children = np.random.SeedSequence([seed, JOBS]).spawn(len(_Streams._fields))
    streams = _Streams(*(np.random.default_rng(child) for child in children))
    span_s = DAYS * _DAY_S * jobs / JOBS
    burst, is_short = _bursts(streams.bursts, jobs)
    submit_s = _submissions(streams.times, burst, span_s)
    run_s = _run_times(streams.runs, burst, is_short, span_s)
    user_of_burst = streams.users.integers(_USERS, size=burst[-1] + 1)
    vo_of_user = streams.users.choice(list(SHARES), size=_USERS, p=list(SHARES.values()))
    order = np.argsort(submit_s, kind="stable")
    user = user_of_burst[burst][order]
    machine_names, machines = one_cpu_machines(MACHINES)
    nothing = np.full(jobs, np.nan)
    return Workload(
        name=f"egee-{seed}",
        job_names=[str(number) for number in range(1, jobs + 1)],
        submit_s=submit_s[order],
        run_s=run_s[order],
        cpus=np.ones(jobs, dtype=np.int64),
        requested_s=nothing,
        wait_s=nothing,
        estimate_s=run_s[order],
        user=[f"user{number:02d}" for number in user],
        vo=[str(vo_of_user[number]) for number in user],
        job_class=as_classes(PROXY.interactive_by_run_time(run_s[order])),
        class_source=PROXY.source,
        estimate_source="exact",
        machine_names=machine_names,
        machines=machines,
        shares=SHARES,
        start=START,
    )


def _bursts(rng: np.random.Generator, jobs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each job's burst, ascending, and whether it is short: exactly `SHORT_RATIO` are."""
    shorts = round(SHORT_RATIO * jobs)
    sizes: list[int] = []
    for wanted in (shorts, jobs - shorts):
        left = wanted
        while left:
            size = min(left, int(_MOST_IN_A_BURST ** rng.random()))
            sizes.append(size)
            left -= size
    burst = np.repeat(np.arange(len(sizes)), sizes)
    return burst, np.arange(jobs) < shorts


def _submissions(rng: np.random.Generator, burst: np.ndarray, span_s: float) -> Floats:
    """Return submission times: bursts by hour of day and week, their jobs soon after."""
    bursts = int(burst[-1]) + 1
    begin_s = np.empty(bursts)
    for number in range(bursts):
        while True:  # by rejection: as likely as that hour is busy
            time_s = rng.random() * span_s
            if rng.random() < _activity(time_s):
                break
        begin_s[number] = time_s
    submit_s: Floats = begin_s[burst] + rng.random(len(burst)) * _BURST_S
    return submit_s


def _activity(time_s: float) -> float:
    """Return the activity of the hour, from 0 to 1."""
    at = START + dt.timedelta(seconds=time_s)
    by_day = 1.0 if 8 <= at.hour < 20 else _NIGHT_RATIO
    return by_day * (_WEEKEND_RATIO if at.weekday() >= 5 else 1.0)


def _run_times(
    rng: np.random.Generator, burst: np.ndarray, is_short: np.ndarray, span_s: float
) -> Floats:
    """Return run times: similar within a burst; the long ones are scaled to the load."""
    bursts = int(burst[-1]) + 1
    near = np.exp(_WITHIN_A_BURST * rng.standard_normal(len(burst)))
    short = np.exp(rng.uniform(np.log(_SMALLEST_RUN_S), np.log(PROXY.below_s), bursts))[burst]
    short = np.clip(short * near, _SMALLEST_RUN_S, PROXY.below_s - 1.0)
    long = _LONG_MEDIAN_S * np.exp(_LONG_SPREAD * rng.standard_normal(bursts))[burst] * near
    run_s: Floats = np.where(is_short, short, long)
    wanted_s = LOAD * MACHINES * span_s - run_s[is_short].sum()
    run_s[~is_short] *= wanted_s / run_s[~is_short].sum()
    run_s[~is_short] = np.maximum(run_s[~is_short], PROXY.below_s)
    return run_s
