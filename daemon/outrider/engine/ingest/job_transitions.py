"""What an event about a job means in the state in which the job is."""

from collections import Counter
from typing import Any

import msgspec

from outrider.engine.ingest.job_history import AFTER, RUNNING, SUSPENDED, JobHistory, is_possible
from outrider.engine.ingest.job_registry import JobRegistry
from outrider.engine.ingest.job_runs import JobRuns
from outrider.engine.ingest.machine_registry import MachineRegistry
from outrider.engine.ingest.set_aside import IMPOSSIBLE_STATE, NotApplicableError
from outrider.engine.ingest.slots import LostRun
from outrider.model import events as ev
from outrider.model.events import Event


class JobTransitions:
    """Moves jobs from state to state, by way of what no source told but must have happened.

    Args:
        jobs, machines: those that are known.
        repairs: counts what was mended, by kind.
    """

    def __init__(self, jobs: JobRegistry, machines: MachineRegistry, repairs: Counter[str]) -> None:
        self._jobs = jobs
        self._repairs = repairs
        self.runs = JobRuns(jobs, machines, repairs)

    def mended(self, what: str, events: list[Event]) -> list[Event]:
        """Count a repair; returns its events."""
        self._repairs[what] += 1
        return events

    def apply(
        self, time_s: float, kind: int, name: str, history: JobHistory, extra: Any
    ) -> list[Event]:
        """The steps a job event means in the job's present state. Raises `NotApplicableError`."""
        n = history.number
        if kind == ev.CHANGED:
            history.spec = msgspec.structs.replace(history.spec, **extra)
            return [(time_s, kind, n, history.spec)]
        if is_possible(kind, history.state):
            return self._step(time_s, kind, name, history, extra)
        running = history.state in (RUNNING, SUSPENDED)
        if kind == ev.STARTED and running:
            evicted = self.runs.evict(time_s, name, history, "unknown")
            return self.mended(
                "end_unseen", evicted + self.runs.start(time_s, name, history, *extra)
            )
        if kind == ev.STARTED:
            released: Event = (time_s, ev.RELEASED, n, None)
            run = self.runs.start(time_s, name, history, *extra)
            return self.mended("release_unseen", [released, *run])
        if kind == ev.HELD and running:  # a batch system may leave the eviction out
            evicted = self.runs.evict(time_s, name, history, "held")
            return evicted + self._step(time_s, kind, name, history, extra)
        lost = self.runs.take_lost(name)
        if lost is not None:
            return self._of_lost_run(time_s, kind, name, history, lost)
        if kind == ev.DISCONNECTED:
            return []  # from a machine on which its run had not begun yet
        if kind == ev.COMPLETED:
            return self.mended("run_unseen", self.end(name, history, time_s))
        raise NotApplicableError(IMPOSSIBLE_STATE)

    def _step(
        self, time_s: float, kind: int, name: str, history: JobHistory, extra: Any
    ) -> list[Event]:
        """A possible transition."""
        n = history.number
        if kind == ev.STARTED:
            return self.runs.start(time_s, name, history, *extra)
        if kind == ev.EVICTED:
            return self.runs.evict(time_s, name, history, extra)
        if kind in (ev.COMPLETED, ev.REMOVED):
            return self.end(name, history, time_s, kind, extra)
        if kind == ev.DISCONNECTED:
            self.runs.disconnect(name, history)
            return []
        if kind == ev.RECONNECTED:
            self.runs.reconnect(name, history)
            return []
        if kind == ev.RESIZED:
            return self.runs.resize(time_s, history, extra)
        history.state = AFTER[kind]
        return [(time_s, kind, n, extra)]

    def _of_lost_run(
        self, time_s: float, kind: int, name: str, history: JobHistory, lost: LostRun
    ) -> list[Event]:
        """An event about a run that was taken to be over: its end, or that it went on."""
        if kind == ev.EVICTED:
            return []
        if kind == ev.COMPLETED:
            went_on = [self.runs.went_on(history, lost)]
            ended = self.end(name, history, time_s, kind, None)
            return self.mended("run_went_on", went_on + ended)
        if kind == ev.RECONNECTED:
            return self.mended("run_went_on", self.runs.resume(time_s, history, lost))
        self.runs.keep_lost(name, lost)
        raise NotApplicableError(IMPOSSIBLE_STATE)

    def end(
        self, name: str, history: JobHistory, time_s: float, kind: int = ev.REMOVED,
        extra: Any = "unknown",
    ) -> list[Event]:  # fmt: skip
        """The job leaves the site."""
        next_run = self.runs.end_with_job(time_s, name, history)
        self._jobs.end(name, history)
        return [(time_s, kind, history.number, extra), *next_run]
