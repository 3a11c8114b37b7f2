"""One run of the reproduction: its arrivals, its policy, and what came of it."""

import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from outrider.api.capabilities import Ranks
from outrider.api.policy import Policy
from outrider.api.queue import Queue
from outrider.api.site_view import SiteView
from outrider.formats.digests import file_sha256
from outrider.formats.workload import Workload
from outrider.model.decisions import Choice
from outrider.model.errors import TraceError
from outrider.model.jobs import Job
from outrider.replay.effective_settings import effective_settings
from outrider.replay.grid_run import GridRun
from outrider.simulation.estimates import estimate_rule, estimated
from outrider.simulation.generators.grids import perez_grid
from outrider.simulation.generators.grids.perez import PROXY
from outrider_lab.papers.perez.egee import egee_window
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
        """``decision_s.p50`` and ``decision_s.p99``; nan where nothing was decided."""
        p50, p99 = np.percentile(self.seconds, (50, 99)) if self.seconds else (np.nan, np.nan)
        return {"decision_s.p50": float(p50), "decision_s.p99": float(p99)}


def spec_of(situation: Situation, policy: PolicySpec, size: Size, seed: int) -> RunSpec:
    """The run of a policy in a situation; the seed draws the jobs, and is the policy's too."""
    options = (
        ("row", situation.row),
        ("targets", situation.targets),
        ("estimates", situation.estimates),
        ("skipped_first", size.skipped_first),
        ("unreported", 0 if situation.row == WINDOW else size.unreported),
    )
    return RunSpec(_WORK, trace_of(situation, size, seed), policy, seed, options)


def trace_of(situation: Situation, size: Size, seed: int) -> DrawnWorkload | WorkloadFile:
    """The jobs of a situation: drawn, or the user's file."""
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
    """The workload of a run; the same for every policy on that trace."""
    return estimated(_arrivals(spec.trace), estimate_rule(spec.option("estimates")), spec.seed)


@lru_cache(maxsize=1)
def _arrivals(trace: TraceSource) -> Workload:
    if isinstance(trace, WorkloadFile):
        return trace.load()
    if not isinstance(trace, DrawnWorkload):
        raise TypeError(f"{trace.name}: a campus; right would be a workload")
    if trace.generator == "egee":
        return egee_window(trace.seed, trace.option("jobs"))
    return perez_grid(float(trace.option("row")), trace.seed, jobs=trace.option("jobs"))


def targets_of(spec: RunSpec, workload: Workload) -> Mapping[str, float]:
    """What each VO is promised; of a trace that says nothing, all the same."""
    if spec.option("row") != WINDOW:
        return TARGETS[spec.option("targets")]
    vos = sorted(set(workload.vo))
    return workload.shares or dict.fromkeys(vos, 1.0 / len(vos))


def _refusals(workload: Workload, starts: FirstStarts) -> dict[str, float]:
    """Of interactive jobs: the ratio refused an immediate start, and how the others waited."""
    interactive = np.array([name == "interactive" for name in workload.job_class])
    refused = np.zeros(len(interactive), dtype=bool)
    refused[list(starts.refused)] = True
    accepted_s = (starts.start_s - workload.submit_s)[interactive & ~refused]
    return {
        "refused_ratio": float(refused[interactive].mean()) if interactive.any() else np.nan,
        "accepted.mean": float(accepted_s.mean()) if len(accepted_s) else np.nan,
    }
