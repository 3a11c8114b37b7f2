"""From what sources say to what can have happened: names become numbers, and gaps are closed.

Logs are rotated and read twice, two logs tell of the same job, a source starts in the middle.
The normaliser knows the state of every job and machine by name and drops what it was told before.
Where a transition is impossible it puts in what must have happened in between, and counts that.
What nothing in between explains is set aside. The engine gets events that do not contradict each
other.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from outrider.engine.ingest.bounded_names import Names
from outrider.engine.ingest.job_registry import (
    AFTER,
    QUEUED,
    RUNNING,
    SUSPENDED,
    EventKey,
    JobHistory,
    JobRegistry,
    event_key,
    is_possible,
)
from outrider.engine.ingest.job_runs import JobRuns, LostRun
from outrider.engine.ingest.machine_registry import Complete, Describe, MachineRegistry, as_told
from outrider.engine.ingest.set_aside import IMPOSSIBLE_STATE, NotApplicableError
from outrider.model import events as ev
from outrider.model.events import Event, NamedEvent
from outrider.model.jobs import UNSEEN_JOB, Job, JobSpec

_NAMING: Final = frozenset({ev.SUBMITTED, ev.CHANGED, ev.STARTED})
"""Kinds about jobs that name a user, a VO or a machine."""


class Normaliser:
    """Turns named events into numbered ones that are possible.

    Args:
        describe, complete: see `MachineRegistry`.
        names: how many names are followed; None: all, as long as it is a record that is read once.

    Attributes:
        repairs: what was mended, by kind.
    """

    def __init__(
        self, describe: Describe, complete: Complete = as_told, names: Names | None = None
    ) -> None:
        self.names = names
        self.repairs: Counter[str] = Counter()
        self._said_later: set[str] = set()
        self._job_registry = JobRegistry()
        self._machines = MachineRegistry(describe, complete, self.repairs, names)
        self._transitions = JobTransitions(self._job_registry, self._machines, self.repairs)
        self._runs = self._transitions.runs
        if names is not None:
            names.user.in_use = lambda: {each.spec.user for each in self.jobs.values()}
            names.vo.in_use = lambda: {each.spec.vo for each in self.jobs.values()}

    @property
    def machine_names(self) -> list[str]:
        """Names of the machines, by number."""
        return self._machines.names

    def machine_number(self, name: str) -> int | None:
        """The number of a machine; None for one that was never named, or is forgotten."""
        return self._machines.number_of(name)

    def translate(self, event: NamedEvent) -> list[Event] | None:
        """The events that `event` means, in order; None if it was told before.

        Raises:
            NotApplicableError: it cannot be, and nothing explains it.
        """
        time_s, kind, subject, extra = event
        if kind in ev.JOB_KINDS:
            return self._job_event(time_s, kind, subject, extra)
        return self._machines.translate(time_s, kind, subject, extra)

    @property
    def settles_at_s(self) -> float:
        """When `settle` has events to give; infinite where nothing is delayed."""
        return self._runs.slots.due_s

    def settle(self, now_s: float) -> list[Event]:
        """Events that were delayed for another one, which did not come before `now_s`."""
        return self._runs.settle(now_s)

    @property
    def jobs(self) -> dict[str, JobHistory]:
        """The jobs that are at the site, by the name their source gives them."""
        return self._job_registry.jobs

    @property
    def job_names(self) -> dict[int, str]:
        """What every job goes by, by number."""
        return self._job_registry.names

    def known_by(self, own: str) -> JobHistory | None:
        """The job that is here and goes by a name (see `job_names`), or None."""
        return self._job_registry.known_by(own)

    def name_at(self, time_s: float, name: str) -> str:
        """What the job goes by that a source called `name` at a time."""
        return self._job_registry.name_at(name, round(time_s * 1000))

    # -- jobs ---------------------------------------------------------------------------------

    def _job_event(self, time_s: float, kind: int, name: str, extra: Any) -> list[Event] | None:
        key = event_key(time_s, kind, extra)
        if kind in _NAMING and self.names is not None:
            extra = self._bounded(time_s, kind, extra, self.names)
        registry = self._job_registry
        own = registry.name_at(name, key[1])
        history = registry.jobs.get(name)
        older = history is not None and registry.names[history.number] != own
        if older:
            history = None  # the record is of an earlier job of this name
        if kind == ev.SUBMITTED and extra.recalled and registry.is_known(own, history, key):
            self._recall(name, history, extra)
            return None
        if registry.was_told(own, kind, key, history, older):
            return None
        if kind == ev.SUBMITTED:
            return self._submitted(time_s, name, history, extra, key)
        before: list[Event] = []
        if history is None:
            history = registry.add(name, UNSEEN_JOB)
            self.repairs["unseen_submission"] += 1
            before = [(time_s, ev.SUBMITTED, history.number, UNSEEN_JOB)]
        history.add(key)
        if name in self._said_later:
            self._said_later.discard(name)
            before.append((time_s, ev.CHANGED, history.number, history.spec))
        before += self._runs.start_delayed(name, history)
        try:
            return before + self._transitions.apply(time_s, kind, name, history, extra)
        except NotApplicableError:
            if not before:
                raise
            return before  # at least it told that the job is there

    def _bounded(self, time_s: float, kind: int, extra: Any, names: Names) -> Any:
        """What an event about a job says, with names that are followed."""
        if kind == ev.SUBMITTED:
            return names.spec(extra, time_s)
        if kind == ev.CHANGED:
            return names.changes(extra, time_s)
        machine = names.machine.of(extra[0], time_s)
        return extra if machine == extra[0] else (machine, extra[1])

    def _recall(self, name: str, history: JobHistory | None, spec: JobSpec) -> None:
        """Keep what the record of a job's end adds to the first one (Torque: user, VO).

        It is passed on with the job's next event: by itself it is nothing that happened.
        """
        if history is not None and spec.user and not history.spec.user:
            history.spec = msgspec.structs.replace(spec, seen_submit=history.spec.seen_submit)
            self._said_later.add(name)

    def _submitted(
        self, time_s: float, name: str, history: JobHistory | None, extra: JobSpec, key: EventKey
    ) -> list[Event]:
        before: list[Event] = []
        if history is not None:
            if not history.spec.seen_submit:
                history.add(key)
                described: list[Event] = []
                if history.spec == UNSEEN_JOB:  # what was told since is newer
                    history.spec = msgspec.structs.replace(extra, seen_submit=False)
                    described.append((time_s, ev.CHANGED, history.number, history.spec))
                return self._transitions.mended("late_submission", described)
            begun = self._runs.start_delayed(name, history)
            ended = self._end(name, history, time_s)
            before = self._transitions.mended("submitted_twice", begun + ended)
        history = self._job_registry.submit(name, extra, key, time_s)
        history.add(key)
        return [*before, (time_s, ev.SUBMITTED, history.number, extra)]

    def _end(self, name: str, history: JobHistory, time_s: float) -> list[Event]:
        """The job has left the site, though no source said so."""
        self._said_later.discard(name)
        return self._transitions.end(name, history, time_s)

    def realign(
        self, jobs: Mapping[int, Job], joined: Sequence[bool], owned: Sequence[bool]
    ) -> set[int]:
        """After a fault: follow only what the engine, too, knows to be so.

        Args:
            jobs: the engine's, by number.
            joined: of its machines, by number: whether each is there.
            owned: the same: whether its owner uses it.

        Returns:
            The numbers of the jobs that are followed. What is told of any other from now on comes
            after its end.
        """
        while stale := [
            (name, history)
            for name, history in self.jobs.items()
            if (job := jobs.get(history.number)) is None or not self._agrees(name, history, job)
        ]:
            for name, history in stale:  # a start that waited for its slot makes another one stale
                self._end(name, history, 0.0)
        self._machines.realign(joined, owned)
        return {history.number for history in self.jobs.values()}

    def waits_for_slot(self, name: str) -> bool:
        """Return whether the job's start is known, and delayed until its slot is free (see `Slots`)."""
        return self._runs.is_delayed(name, self.jobs[name])

    def _agrees(self, name: str, history: JobHistory, job: Job) -> bool:
        if self.waits_for_slot(name):  # the engine does not know of the start yet
            return job.state == QUEUED
        return history.agrees_with(job)

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "jobs": self._job_registry.save(),
            "machines": self._machines.save(),
            "repairs": dict(self.repairs),
            "fuller": sorted(self._said_later),
            "slots": self._runs.save(),
            "names": None if self.names is None else self.names.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        if self.names is not None and saved.get("names") is not None:
            self.names.restore(saved["names"])
        self._job_registry.restore(saved["jobs"])
        self._machines.restore(saved["machines"])
        self.repairs.clear()
        self.repairs.update(saved["repairs"])
        self._said_later = set(saved["fuller"])
        self._runs.restore(saved["slots"])


# -- job transitions -------------------------------------------------------------------------------
# What an event about a job means in the state in which the job is.


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
