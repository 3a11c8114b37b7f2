"""Looks at one access point: by its event log and its queue, or by its queue alone."""

import time
from collections.abc import Callable
from math import inf
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec

from outrider.api import Batch, NamedEvent, events
from outrider_adapters.htcondor.claimed_slots import ClaimedSlots
from outrider_adapters.htcondor.job_specs import JobSpecs
from outrider_adapters.htcondor.pool_calls import AccessPoint, short_id
from outrider_adapters.htcondor.queue import QueueWatch
from outrider_adapters.htcondor.queue_alone import QueueAlone
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.logtail import LogFollower, LogtailSettings
from outrider_adapters.polling import Asking


class Look(NamedTuple):
    """What one look at an access point gave.

    Attributes:
        batch: events and state of the source; its cursor is that of the access point, and
            `seen_until_s` is None where more can be read at once.
        evicted: on which machine each eviction among the events was, where that is known; empty
            where no start of the run was told.
    """

    batch: Batch
    evicted: dict[NamedEvent, str]


class AccessPointWatch(Protocol):
    """One access point that is looked at again and again.

    Class variables:
        source: from where its jobs are known; a cursor is of one source.
    """

    source: ClassVar[str]

    def start(self, cursor: Any) -> None:
        """Begin at the cursor of an earlier look, or at the beginning.

        Raises:
            KeyError, TypeError, ValueError, msgspec.ValidationError: it is none of this watch's.
        """
        ...

    def look(self, now_s: float) -> Look:
        """What happened since the last look."""
        ...

    def mend(self) -> list[NamedEvent]:
        """What the queue says otherwise than the last look, where there are two sources."""
        ...

    def close(self) -> None:
        """Close what was opened."""
        ...


class LoggedAccessPoint:
    """Jobs by the event log; the queue says whose they are, and what the log lost.

    Args:
        point: whom to ask.
        log: where its event log is, and how it is read.
        settings: how it is watched.
        specs: makes what jobs ask for of their ads.
        asking: asks, and notes who does not answer.
        slots: say what they run.
        file_clock: Unix seconds now by the file system of the log.
    """

    source: ClassVar[str] = "log"

    def __init__(
        self,
        point: AccessPoint,
        log: LogtailSettings,
        settings: WatchSettings,
        specs: JobSpecs,
        asking: Asking,
        slots: ClaimedSlots,
        file_clock: Callable[[], float] = time.time,
    ) -> None:
        self._who = f"schedd {point.name}"
        self._prefix = f"{point.name}#"
        self._asking = asking
        self._slots = slots
        self._settings = settings
        self._log = LogFollower(msgspec.structs.replace(log, system=point.name), file_clock)
        self._queue = QueueWatch(point, settings, specs)
        self._snapshot: Any = None
        self._taken_s = -inf
        self._snapshot_due_s = -inf

    def start(self, cursor: Any) -> None:
        """As `AccessPointWatch` has it."""
        self._log.start(cursor)
        self._queue.begin(resumed=cursor is not None)
        self._snapshot_due_s = -inf

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def look(self, now_s: float) -> Look:
        """What the log tells; a queue that does not answer takes nothing away from it."""
        self._snapshot, self._taken_s = None, now_s
        if self._is_due(now_s):  # before the log is read: what it tells later is no contradiction
            self._snapshot = self._asking.ask(self._who, now_s, self._queue.snapshot)
        batch, _ = self._log.read()
        told = [self._own(event) for event in batch.events]
        if batch.history:
            self._queue.hear_history(told)
            return Look(msgspec.structs.replace(batch, events=told), {})
        if any(event[1] == events.SUBMITTED for event in told):
            news = told
            told = self._asking.ask(self._who, now_s, lambda: self._queue.describe(news)) or told
        evicted = self._queue.hear(told)
        # what the follower says is by the clock of its file system
        seen_s = None if batch.seen_until_s is None else now_s
        return Look(msgspec.structs.replace(batch, events=told, seen_until_s=seen_s), evicted)

    def _own(self, event: NamedEvent) -> NamedEvent:
        """An event of this access point's log, whatever its records say of the schedd's name."""
        job = event[2]
        if job.startswith(self._prefix):
            return event
        return (*event[:2], f"{self._prefix}{short_id(job)}", event[3])

    def mend(self) -> list[NamedEvent]:
        """What the log should have told by then and has not, by the snapshot before it."""
        snapshot, taken_s = self._snapshot, self._taken_s
        if snapshot is None:
            return []
        self._snapshot_due_s = taken_s + self._settings.snapshot_s
        told = self._asking.ask(self._who, taken_s, lambda: self._queue.mend(snapshot, taken_s))
        return self._slots.confirmed(told or [], taken_s)

    def _is_due(self, now_s: float) -> bool:
        ahead_s = self._snapshot_due_s - now_s
        was_set_back = ahead_s > self._settings.snapshot_s
        return ahead_s <= 0.0 or was_set_back or self._queue.is_needed


class QueuedAccessPoint:
    """Jobs by the queue and the history alone, where the event log cannot be read.

    Args:
        point: whom to ask.
        settings: how it is watched.
        specs: makes what jobs ask for of their ads.
        asking: asks, and notes who does not answer.
        slots: say what they run.
    """

    source: ClassVar[str] = "queue"

    def __init__(
        self,
        point: AccessPoint,
        settings: WatchSettings,
        specs: JobSpecs,
        asking: Asking,
        slots: ClaimedSlots,
    ) -> None:
        self._who = f"schedd {point.name}"
        self._asking = asking
        self._slots = slots
        self._settings = settings
        self._queue = QueueAlone(point, settings, specs)
        self._tried_s = -inf
        self._cursor: Any = None

    def start(self, cursor: Any) -> None:
        """As `AccessPointWatch` has it."""
        self._queue.restore(cursor)
        self._tried_s = -inf
        self._cursor = cursor

    def close(self) -> None:
        """Nothing was opened."""

    def look(self, now_s: float) -> Look:
        """What the queue tells, if it is time to ask. Between two askings nothing is known.

        One that does not answer holds up nobody: what it tells later is late.
        """
        told: list[NamedEvent] = []
        evicted: dict[NamedEvent, str] = {}
        if self._is_due(now_s):
            self._tried_s = now_s
            found = self._asking.ask(self._who, now_s, lambda: self._queue.look(now_s))
            if found is not None:
                told, evicted = found
                told = self._slots.confirmed(told, now_s)
                self._cursor = self._queue.save()
        seen_s = now_s if self._asking.is_away(self._who) else min(now_s, self._queue.asked_s)
        return Look(Batch(events=told, cursor=self._cursor, seen_until_s=seen_s), evicted)

    def _is_due(self, now_s: float) -> bool:
        since_s = now_s - self._tried_s
        return since_s >= self._settings.queue_s or since_s < 0.0  # the clock was set back

    def mend(self) -> list[NamedEvent]:
        """Nothing: there is no second source."""
        return []
