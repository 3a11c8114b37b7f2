"""One look at a pool after the other: event log, queue and slots made into one batch."""

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from outrider.api import Batch, NamedEvent, events
from outrider_adapters.htcondor.pool_calls import PoolCalls
from outrider_adapters.htcondor.queue import QueueWatch
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.htcondor.slots import SlotWatch
from outrider_adapters.logtail import LogFollower, LogtailSettings

_VERSION: Final = 1
_CAUSE_WITHIN_S: Final = 60.0
"""How long after an eviction the state of the machine still tells why."""


class PoolWatch:
    """Everything that is seen of a pool. Synchronous, and it blocks where the pool does.

    Args:
        calls: the pool.
        event_log: where the log of its schedd is, and how it is read.
        settings: how it is watched.
        clock: Unix seconds now, by the pool's own clock.
        start_now: what is there at the very first look is history and no news.
        file_clock: Unix seconds now by the file system of the log.
    """

    def __init__(
        self,
        calls: PoolCalls,
        event_log: LogtailSettings,
        settings: WatchSettings,
        clock: Callable[[], float],
        start_now: bool = False,
        file_clock: Callable[[], float] = time.time,
    ) -> None:
        self._calls = calls
        ours = msgspec.structs.replace(event_log, system=calls.schedd_name)
        self._log = LogFollower(ours, file_clock)
        self._settings = settings
        self._clock = clock
        self._start_now = start_now
        self._first = False
        self._queue = QueueWatch(calls, settings)
        self._slots = SlotWatch(calls, settings)
        self._away_since_s: dict[str, float] = {}
        self._notes: list[str] = []
        self._snapshot_due_s = float("-inf")

    def start(self, cursor: Any) -> None:
        """Begin at the cursor of an earlier batch, or at the beginning if it is None.

        Raises:
            ValueError: the cursor is none of this watch's.
        """
        try:
            log, slots = (None, {}) if cursor is None else (cursor["log"], cursor["machines"])
            self._slots.restore(slots)
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise ValueError(f"no cursor of a watched HTCondor pool: {error}") from error
        self._log.start(log)
        self._queue.begin(resumed=cursor is not None)
        self._first = cursor is None and self._start_now
        self._snapshot_due_s = float("-inf")

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def look(self) -> Batch:
        """What happened since the last look, by time.

        A part of the pool that does not answer is told by the note and by an age that grows; the
        others are told all the same.
        """
        now_s = self._clock()
        self._notes = []
        snapshot = self._ask("schedd", now_s, self._queue.snapshot) if self._is_due(now_s) else None
        batch, _ = self._log.read()
        if batch.history:
            self._queue.hear(batch.events)
            batch.cursor = self._cursor(batch)
            return batch
        told = self._described(batch.events, now_s)
        evicted = self._queue.hear(told)
        slots = self._ask("collector", now_s, lambda: self._slots.look(now_s)) or []
        told = [self._with_cause(event, evicted.get(event, ""), now_s) for event in told]
        caught_up = batch.seen_until_s is not None
        if snapshot is not None and caught_up:
            told += self._ask("schedd", now_s, lambda: self._queue.mend(snapshot, now_s)) or []
            self._snapshot_due_s = now_s + self._settings.snapshot_s
        age_s = max(batch.age_s, self._age_s(now_s))
        history, self._first = self._first, False
        return msgspec.structs.replace(
            batch,
            # at equal times slots come first: a machine opens before a job starts there
            events=sorted(slots + told, key=lambda event: event[0]),
            cursor=self._cursor(batch),
            seen_until_s=now_s if caught_up else None,
            age_s=age_s,
            history=history,
            note="; ".join(filter(None, [batch.note, *self._notes])),
        )

    def _described(self, told: list[NamedEvent], now_s: float) -> list[NamedEvent]:
        if all(event[1] != events.SUBMITTED for event in told):
            return told
        return self._ask("schedd", now_s, lambda: self._queue.describe(told)) or told

    def _is_due(self, now_s: float) -> bool:
        ahead_s = self._snapshot_due_s - now_s
        return ahead_s <= 0.0 or ahead_s > self._settings.snapshot_s  # the clock was set back

    def _ask(self, whom: str, now_s: float, question: Callable[[], Any]) -> Any:
        """The answer, or None (and a note) if nobody gives it."""
        try:
            answer = question()
        except self._calls.failure as error:
            self._away_since_s.setdefault(whom, now_s)
            self._notes.append(f"the {whom} does not answer: {error}")
            return None
        self._away_since_s.pop(whom, None)
        return answer

    def _age_s(self, now_s: float) -> float:
        """How old the newest that is known of jobs and of machines is, whichever is older."""
        since_s = list(self._away_since_s.values())
        heard_s = self._slots.heard_s
        if heard_s is not None and now_s - heard_s > self._settings.ads_fresh_s:
            since_s.append(heard_s)
            self._notes.append(f"the newest slot ad is {now_s - heard_s:.0f} s old")
        return max(0.0, now_s - min(since_s, default=now_s))

    def _with_cause(self, event: NamedEvent, where: str, now_s: float) -> NamedEvent:
        """An eviction, with the reason that the machine's own state shows; the log gives none."""
        time_s, kind, job, reason = event
        if kind != events.EVICTED or reason != "unknown" or now_s - time_s > _CAUSE_WITHIN_S:
            return event
        machine = self._slots.machines.get(where)
        if machine is None or not (machine.owner or machine.draining):
            return event
        return time_s, kind, job, "drained" if machine.draining else "owner"

    def _cursor(self, batch: Batch) -> dict[str, Any]:
        return {"version": _VERSION, "log": batch.cursor, "machines": self._slots.save()}
