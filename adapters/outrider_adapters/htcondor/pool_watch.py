"""One look at a pool after the other: access points and slots made into one batch."""

from collections import Counter
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final

import msgspec

from outrider.api import Batch, NamedEvent
from outrider_adapters.htcondor.access_points import (
    AccessPointWatch,
    LoggedAccessPoint,
    Look,
    QueuedAccessPoint,
)
from outrider_adapters.htcondor.causes import Causes
from outrider_adapters.htcondor.claimed_slots import ClaimedSlots
from outrider_adapters.htcondor.eligibility import EligibilityWatch
from outrider_adapters.htcondor.job_specs import JobSpecs
from outrider_adapters.htcondor.own_holds import OwnHolds
from outrider_adapters.htcondor.pool_calls import PoolCalls
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.htcondor.slots import SlotWatch
from outrider_adapters.logtail import LogtailSettings
from outrider_adapters.polling import Asking

_VERSION: Final = 2
_COLLECTOR: Final = "collector"
_CURSOR_KEPT_S: Final = 60.0


class PoolWatch:
    """Everything that is seen of a pool. Synchronous, and it blocks where the pool does.

    Args:
        calls: the pool.
        event_logs: where the log of an access point is, and how it is read, by the access point's
            name. One that has none is watched by its queue alone.
        settings: how it is watched.
        clock: Unix seconds now, by the pool's own clock.
        start_now: what is there at the very first look is history and no news.
        pause: lets so many seconds of the pool's time pass.

    Attributes:
        slots: of the pool, as of the last look.
        eligibility: which machines jobs may use.
    """

    def __init__(
        self,
        calls: PoolCalls,
        event_logs: Mapping[str, LogtailSettings],
        settings: WatchSettings,
        clock: Callable[[], float],
        start_now: bool = False,
        pause: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._calls = calls
        self._settings = settings
        self._clock = clock
        self._start_now = start_now
        self._first = False
        self._asking = Asking(calls.failure)
        self._causes = Causes(calls, self._asking, pause)
        self.slots = SlotWatch(calls, settings)
        self.eligibility = EligibilityWatch(calls, settings.snapshot_s)
        specs = JobSpecs(settings.estimate_attribute, self.eligibility)
        claims = ClaimedSlots(calls, self._asking, self.eligibility.knows)
        self._points: dict[str, AccessPointWatch] = {}
        for point in calls.access_points:
            log = event_logs.get(point.name)
            self._points[point.name] = (
                QueuedAccessPoint(point, settings, specs, self._asking, claims)
                if log is None
                else LoggedAccessPoint(point, log, settings, specs, self._asking, claims)
            )
        self._cursors: dict[str, Any] = {}
        self._cursor: Any = None
        self._cursor_s = -inf
        self._counts: Any = None
        self._held: dict[str, Look] = {}
        self._own_holds = OwnHolds()

    def start(self, cursor: Any) -> None:
        """Begin at the cursor of an earlier batch, or at the beginning if it is None.

        An access point that the cursor does not know, or knows from another source (its log can be
        read now), begins at its beginning.

        Raises:
            ValueError: the cursor is none of this watch's.
        """
        try:
            points, slots = ({}, {}) if cursor is None else (cursor["points"], cursor["machines"])
            self.slots.restore(slots)
            self._own_holds.restore([] if cursor is None else cursor.get("own_holds", []))
            self._cursors = {name: points.get(name) or {} for name in self._points}
            for name, watch in self._points.items():
                watch.start(self._cursors[name].get(watch.source))
        except (AttributeError, KeyError, TypeError, msgspec.ValidationError) as error:
            raise ValueError(f"no cursor of a watched HTCondor pool: {error}") from error
        self._held = {}
        self._cursor_s = -inf
        self._first = cursor is None and self._start_now

    def close(self) -> None:
        """Close the logs."""
        for watch in self._points.values():
            watch.close()

    def look(self) -> Batch:
        """What happened since the last look, by time.

        A part of the pool that does not answer is told by the note and by an age that grows; the
        others are told all the same.
        """
        now_s = self._clock()
        eligibility = self.eligibility
        if not self._asking.is_away(_COLLECTOR):  # before the jobs: it says what to ask of them
            self._asking.ask(_COLLECTOR, now_s, lambda: eligibility.look_at_slots(now_s))
        looks = {
            name: self._held[name] if name in self._held else watch.look(now_s)
            for name, watch in self._points.items()
        }
        self._held = {}
        historic = {name: look for name, look in looks.items() if look.batch.history}
        if historic:  # news of the others wait until all history has been told
            self._held = {name: look for name, look in looks.items() if name not in historic}
            return self._with_cursor(self._joined(historic, None, history=True), now_s)
        slots = self._asking.ask(_COLLECTOR, now_s, lambda: self.slots.look(now_s)) or []
        told: list[NamedEvent] = []
        for point in self._calls.access_points:
            told += self._causes.told(point, looks[point.name], self.slots.machines, now_s)
        seen_s = [look.batch.seen_until_s for look in looks.values()]
        until_s = min((at_s for at_s in seen_s if at_s is not None), default=now_s)
        is_current = None not in seen_s
        if is_current:
            for watch in self._points.values():
                told += watch.mend()
        told = self._own_holds.without(told)
        history, self._first = self._first, False
        slots += self._classes(told, now_s)
        joined = self._joined(looks, until_s if is_current else None, history)
        joined.standing = history
        # at equal times slots come first: a machine opens before a job starts there, and a class
        # is told before a job of it is submitted
        joined.events = sorted(slots + told, key=lambda event: event[0])
        slots_s = self._slots_age_s(now_s)
        joined.age_s = max(joined.age_s, slots_s, now_s - self._asking.away_since_s(now_s))
        old = f"the newest slot ad is {slots_s:.0f} s old" if slots_s else ""
        joined.note = "; ".join(filter(None, [joined.note, *self._asking.notes(), old]))
        return self._with_cursor(joined, now_s)

    def _with_cursor(self, batch: Batch, now_s: float) -> Batch:
        """The batch with its cursor: the one before where nothing was told since, and not for long.

        It names every machine, so that making, sending and checking it costs more than all else in
        a look at a quiet pool. To go on from the one before tells the same.
        """
        counts = batch.rejected, batch.ignored
        is_fresh = 0.0 <= now_s - self._cursor_s < _CURSOR_KEPT_S
        if batch.events or batch.history or counts != self._counts or not is_fresh:
            self._counts, self._cursor_s = counts, now_s
            self._cursor = {
                "version": _VERSION,
                "points": dict(self._cursors),
                "machines": self.slots.save(),
                "own_holds": self._own_holds.save(),
            }
        batch.cursor = self._cursor
        return batch

    def _classes(self, told: list[NamedEvent], now_s: float) -> list[NamedEvent]:
        """Classes of machines that are new or have changed, before the first job of them."""
        if self._asking.is_away(_COLLECTOR):
            return []
        first_s = min((event[0] for event in told), default=now_s)
        news = self._asking.ask(_COLLECTOR, now_s, lambda: self.eligibility.news(now_s, first_s))
        return news or []

    def _slots_age_s(self, now_s: float) -> float:
        """How old the newest slot ad is, seconds; 0 where it is fresh, or there is none."""
        heard_s = self.slots.heard_s
        age_s = 0.0 if heard_s is None else now_s - heard_s
        return age_s if age_s > self._settings.ads_fresh_s else 0.0

    def _joined(
        self, looks: Mapping[str, Look], seen_until_s: float | None, history: bool
    ) -> Batch:
        """What several access points told, as one batch from which all of them go on."""
        batches = [look.batch for look in looks.values()]
        self._cursors |= {
            name: {self._points[name].source: look.batch.cursor} for name, look in looks.items()
        }
        rejected: Counter[str] = Counter()
        ignored: Counter[str] = Counter()
        for batch in batches:
            rejected.update(batch.rejected)
            ignored.update(batch.ignored)
        return Batch(
            events=[event for batch in batches for event in batch.events],
            cursor=None,
            seen_until_s=seen_until_s,
            age_s=max((batch.age_s for batch in batches), default=0.0),
            rejected=dict(rejected),
            ignored=dict(ignored),
            history=history,
            note="; ".join(filter(None, (batch.note for batch in batches))),
            problem="; ".join(filter(None, (batch.problem for batch in batches))),
            written_s={name: at_s for batch in batches for name, at_s in batch.written_s.items()},
        )
