"""From what sources say to what can have happened: names to numbers, doubles out, gaps mended.

Logs are rotated and read twice, two logs tell of the same job, a source starts in the middle.
The tracker knows the state of every job and machine by name, drops what it has heard before, and
where a transition is impossible it puts in what must have happened in between and counts that.
The engine behind it sees a world without contradictions.
"""

from collections import Counter, OrderedDict
from typing import Any

import msgspec

from outrider.engine.ingest.job_history import GONE, HELD, QUEUED, RUNNING, SUSPENDED, Mark, Track
from outrider.engine.ingest.machine_registry import Complete, Describe, Roster, as_told
from outrider.engine.state.packing import pack, unpack
from outrider.model import events as ev
from outrider.model.events import Event, NamedEvent
from outrider.model.jobs import UNSEEN_JOB, JobSpec
from outrider.model.resources import Resources

_ENDED_REMEMBERED = 200_000


class Tracker:
    """Turns named events into numbered ones that are possible.

    Args:
        describe, complete: see `Roster`.
    """

    def __init__(self, describe: Describe, complete: Complete = as_told) -> None:
        self.jobs: dict[str, Track] = {}
        self.job_names: dict[int, str] = {}
        self.repairs: Counter[str] = Counter()
        # packed: a Track takes a kilobyte, and hundreds of thousands end in a busy week
        self._ended: OrderedDict[str, bytes] = OrderedDict()
        self._next_job = 0
        self._fuller: set[str] = set()
        self._roster = Roster(describe, complete, self.repairs)

    @property
    def machine_names(self) -> list[str]:
        """Names of the machines, by number."""
        return self._roster.names

    def translate(self, event: NamedEvent) -> list[Event] | None:
        """The events that `event` means, in order; None if it was heard before."""
        time_s, kind, subject, extra = event
        if kind in ev.JOB_KINDS:
            return self._job_event(time_s, kind, subject, extra)
        return self._roster.translate(time_s, kind, subject, extra)

    # -- jobs ---------------------------------------------------------------------------------

    def _job_event(self, time_s: float, kind: int, name: str, extra: Any) -> list[Event] | None:
        mark = _mark(time_s, kind, extra)
        track = self.jobs.get(name)
        if kind == ev.SUBMITTED and extra.recalled and self._is_known(name, mark):
            self._recall(name, track, extra)
            return None
        if track is not None:
            if track.was_told(mark, _is_possible(kind, track.state)):
                return None
        elif name in self._ended:
            if self._was_told_of_ended(name, kind, mark):
                return None
            if kind != ev.SUBMITTED:
                return self._mended("after_end", [])
        if kind == ev.SUBMITTED:
            return self._submitted(time_s, name, track, extra, mark)
        before: list[Event] = []
        if track is None:
            track = self._new(name, UNSEEN_JOB)
            self.repairs["unseen_submission"] += 1
            before = [(time_s, ev.SUBMITTED, track.number, UNSEEN_JOB)]
        track.add(mark)
        if name in self._fuller:
            self._fuller.discard(name)
            before.append((time_s, ev.CHANGED, track.number, track.spec))
        return before + self._transition(time_s, kind, name, track, extra)

    def _is_known(self, name: str, mark: Mark) -> bool:
        """Whether a recalled submission is of a job already known, not of a later namesake."""
        if name in self.jobs:
            return True
        return name in self._ended and not Track.unpack(self._ended[name]).is_past(mark)

    def _recall(self, name: str, track: Track | None, spec: JobSpec) -> None:
        """Keep what the record of a job's end says more than the first did (Torque: user, VO).

        It is told with the job's next event: by itself it is nothing that happened.
        """
        if track is not None and spec.user and not track.spec.user:
            track.spec = msgspec.structs.replace(spec, seen_submit=track.spec.seen_submit)
            self._fuller.add(name)

    def _submitted(
        self, time_s: float, name: str, track: Track | None, extra: JobSpec, mark: Mark
    ) -> list[Event]:
        before: list[Event] = []
        if track is not None:
            if not track.spec.seen_submit:
                track.add(mark)
                return self._mended("late_submission", [])
            before = self._mended("submitted_twice", self._end(name, track, time_s))
        track = self._new(name, extra)
        track.add(mark)
        return [*before, (time_s, ev.SUBMITTED, track.number, extra)]

    def _was_told_of_ended(self, name: str, kind: int, mark: Mark) -> bool:
        """Whether this was told before of a job that has ended; from now on it was."""
        track = Track.unpack(self._ended[name])
        told = track.was_told(mark, _is_possible(kind, GONE))
        if not told:
            track.add(mark)
        self._ended[name] = track.pack()
        return told

    def _new(self, name: str, spec: JobSpec) -> Track:
        before = self._ended.pop(name, None)
        if before is not None:  # the batch system began to count anew
            self.job_names.pop(Track.unpack(before).number, None)
        track = self.jobs[name] = Track(self._next_job, spec)
        self.job_names[self._next_job] = name
        self._next_job += 1
        return track

    def _mended(self, what: str, events: list[Event]) -> list[Event]:
        self.repairs[what] += 1
        return events

    def _transition(
        self, time_s: float, kind: int, name: str, track: Track, extra: Any
    ) -> list[Event]:
        """The steps a job event means in the job's present state."""
        n = track.number
        if kind == ev.CHANGED:
            asked = extra.get("resources")
            if asked is not None:  # plain data where it comes from the journal
                extra = {**extra, "resources": msgspec.convert(asked, Resources)}
            track.spec = msgspec.structs.replace(track.spec, **extra)
            return [(time_s, kind, n, track.spec)]
        if _is_possible(kind, track.state):
            return self._step(time_s, kind, name, track, extra)
        running = track.state in (RUNNING, SUSPENDED)
        if kind == ev.STARTED and running:
            lost = self._leave(time_s, track, ev.EVICTED, "unknown")
            return self._mended("end_unseen", lost + self._arrive(time_s, track, *extra))
        if kind == ev.STARTED:
            released: Event = (time_s, ev.RELEASED, n, None)
            run = self._arrive(time_s, track, *extra)
            return self._mended("release_unseen", [released, *run])
        if kind == ev.HELD and running:  # a batch system may leave the eviction out
            lost = self._leave(time_s, track, ev.EVICTED, "held")
            return lost + self._step(time_s, kind, name, track, extra)
        if kind == ev.COMPLETED:
            return self._mended("run_unseen", self._end(name, track, time_s))
        return self._mended(f"{ev.KIND_NAMES[kind]}_impossible", [])

    def _step(self, time_s: float, kind: int, name: str, track: Track, extra: Any) -> list[Event]:
        """A possible transition."""
        n = track.number
        if kind == ev.STARTED:
            return self._arrive(time_s, track, *extra)
        if kind == ev.EVICTED:
            return self._leave(time_s, track, kind, extra)
        if kind in (ev.COMPLETED, ev.REMOVED):
            return self._end(name, track, time_s, kind, extra)
        if kind == ev.RESIZED:
            before = self._roster.resize_run(track.machine, extra - track.cpus, time_s)
            track.cpus = extra
            return [*before, (time_s, kind, n, extra)]
        track.state = _AFTER[kind]
        return [(time_s, kind, n, extra)]

    def _arrive(self, time_s: float, track: Track, machine: str, cpus: int) -> list[Event]:
        m, before = self._roster.begin_run(machine, cpus, time_s)
        track.state, track.machine, track.cpus = RUNNING, m, cpus
        return [*before, (time_s, ev.STARTED, track.number, (m, cpus))]

    def _leave(self, time_s: float, track: Track, kind: int, reason: str) -> list[Event]:
        """A run ends before its job is done."""
        after = self._roster.end_run(track.machine, track.cpus, time_s, reason)
        track.state, track.machine = QUEUED, -1
        return [(time_s, kind, track.number, reason), *after]

    def _end(
        self, name: str, track: Track, time_s: float, kind: int = ev.REMOVED,
        extra: Any = "unknown",
    ) -> list[Event]:  # fmt: skip
        """The job is gone."""
        if track.machine >= 0:
            self._roster.end_run(track.machine, track.cpus, time_s)
        track.state, track.machine = GONE, -1
        self.jobs.pop(name, None)
        self._fuller.discard(name)
        self._ended[name] = track.pack()
        if len(self._ended) > _ENDED_REMEMBERED:
            _, oldest = self._ended.popitem(last=False)
            self.job_names.pop(Track.unpack(oldest).number, None)
        return [(time_s, kind, track.number, extra)]

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "jobs": pack((name, track.pack()) for name, track in self.jobs.items()),
            "ended": pack(self._ended.items()),
            "machines": self._roster.save(),
            "repairs": dict(self.repairs),
            "next_job": self._next_job,
            "fuller": sorted(self._fuller),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.jobs = {name: Track.unpack(packed) for name, packed in unpack(saved["jobs"])}
        self._ended = OrderedDict((name, packed) for name, packed in unpack(saved["ended"]))
        self.job_names = {track.number: name for name, track in self.jobs.items()}
        for name, packed in self._ended.items():
            self.job_names[Track.unpack(packed).number] = name
        self._roster.restore(saved["machines"])
        self.repairs.clear()
        self.repairs.update(saved["repairs"])
        self._next_job = saved["next_job"]
        self._fuller = set(saved["fuller"])


