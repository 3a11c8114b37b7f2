"""From what sources say to what can have happened: names to numbers, doubles out, gaps mended.

Logs are rotated and read twice, two logs tell of the same job, a source starts in the middle.
The tracker knows the state of every job and machine by name, drops what it has heard before, and
where a transition is impossible it puts in what must have happened in between and counts that.
What nothing in between explains is set aside. The engine behind it sees a world without
contradictions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from outrider.engine.ingest.job_history import (
    AFTER,
    GONE,
    QUEUED,
    RUNNING,
    SUSPENDED,
    JobHistory,
    Mark,
    is_possible,
    mark_of,
)
from outrider.engine.ingest.job_registry import JobRegistry
from outrider.engine.ingest.machine_registry import Complete, Describe, MachineRegistry, as_told
from outrider.engine.ingest.set_aside import IMPOSSIBLE_STATE, NotApplicableError
from outrider.engine.ingest.slots import DelayedStart, LostRun, Slot, Slots
from outrider.model import events as ev
from outrider.model.events import Event, NamedEvent
from outrider.model.jobs import UNSEEN_JOB, Job, JobSpec


class Normaliser:
    """Turns named events into numbered ones that are possible.

    Args:
        describe, complete: see `MachineRegistry`.

    Attributes:
        repairs: what was mended, by kind.
    """

    def __init__(self, describe: Describe, complete: Complete = as_told) -> None:
        self.repairs: Counter[str] = Counter()
        self._fuller: set[str] = set()
        self._job_registry = JobRegistry()
        self._slots = Slots()
        self._registry = MachineRegistry(describe, complete, self.repairs)

    @property
    def machine_names(self) -> list[str]:
        """Names of the machines, by number."""
        return self._registry.names

    def translate(self, event: NamedEvent) -> list[Event] | None:
        """The events that `event` means, in order; None if it was heard before.

        Raises:
            NotApplicableError: it cannot be, and nothing explains it.
        """
        time_s, kind, subject, extra = event
        if kind in ev.JOB_KINDS:
            return self._job_event(time_s, kind, subject, extra)
        return self._registry.translate(time_s, kind, subject, extra)

    @property
    def settles_at_s(self) -> float:
        """From when on `settle` has something to say; infinite where nothing waits."""
        return self._slots.due_s

    def settle(self, now_s: float) -> list[Event]:
        """What has waited for an event before `now_s` that did not come."""
        return [step for slot in self._slots.due(now_s) for step in self._let_start(slot)]

    @property
    def jobs(self) -> dict[str, JobHistory]:
        """The jobs that are here, by the name their source gives them."""
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
        mark = mark_of(time_s, kind, extra)
        registry = self._job_registry
        own = registry.name_at(name, mark[1])
        history = registry.jobs.get(name)
        older = history is not None and registry.names[history.number] != own
        if older:
            history = None  # the record is of an earlier job of this name
        if kind == ev.SUBMITTED and extra.recalled and registry.is_known(own, history, mark):
            self._recall(name, history, extra)
            return None
        if registry.was_told(own, kind, mark, history, older):
            return None
        if kind == ev.SUBMITTED:
            return self._submitted(time_s, name, history, extra, mark)
        before: list[Event] = []
        if history is None:
            history = registry.add(name, UNSEEN_JOB)
            self.repairs["unseen_submission"] += 1
            before = [(time_s, ev.SUBMITTED, history.number, UNSEEN_JOB)]
        history.add(mark)
        if name in self._fuller:
            self._fuller.discard(name)
            before.append((time_s, ev.CHANGED, history.number, history.spec))
        before += self._begun(name, history)
        try:
            return before + self._transition(time_s, kind, name, history, extra)
        except NotApplicableError:
            if not before:
                raise
            return before  # at least it told that the job is there

    def _recall(self, name: str, history: JobHistory | None, spec: JobSpec) -> None:
        """Keep what the record of a job's end says more than the first did (Torque: user, VO).

        It is told with the job's next event: by itself it is nothing that happened.
        """
        if history is not None and spec.user and not history.spec.user:
            history.spec = msgspec.structs.replace(spec, seen_submit=history.spec.seen_submit)
            self._fuller.add(name)

    def _submitted(
        self, time_s: float, name: str, history: JobHistory | None, extra: JobSpec, mark: Mark
    ) -> list[Event]:
        before: list[Event] = []
        if history is not None:
            if not history.spec.seen_submit:
                history.add(mark)
                return self._mended("late_submission", [])
            begun = self._begun(name, history)
            before = self._mended("submitted_twice", begun + self._end(name, history, time_s))
        history = self._job_registry.submit(name, extra, mark, time_s)
        history.add(mark)
        return [*before, (time_s, ev.SUBMITTED, history.number, extra)]

    def _mended(self, what: str, events: list[Event]) -> list[Event]:
        self.repairs[what] += 1
        return events

    def _transition(
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
            lost = self._leave(time_s, name, history, ev.EVICTED, "unknown")
            return self._mended("end_unseen", lost + self._arrive(time_s, name, history, *extra))
        if kind == ev.STARTED:
            released: Event = (time_s, ev.RELEASED, n, None)
            run = self._arrive(time_s, name, history, *extra)
            return self._mended("release_unseen", [released, *run])
        if kind == ev.HELD and running:  # a batch system may leave the eviction out
            lost = self._leave(time_s, name, history, ev.EVICTED, "held")
            return lost + self._step(time_s, kind, name, history, extra)
        given_up = self._slots.lost(name)
        if given_up is not None:
            return self._found(time_s, kind, name, history, given_up)
        if kind == ev.DISCONNECTED:
            return []  # from a machine on which its run had not begun yet
        if kind == ev.COMPLETED:
            return self._mended("run_unseen", self._end(name, history, time_s))
        raise NotApplicableError(IMPOSSIBLE_STATE)

    def _step(
        self, time_s: float, kind: int, name: str, history: JobHistory, extra: Any
    ) -> list[Event]:
        """A possible transition."""
        n = history.number
        if kind == ev.STARTED:
            return self._arrive(time_s, name, history, *extra)
        if kind == ev.EVICTED:
            return self._leave(time_s, name, history, kind, extra)
        if kind in (ev.COMPLETED, ev.REMOVED):
            return self._end(name, history, time_s, kind, extra)
        if kind == ev.DISCONNECTED:
            self._slots.disconnect(history.machine, name)
            return []
        if kind == ev.RECONNECTED:
            self._slots.reconnect(history.machine, name)
            return []
        if kind == ev.RESIZED:
            before = self._registry.resize_run(history.machine, extra - history.cpus, time_s)
            history.cpus = extra
            return [*before, (time_s, kind, n, extra)]
        history.state = AFTER[kind]
        return [(time_s, kind, n, extra)]

    # -- runs ---------------------------------------------------------------------------------

    def _arrive(
        self, time_s: float, name: str, history: JobHistory, machine: str, cpus: int, slot: str = ""
    ) -> list[Event]:
        """A run begins; not yet where its slot seems to be in use (see `Slots`)."""
        history.state, history.cpus, history.slot = RUNNING, cpus, slot
        m = self._registry.number_of(machine) if slot else None
        if m is None or self._slots.user((m, slot)) is None:
            return self._begin_run(time_s, name, history, machine, cpus)
        place = (m, slot)
        before = self._let_start(place) if self._slots.is_held(place) else []
        history.machine = m
        self._slots.delay(place, DelayedStart(time_s, name, machine, cpus))
        return before

    def _begin_run(
        self, time_s: float, name: str, history: JobHistory, machine: str, cpus: int
    ) -> list[Event]:
        self._slots.lost(name)
        over = self._make_room(time_s, name, machine, cpus)
        m, before = self._registry.begin_run(machine, cpus, time_s)
        history.machine = m
        if history.slot:
            self._slots.take((m, history.slot), name)
        return [*over, *before, (time_s, ev.STARTED, history.number, (m, cpus))]

    def _begun(self, name: str, history: JobHistory) -> list[Event]:
        """If the job's start is delayed, it happens now: more is told of the job."""
        place = (history.machine, history.slot)
        return self._let_start(place) if place[1] and self._slots.is_delayed(place, name) else []

    def _let_start(self, place: Slot) -> list[Event]:
        """Let a delayed start happen; a run still there is over, for a slot runs one job."""
        time_s, name, machine, cpus = self._slots.let_go(place)
        over: list[Event] = []
        user = self._slots.user(place)
        if user is not None:
            self.repairs["slot_used_again"] += 1
            over = self._lose(time_s, user)
        return over + self._begin_run(time_s, name, self.jobs[name], machine, cpus)

    def _make_room(self, time_s: float, name: str, machine: str, cpus: int) -> list[Event]:
        """Disconnected runs are over where a machine has no CPUs left for a run that begins."""
        over: list[Event] = []
        m = self._registry.number_of(machine)
        for other in () if m is None else self._slots.disconnected(m):
            if other != name and not self._registry.has_room(machine, cpus):
                self.repairs["disconnected_run_over"] += 1
                over += self._lose(time_s, other)
        return over

    def _lose(self, time_s: float, name: str) -> list[Event]:
        """A run is taken to be over, though nobody told."""
        history = self.jobs[name]
        self._slots.lose(name, LostRun(time_s, history.machine, history.cpus))
        self._slots.free((history.machine, history.slot), name)
        self._registry.end_run(history.machine, history.cpus, time_s)
        history.state, history.machine, history.slot = QUEUED, -1, ""
        return [(time_s, ev.EVICTED, history.number, "unknown")]

    def _found(
        self, time_s: float, kind: int, name: str, history: JobHistory, lost: LostRun
    ) -> list[Event]:
        """What is told of a run that was taken to be over: its end, or that it went on."""
        if kind == ev.EVICTED:
            return []
        went_on: list[Event] = [
            (lost.time_s, ev.STARTED, history.number, (lost.machine, lost.cpus)),
        ]
        if kind == ev.COMPLETED:
            ended = self._end(name, history, time_s, kind, None)
            return self._mended("run_went_on", went_on + ended)
        if kind == ev.RECONNECTED:
            history.state, history.machine, history.cpus = RUNNING, lost.machine, lost.cpus
            wider = self._registry.resize_run(lost.machine, lost.cpus, time_s)
            return self._mended("run_went_on", wider + went_on)
        self._slots.lose(name, lost)
        raise NotApplicableError(IMPOSSIBLE_STATE)

    def _vacate(self, name: str, history: JobHistory) -> list[Event]:
        """The job's slot is free: what has waited for it may start there."""
        place = (history.machine, history.slot)
        history.machine, history.slot = -1, ""
        self._slots.free(place, name)
        if not place[1]:
            return []
        return self._let_start(place) if self._slots.is_held(place) else []

    def _leave(
        self, time_s: float, name: str, history: JobHistory, kind: int, reason: str
    ) -> list[Event]:
        """A run ends before its job is done."""
        after = self._registry.end_run(history.machine, history.cpus, time_s, reason)
        history.state = QUEUED
        return [(time_s, kind, history.number, reason), *after, *self._vacate(name, history)]

    def _end(
        self, name: str, history: JobHistory, time_s: float, kind: int = ev.REMOVED,
        extra: Any = "unknown",
    ) -> list[Event]:  # fmt: skip
        """The job is gone."""
        if self.waits_for_slot(name):  # it ends before it began
            self._slots.let_go((history.machine, history.slot))
            history.machine, history.slot = -1, ""
        if history.machine >= 0:
            self._registry.end_run(history.machine, history.cpus, time_s)
        history.state = GONE
        self._slots.lost(name)
        self._fuller.discard(name)
        next_run = self._vacate(name, history)
        self._job_registry.end(name, history)
        return [(time_s, kind, history.number, extra), *next_run]

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
        self._registry.realign(joined, owned)
        return {history.number for history in self.jobs.values()}

    def waits_for_slot(self, name: str) -> bool:
        """Whether the job's start is known, and delayed until its slot is free (see `Slots`)."""
        history = self.jobs[name]
        return bool(history.slot) and self._slots.is_delayed((history.machine, history.slot), name)

    def _agrees(self, name: str, history: JobHistory, job: Job) -> bool:
        if self.waits_for_slot(name):  # the engine does not know of the start yet
            return job.state == QUEUED
        return history.agrees_with(job)

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "jobs": self._job_registry.save(),
            "machines": self._registry.save(),
            "repairs": dict(self.repairs),
            "fuller": sorted(self._fuller),
            "slots": self._slots.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._job_registry.restore(saved["jobs"])
        self._registry.restore(saved["machines"])
        self.repairs.clear()
        self.repairs.update(saved["repairs"])
        self._fuller = set(saved["fuller"])
        self._slots.restore(saved["slots"])
