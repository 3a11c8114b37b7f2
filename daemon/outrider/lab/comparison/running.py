"""One run of a comparison: a policy on a workload file, and what befell each job."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from outrider.api.policy import Policy
from outrider.formats.swf.reading import read_swf
from outrider.formats.workload import INTERACTIVE_BELOW_S, Workload
from outrider.lab.cells import effective_settings
from outrider.lab.comparison.paired import JobOutcomes, PolicyRun
from outrider.ledger import LedgerHash
from outrider.model.decisions import Choice
from outrider.model.disciplines import STRICT, Discipline
from outrider.model.events import COMPLETED, STARTED, Event
from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility
from outrider.plugins.making import make_estimator, make_policy
from outrider.replay.grid_run import GridRun
from outrider.simulation.estimates import EXACT, LEARNED, estimate_rule, estimated

_NONE: Mapping[str, Any] = {}


class Conditions(NamedTuple):
    """What all policies of a comparison have in common; the options of ``outrider compare``.

    Attributes:
        estimates: what policies are told of run times, as `outrider.simulation.estimates` reads it.
        discipline: who may start before a job that does not fit: `outrider.model.disciplines`.
        machines: CPUs, in place of the header's.
        interactive_below_s: jobs that ran strictly shorter are interactive.
        vo: the column that says which VO a job belongs to.
        shares: fair shares by VO; empty: equal.
        utilities: time utility functions by job class.
    """

    estimates: str = EXACT
    discipline: Discipline = STRICT
    machines: int | None = None
    interactive_below_s: float = INTERACTIVE_BELOW_S
    vo: str = "group"
    shares: Mapping[str, float] = _NONE
    utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES

    def read(self, trace: str) -> Workload:
        """The trace as all policies meet it; the last one is kept, for all policies run it.

        Raises:
            TraceError: it cannot be read.
        """
        return _read(trace, self.machines, self.interactive_below_s, self.vo)


class Candidate(NamedTuple):
    """A policy with given settings; they win over the preset's."""

    policy: str
    settings: Mapping[str, Any] = _NONE
    preset: str | None = None

    def make(self, seed: int) -> Policy:
        """A fresh policy. Raises `ConfigurationError`, `PluginError`."""
        return make_policy(self.policy, self.settings, seed, f"--set {self.policy}", self.preset)


class Task(NamedTuple):
    """What one run needs; picklable, and small where the trace is large."""

    trace: str
    candidate: Candidate
    seed: int
    conditions: Conditions

    def __str__(self) -> str:
        return f"{self.candidate.policy}, seed {self.seed}, on {self.trace}"


class WatchedRun(GridRun):
    """A run that remembers what befell each job.

    What it remembers is what the accounting has just written down: the numbers of the report.
    """

    def run(self, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """As `GridRun.run`; afterwards `jobs` holds what befell each job."""
        trace = self.workload
        missing = np.full(len(trace.submit_s), np.nan)
        self.jobs = JobOutcomes(
            trace.submit_s, np.array(trace.job_class, dtype=str), missing, missing.copy()
        )
        self._completed: list[int] = []
        out = super().run(progress or _unwatched)
        if self.accounting.slowdown.values is not None:
            self.jobs.bounded_slowdown[self._completed] = self.accounting.slowdown.values
        return out

    def _reporting(
        self, events: Iterable[Event], progress: Callable[[float], None]
    ) -> Iterator[Event]:
        """Look at what happened after every start and every completion."""
        waits = self.jobs.wait_s
        for event in super()._reporting(events, progress):
            yield event  # the engine has handled it when it asks for the next
            time_s, kind, subject, _ = event
            if kind == STARTED and np.isnan(waits[subject]):
                waits[subject] = self.site.jobs[subject].wait_s(time_s)
            elif kind == COMPLETED:
                self._completed.append(subject)


def run_task(task: Task) -> PolicyRun:
    """Run one task in this process.

    Raises:
        OutriderError: the trace cannot be read, the policy cannot be made, or it failed.
    """
    given = task.conditions
    rule = estimate_rule(given.estimates, "--estimates")
    workload = estimated(given.read(task.trace), rule, task.seed)
    policy = task.candidate.make(task.seed)
    policy.wants_scores = False
    digest = LedgerHash()

    def keep(
        time_s: float, job: str, action: str, machine: str | None, cpus: int, reason: str,
        name: str, choice: Choice | None,
    ) -> None:  # fmt: skip
        digest.add(time_s, job, action, machine, cpus)

    run = WatchedRun(
        workload,
        [policy],
        keep,
        shares=given.shares,
        utilities=given.utilities,
        discipline=given.discipline,
        estimator=make_estimator(LEARNED, task.seed, "estimates") if rule.kind == LEARNED else None,
    )
    about = {
        "trace": task.trace,
        "policy": task.candidate.policy,
        "settings": effective_settings(policy, run.seats[0].reconsider_s),
        "seed": task.seed,
        "preset": task.candidate.preset,
    }
    report = about | run.run() | {"ledger_sha256": digest.hexdigest()}
    return PolicyRun(task.candidate.policy, task.seed, report, run.jobs)


@lru_cache(maxsize=1)
def _read(path: str, machines: int | None, interactive_below_s: float, vo: str) -> Workload:
    return read_swf(Path(path), machines=machines, interactive_below_s=interactive_below_s, vo=vo)


def _unwatched(ratio: float) -> None:
    """Nobody watches the progress."""