_AFTER = {ev.SUSPENDED: SUSPENDED, ev.RESUMED: RUNNING, ev.HELD: HELD, ev.RELEASED: QUEUED}
_POSSIBLE = {
    ev.SUBMITTED: (),
    ev.STARTED: (QUEUED,),
    ev.EVICTED: (RUNNING, SUSPENDED),
    ev.COMPLETED: (RUNNING, SUSPENDED),
    ev.REMOVED: (QUEUED, RUNNING, SUSPENDED, HELD),
    ev.SUSPENDED: (RUNNING,),
    ev.RESUMED: (SUSPENDED,),
    ev.HELD: (QUEUED,),
    ev.RELEASED: (HELD,),
    ev.CHANGED: (QUEUED, RUNNING, SUSPENDED, HELD),
    ev.RESIZED: (RUNNING, SUSPENDED),
}


def _is_possible(kind: int, state: int) -> bool:
    return state in _POSSIBLE[kind]


def _mark(time_s: float, kind: int, extra: Any) -> Mark:
    """What makes an event the same as another: kind, moment, and machine or reason."""
    detail = None
    if kind == ev.STARTED:
        detail = extra[0]
    elif isinstance(extra, (str, int)):
        detail = extra
    elif kind == ev.CHANGED:
        detail = repr(extra)
    return kind, round(time_s * 1000), detail
