"""What a log has told so far: events, and which of them the next records may still correct."""

from collections import Counter
from typing import Any, Final, TypeAlias

from outrider.api import JobSpec, NamedEvent, Reading, events
from outrider_adapters.readers.htcondor import event_mapping as meaning
from outrider_adapters.readers.htcondor.dates import Dates, Day

LATE_S: Final = 5
"""Records of several writers may stand this much out of order; more is a clock set back."""
_OPEN_BYTES: Final = 2 << 20  # 10,000 jobs removed at once write about this much
NO_CLOCK: Final = -1
_SPEC_UNTOLD: Final = JobSpec()

_KIND_OF_TRIGGER: Final = {
    meaning.SUBMIT: events.SUBMITTED,
    meaning.EXECUTE: events.STARTED,
    meaning.EVICTED: events.EVICTED,
}
_ENDED_QUEUEING: Final = {"removed": events.REMOVED, "held": events.HELD}


_Mark: TypeAlias = tuple[int, int, int, int, int, Day | None, float]
"""A place between two records, as the account stood there: offset, events, ignored, rejected,
clock, day, date given out last. A plain tuple, for there may be one a record."""


class Account:
    """Collects the events of one reading.

    Some records say more about one before them: a 028 names the machine of a 001 and the user of
    a 000, a 009 or 012 in the same second tells why a 004 was written. So an event stays open
    while the log's clock (the newest second in it) ticks once more, and what was written since
    the tick before last is not given out: `settle` leaves it unconsumed, to be fed again. A
    stretch of 2 MiB counts as a tick too, which bounds what waits.

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
        """A record begins: let the log's clock tick if it shows a new second."""
        second = int(time_s)
        on_time = self.clock - LATE_S <= second <= self.clock
        if on_time and offset < self.limit:
            return
        self._before = self._mark
        self._mark = self._here(offset)
        self._older, self._fresh = self._fresh, {}
        self.limit = offset + _OPEN_BYTES
        if not on_time:
            self.clock = second

    def ignore(self, kind: str) -> None:
        """The record is no event of ours."""
        self._ignored.append(kind)

    def reject(self, reason: str) -> None:
        """The record could not be read."""
        self._rejected.append(reason)

    def tell(self, time_s: float, kind: int, job: str) -> None:
        """The record is an event that needs no other: completed, suspended, resumed, released."""
        self.events.append((time_s, kind, job, None))

    def submitted(self, time_s: float, job: str) -> None:
        """A 000. Who submitted it may follow."""
        self._open(time_s, events.SUBMITTED, job, _SPEC_UNTOLD)

    def started(self, time_s: float, job: str, machine: str, cpus: int, slot: str = "") -> None:
        """A 001. A better name of the machine may follow."""
        self._open(time_s, events.STARTED, job, _run(machine, cpus, slot))

    def lost(self, time_s: float, job: str, reason: str) -> None:
        """A 002, 004 or 007: the run is over, its work is lost. The reason may follow.

        After a 024 in the same second it is the same end of the same run.
        """
        index = self._find(time_s, job, events.EVICTED)
        if index is not None and self._unreached.get(job) == index:
            self.events[index] = None
        self._open(time_s, events.EVICTED, job, reason)

    def not_reconnected(self, time_s: float, job: str) -> None:
        """A 024: the run is over, unless a 004 of the same second says so again."""
        self._unreached[job] = len(self.events)
        self._open(time_s, events.EVICTED, job, "unknown")

    def left_queue(self, time_s: float, job: str, reason: str, why: str = "") -> None:
        """A 009 (``removed``) or 012 (``held``): also why a run ended in the same second.

        `why` is what the log says of a hold.
        """
        index = self._find(time_s, job, events.EVICTED)
        if index is not None:
            self._correct(index, reason)
        kind = _ENDED_QUEUEING[reason]
        self.events.append((time_s, kind, job, reason if kind == events.REMOVED else why or None))
        self._fresh[job] = len(self.events) - 1

    def is_open(self, job: str) -> bool:
        """Return whether a 028 of this job can still say something new."""
        return job in self._fresh or job in self._older

    def machine_told(self, time_s: float, job: str, machine: str, slot: str = "") -> None:
        """A 028 names the machine of the 001 before it."""
        index = self._find(time_s, job, events.STARTED)
        if index is not None:
            _, cpus, *known = self._extra(index)
            self._correct(index, _run(machine, cpus, slot or "".join(known)))

    def spec_told(self, time_s: float, job: str, spec: JobSpec) -> None:
        """A 028 tells what the job of the 000 before it asks for."""
        index = self._find(time_s, job, events.SUBMITTED)
        if index is not None:
            self._correct(index, spec)

    def cause_told(self, time_s: float, job: str, code: int) -> None:
        """A 028 gives the ``VacateReasonCode`` of the 004 before it."""
        index = self._find(time_s, job, events.EVICTED)
        if index is not None and code == meaning.FAILED_EXEC_CODE:
            self._correct(index, "failed_start")

    def settle(self, end: int, final: bool) -> tuple[Reading, int]:
        """Close the account.

        Args:
            end: bytes read.
            final: give out what is still open, too.

        Returns:
            the reading (its lines not counted yet) and the log's clock at its end.
        """
        # two ticks' worth without a record: nothing will explain what came before it
        over = final or end >= self.limit + _OPEN_BYTES
        here = self._here(end) if over else self._before
        offset, told, passed, refused, clock, self._dates.day, self._dates.last_s = here
        kept = [event for event in self.events[:told] if event is not None]
        ignored = Counter(self._ignored[:passed])
        if len(kept) < told:  # the 024s that a 004 made superfluous
            ignored[meaning.IGNORED_NAMES[meaning.RECONNECT_FAILED]] += told - len(kept)
        reading = Reading(
            events=kept,
            consumed=offset,
            records=told + passed + refused,
            lines=0,
            ignored=dict(ignored),
            rejected=dict(Counter(self._rejected[:refused])),
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
        """The job's open event, if it is of this kind and of the same second."""
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
    """Return where a run is, as a `events.STARTED` tells it."""
    return (machine, cpus, slot) if slot else (machine, cpus)
