"""Events of a log so far, and those that the next records may still correct."""

from collections import Counter
from typing import Any, Final, TypeAlias

from outrider.api import JobSpec, NamedEvent, Reading, events
from outrider_adapters.readers.htcondor import event_mapping as meaning
from outrider_adapters.readers.htcondor.dates import Dates, Day

MAX_DISORDER_S: Final = 5
"""Maximum disorder of records of several writers, in seconds; more is a clock set back."""
_OPEN_BYTES: Final = 2 << 20  # the size of about 10,000 records of simultaneous removals
NO_CLOCK: Final = -1
_UNKNOWN_SPEC: Final = JobSpec()

_KIND_OF_TRIGGER: Final = {
    meaning.SUBMIT: events.SUBMITTED,
    meaning.EXECUTE: events.STARTED,
    meaning.EVICTED: events.EVICTED,
}
_ENDED_QUEUEING: Final = {"removed": events.REMOVED, "held": events.HELD}


_Mark: TypeAlias = tuple[int, int, int, int, int, Day | None, float]
"""State of the account between two records: offset, events, ignored, rejected,
clock, day, date returned last. A plain tuple, since there may be one per record.
"""


class Account:
    """Collector of the events of one reading.

    Some records complete one before them: a 028 names the machine of a 001 and the user of
    a 000; a 009 or 012 in the same second is the cause of a 004. So an event stays open
    until the log's clock (the newest second in it) has ticked once more. Records since
    the tick before last are not returned: `settle` leaves them unconsumed, to be fed again. A
    stretch of 2 MiB counts as a tick too, which bounds the waiting data.

    Attributes:
        clock: newest second of the log (Unix time), `NO_CLOCK` before the first.
        limit: offset from which a record counts as a tick.
    """

    __slots__ = (
        "_before",
        "_dates",
        "_fresh",
        "_ignored",
        "_mark",
        "_older",
        "_rejected",
        "_unreached",
        "clock",
        "events",
        "limit",
    )

    def __init__(self, dates: Dates, clock: int) -> None:
        self.events: list[NamedEvent | None] = []
        self.clock = clock
        self.limit = _OPEN_BYTES
        self._dates = dates
        self._ignored: list[str] = []
        self._rejected: list[str] = []
        self._fresh: dict[str, int] = {}
        self._older: dict[str, int] = {}
        self._unreached: dict[str, int] = {}
        self._mark = self._before = self._here(0)

    def at(self, offset: int, time_s: float) -> None:
        """Begin a record: let the log's clock tick if it shows a new second."""
        second = int(time_s)
        on_time = self.clock - MAX_DISORDER_S <= second <= self.clock
        if on_time and offset < self.limit:
            return
        self._before = self._mark
        self._mark = self._here(offset)
        self._older, self._fresh = self._fresh, {}
        self.limit = offset + _OPEN_BYTES
        if not on_time:
            self.clock = second

    def ignore(self, kind: str) -> None:
        """Count a record without an event."""
        self._ignored.append(kind)

    def reject(self, reason: str) -> None:
        """Count a record that could not be parsed."""
        self._rejected.append(reason)

    def add(self, time_s: float, kind: int, job: str) -> None:
        """Add an event that needs no other record: completed, suspended, resumed, released."""
        self.events.append((time_s, kind, job, None))

    def submitted(self, time_s: float, job: str) -> None:
        """Add a submission (000); its user may follow."""
        self._open(time_s, events.SUBMITTED, job, _UNKNOWN_SPEC)

    def started(self, time_s: float, job: str, machine: str, cpus: int, slot: str = "") -> None:
        """Add a start (001); a better name of the machine may follow."""
        self._open(time_s, events.STARTED, job, _run(machine, cpus, slot))

    def lost(self, time_s: float, job: str, reason: str) -> None:
        """Add a 002, 004 or 007: the run is over, its work is lost. The reason may follow.

        After a 024 in the same second it is the same end of the same run.
        """
        index = self._find(time_s, job, events.EVICTED)
        if index is not None and self._unreached.get(job) == index:
            self.events[index] = None
        self._open(time_s, events.EVICTED, job, reason)

    def not_reconnected(self, time_s: float, job: str) -> None:
        """Add a 024: the run is over, unless a 004 of the same second repeats it."""
        self._unreached[job] = len(self.events)
        self._open(time_s, events.EVICTED, job, "unknown")

    def left_queue(self, time_s: float, job: str, reason: str, why: str = "") -> None:
        """Add a 009 (``removed``) or 012 (``held``): also the cause of a run's end in that second.

        `why` is the log's text about a hold.
        """
        index = self._find(time_s, job, events.EVICTED)
        if index is not None:
            self._correct(index, reason)
        kind = _ENDED_QUEUEING[reason]
        self.events.append((time_s, kind, job, reason if kind == events.REMOVED else why or None))
        self._fresh[job] = len(self.events) - 1

    def is_open(self, job: str) -> bool:
        """Return whether a 028 of this job can still add something."""
        return job in self._fresh or job in self._older

    def set_machine(self, time_s: float, job: str, machine: str, slot: str = "") -> None:
        """Set the machine of the last 001, from a 028."""
        index = self._find(time_s, job, events.STARTED)
        if index is not None:
            _, cpus, *known = self._extra(index)
            self._correct(index, _run(machine, cpus, slot or "".join(known)))

    def set_spec(self, time_s: float, job: str, spec: JobSpec) -> None:
        """Set the request of the job of the last 000, from a 028."""
        index = self._find(time_s, job, events.SUBMITTED)
        if index is not None:
            self._correct(index, spec)

    def set_cause(self, time_s: float, job: str, code: int) -> None:
        """Set the cause of the last 004, from the ``VacateReasonCode`` of a 028."""
        index = self._find(time_s, job, events.EVICTED)
        if index is not None and code == meaning.FAILED_EXEC_CODE:
            self._correct(index, "failed_start")

    def settle(self, end: int, final: bool) -> tuple[Reading, int]:
        """Close the account and return its reading.

        Args:
            end: bytes read.
            final: also return events that are still open.

        Returns:
            the reading (its lines not counted yet) and the log's clock at its end.
        """
        # two ticks' worth without a record: no further record will explain earlier ones
        over = final or end >= self.limit + _OPEN_BYTES
        here = self._here(end) if over else self._before
        offset, events_n, ignored_n, rejected_n, clock, self._dates.day, self._dates.last_s = here
        kept = [event for event in self.events[:events_n] if event is not None]
        ignored = Counter(self._ignored[:ignored_n])
        if len(kept) < events_n:  # the 024s that a 004 made superfluous
            ignored[meaning.IGNORED_NAMES[meaning.RECONNECT_FAILED]] += events_n - len(kept)
        reading = Reading(
            events=kept,
            consumed=offset,
            records=events_n + ignored_n + rejected_n,
            lines=0,
            ignored=dict(ignored),
            rejected=dict(Counter(self._rejected[:rejected_n])),
        )
        return reading, clock

    def _here(self, offset: int) -> _Mark:
        return (
            offset,
            len(self.events),
            len(self._ignored),
            len(self._rejected),
            self.clock,
            self._dates.day,
            self._dates.last_s,
        )

    def _open(self, time_s: float, kind: int, job: str, extra: object) -> None:
        self._fresh[job] = len(self.events)
        self.events.append((time_s, kind, job, extra))

    def _find(self, time_s: float, job: str, kind: int) -> int | None:
        """Return the index of the job's open event, if it is of this kind and second."""
        index = self._fresh.get(job)
        if index is None:
            index = self._older.get(job)
            if index is None:
                return None
        event = self.events[index]
        if event is None or event[1] != kind or int(event[0]) != int(time_s):
            return None
        return index

    def _extra(self, index: int) -> tuple[Any, ...]:
        event = self.events[index]
        return ("", 1) if event is None else event[3]

    def _correct(self, index: int, extra: object) -> None:
        event = self.events[index]
        if event is not None:
            self.events[index] = (*event[:3], extra)


def _run(machine: str, cpus: int, slot: str) -> tuple[str, int] | tuple[str, int, str]:
    """Return the place of a run, as in an `events.STARTED`."""
    return (machine, cpus, slot) if slot else (machine, cpus)
