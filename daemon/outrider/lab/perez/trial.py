"""One run of the reproduction: its arrivals, its policy, and what came of it."""

import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from outrider.api.capabilities import Ranks
from outrider.api.policy import Policy
from outrider.api.queue import Queue
from outrider.api.site_view import SiteView
from outrider.formats.swf.reading import read_swf
from outrider.formats.workload import Workload
from outrider.lab.cells import effective_settings
from outrider.lab.perez.egee import egee_window
from outrider.lab.perez.figures import FirstStarts, RunFigures, figures_of
from outrider.lab.perez.grid import TARGETS, WINDOW, Situation, Size, Trial, plan
from outrider.model.decisions import Choice
from outrider.model.errors import TraceError
from outrider.model.jobs import Job
from outrider.plugins.making import make_policy
from outrider.replay.grid_run import GridRun
from outrider.simulation.estimates import estimate_rule, estimated
from outrider.simulation.generators.grids import perez_grid


class TrialResult(NamedTuple):
    """What a trial brought, and the settings as they took effect."""

    figures: RunFigures
    settings: dict[str, Any]


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


def run_trial(trial: Trial) -> TrialResult:
    """Run one trial in this process.

    Raises:
        OutriderError: the trace cannot be read, the policy cannot be made, or it failed.
    """
    situation, size = trial.situation, trial.size
    workload = arrivals(situation, trial.seed, size)
    targets = targets_of(situation, workload)
    policy = _policy_of(trial)
    policy.wants_scores = False
    clock, starts = DecisionClock(policy), FirstStarts(workload)
    began_s = time.process_time()
    run = GridRun(workload, [policy], starts.keep, shares=dict(targets))
    run.run()
    cpu_s = time.process_time() - began_s
    waiting = int(np.isnan(starts.start_s).sum())
    if waiting:
        raise TraceError(f"{trial}: {waiting} jobs never started")
    is_window = situation.row == WINDOW
    found = figures_of(
        workload, starts.start_s, targets, size.skipped_first, 0 if is_window else size.unreported
    )
    more = clock.percentiles() | _refusals(workload, starts) | {"cpu_s": cpu_s}
    found = msgspec.structs.replace(found, scalars=found.scalars | more)
    return TrialResult(found, effective_settings(policy, run.seats[0].reconsider_s))


def _policy_of(trial: Trial) -> Policy:
    variant = trial.variant
    return make_policy(
        variant.policy, dict(variant.settings), trial.seed, str(trial), variant.preset
    )


def arrivals(situation: Situation, seed: int, size: Size) -> Workload:
    """The workload of a situation; the same for every policy with that seed."""
    return estimated(_arrivals(situation.row, situation.trace, seed, size),
                     estimate_rule(situation.estimates), seed)  # fmt: skip


@lru_cache(maxsize=1)
def _arrivals(row: str, trace: str, seed: int, size: Size) -> Workload:
    if row != WINDOW:
        return perez_grid(float(row), seed, jobs=size.jobs)
    return read_swf(Path(trace)) if trace else egee_window(seed, size.window_jobs)


def targets_of(situation: Situation, workload: Workload) -> Mapping[str, float]:
    """What each VO is promised; of a trace that says nothing, all the same."""
    if situation.row != WINDOW:
        return TARGETS[situation.targets]
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


def check_trials(size: Size, seeds: range, traces: tuple[str, ...]) -> None:
    """Refuse what is wrong before a long run, not after it.

    Raises:
        OutriderError: a policy is not installed, or a file is no workload.
    """
    for trial in plan(size, seeds[:1], traces):
        _policy_of(trial)
    for trace in traces:
        read_swf(Path(trace))
