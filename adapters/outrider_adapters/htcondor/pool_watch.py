"""Poll a pool: merge the events of its access points and slots into batches."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from math import inf
from typing import Any, Final

import msgspec

from outrider.api import Batch, NamedEvent, events
from outrider_adapters.htcondor.access_points import (
    AccessPointWatch,
    LoggedAccessPoint,
    Look,
    QueuedAccessPoint,
)
from outrider_adapters.htcondor.eligibility import EligibilityWatch
from outrider_adapters.htcondor.job_steps import (
    NOT_CAUSED_BY_SLOT,
    REASONS,
    UNKNOWN_REASON,
    JobSpecs,
    LostRun,
    access_points_of,
    had_begun,
    started,
)
from outrider_adapters.htcondor.lease_edits import OWN_HOLD
from outrider_adapters.htcondor.machines import MachineState, ad_time_s, is_owned
from outrider_adapters.htcondor.pool_calls import (
    ID_ATTRIBUTES,
    AccessPoint,
    Ad,
    PoolCalls,
    in_clusters,
    job_name,
    number,
    quote,
)
from outrider_adapters.htcondor.reasons import NegotiatorWatch
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.htcondor.slots import ClaimedSlots, SlotWatch
from outrider_adapters.logtail import LogtailSettings
from outrider_adapters.polling import Asking

_VERSION: Final = 2
_COLLECTOR: Final = "collector"
_CURSOR_KEPT_S: Final = 60.0


class PoolWatch:
    """Watch on a whole pool. It is synchronous, and blocks as long as the pool does.

    Args:
        calls: calls to the pool.
        event_logs: location of each access point's log, and settings for reading it, by access
            point. An access point without one is watched by its queue alone.
        settings: settings for watching the pool.
        clock: Unix seconds now, by the pool's own clock.
        start_now: the state at the very first look is history, not news.
        pause: sleeps for some seconds of the pool's time.

    Attributes:
        slots: watch on the slots of the pool.
        eligibility: watch on the machines that jobs may use.
        negotiator: watch on the negotiator.
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
        self.negotiator = NegotiatorWatch(calls, settings.ads_fresh_s)
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

        An access point that the cursor does not know begins at its beginning. One that it knows
        from another source (its log can be read now) takes over from that.

        Raises:
            ValueError: the cursor was not made by this watch.
        """
        try:
            points, slots = ({}, {}) if cursor is None else (cursor["points"], cursor["machines"])
            self.slots.restore(slots)
            self._own_holds.restore([] if cursor is None else cursor.get("own_holds", []))
            self.negotiator.was_seen = cursor is not None and bool(cursor.get("negotiates"))
            self._cursors = {name: points.get(name) or {} for name in self._points}
            looked_s = -inf if cursor is None else float(cursor.get("looked_s", -inf))
            for name, watch in self._points.items():
                watch.start(self._cursors[name], looked_s)
        except (AttributeError, KeyError, TypeError, msgspec.ValidationError) as error:
            raise ValueError(f"no cursor of a watched HTCondor pool: {error}") from error
        self._held = {}
        self._cursor_s = -inf
        self._first = cursor is None and self._start_now

    def close(self) -> None:
        """Close the event logs."""
        for watch in self._points.values():
            watch.close()

    @property
    def now_s(self) -> float:
        """Unix seconds now, by the pool's own clock."""
        return self._clock()

    def look(self) -> Batch:
        """Return what happened since the last look, by time.

        A part of the pool that does not answer is named in the note, and the age grows. The events
        of the other parts are returned all the same.
        """
        now_s = self._clock()
        eligibility = self.eligibility
        if not self._asking.is_away(
            _COLLECTOR
        ):  # before the jobs: it determines which attributes to query
            self._asking.ask(_COLLECTOR, now_s, lambda: eligibility.look_at_slots(now_s))
        looks = {
            name: self._held[name] if name in self._held else watch.look(now_s)
            for name, watch in self._points.items()
        }
        self._held = {}
        historic = {name: look for name, look in looks.items() if look.batch.history}
        if historic:  # news of the others wait until all history has been read
            self._held = {name: look for name, look in looks.items() if name not in historic}
            past = self._joined(historic, None, history=True)
            past.events = access_points_of(past.events) + past.events
            return self._with_cursor(past, now_s)
        slots = self._asking.ask(_COLLECTOR, now_s, lambda: self.slots.look(now_s)) or []
        if not self._asking.is_away(_COLLECTOR):
            self._asking.ask(_COLLECTOR, now_s, lambda: self.negotiator.look(now_s))
        new_events: list[NamedEvent] = []
        for point in self._calls.access_points:
            new_events += self._causes.add_causes(
                point, looks[point.name], self.slots.machines, now_s
            )
        seen_s = [look.batch.seen_until_s for look in looks.values()]
        until_s = min((at_s for at_s in seen_s if at_s is not None), default=now_s)
        is_current = None not in seen_s
        if is_current:
            for watch in self._points.values():
                new_events += watch.repair()
        new_events = self._own_holds.without(new_events)
        history, self._first = self._first, False
        slots += access_points_of(new_events) + self._classes(new_events, now_s)
        joined = self._joined(looks, until_s if is_current else None, history)
        joined.standing = history
        # at equal times slots come first: a machine opens before a job starts there, and a class
        # is reported before a job of it is submitted
        joined.events = sorted(slots + new_events, key=lambda event: event[0])
        slots_s = self._slots_age_s(now_s)
        joined.age_s = max(joined.age_s, slots_s, now_s - self._asking.away_since_s(now_s))
        old = f"the newest slot ad is {slots_s:.0f} s old" if slots_s else ""
        joined.note = "; ".join(filter(None, [joined.note, *self._asking.notes(), old]))
        joined.problem = "; ".join(filter(None, [joined.problem, self.negotiator.problem]))
        return self._with_cursor(joined, now_s)

    def _with_cursor(self, batch: Batch, now_s: float) -> Batch:
        """Return the batch with its cursor; without events the last cursor is kept for a while.

        A cursor names every machine, so that making, sending and checking it costs more than the
        rest of a look at a quiet pool. Resuming from the last cursor gives the same events.
        """
        counts = batch.rejected, batch.ignored
        is_fresh = 0.0 <= now_s - self._cursor_s < _CURSOR_KEPT_S
        if batch.events or batch.history or counts != self._counts or not is_fresh:
            self._counts, self._cursor_s = counts, now_s
            self._cursor = {
                "version": _VERSION,
                "looked_s": now_s,
                "points": dict(self._cursors),
                "machines": self.slots.save(),
                "own_holds": self._own_holds.save(),
                "negotiates": self.negotiator.was_seen,
            }
        batch.cursor = self._cursor
        return batch

    def _classes(self, new_events: list[NamedEvent], now_s: float) -> list[NamedEvent]:
        """Return new and changed classes of machines, dated before the first job of them."""
        if self._asking.is_away(_COLLECTOR):
            return []
        first_s = min((event[0] for event in new_events), default=now_s)
        news = self._asking.ask(_COLLECTOR, now_s, lambda: self.eligibility.news(now_s, first_s))
        return news or []

    def _slots_age_s(self, now_s: float) -> float:
        """Return the newest slot ad's age in seconds; 0 if it is fresh, or there is none."""
        heard_s = self.slots.heard_s
        age_s = 0.0 if heard_s is None else now_s - heard_s
        return age_s if age_s > self._settings.ads_fresh_s else 0.0

    def _joined(
        self, looks: Mapping[str, Look], seen_until_s: float | None, history: bool
    ) -> Batch:
        """Merge the looks at several access points into one batch, and store their cursors."""
        batches = [look.batch for look in looks.values()]
        self._cursors |= {name: look.batch.cursor for name, look in looks.items()}
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


# -- causes ----------------------------------------------------------------------------------------
# Infer eviction reasons from later queue and slot states; event logs rarely record them.

_CAUSE_WINDOW_S: Final = 60.0
"""Seconds after an eviction in which the states of the job and its slot show the reason."""

_MAX_QUERIED: Final = 500
"""Evictions of one look that are queried; of more, only the machines' states are used."""

_CLOCK_TOLERANCE_S: Final = 2.0
"""Largest difference between the times of one moment in log, queue and slot ad, in seconds."""

_AD_DELAY_S: Final = 2.0
_PAUSE_S: Final = 0.5
_MAX_PAUSES: Final = 3
"""Number of pauses: a slot's new ad reaches the collector about a second after the change."""

_OWNER_WITHIN_S: Final = 10.0
"""Seconds after an eviction in which an owner's return counts as its reason."""

_JOB_ATTRIBUTES: Final = (
    *ID_ATTRIBUTES, "User", "JobStatus", "JobUniverse", "VacateReasonCode", "LastVacateTime",
    "LastRemoteHost", "JobCurrentStartDate", "JobLastStartDate", "JobCurrentStartExecutingDate",
    "RequestCpus",
)  # fmt: skip
_NO_RUN: Final = LostRun("")
_PREEMPTIONS: Final = ("RecentJobRankPreemptions", "RecentJobUserPrioPreemptions")
_SLOT_ATTRIBUTES: Final = (
    "Name", "State", "EnteredCurrentState", "MyCurrentTime", "LastHeardFrom", "OwnerActive",
    "Draining", "RemoteOwner", "PreemptingUser", *_PREEMPTIONS,
)  # fmt: skip


class Causes:
    """Search for the causes of evictions.

    Args:
        calls: calls to the pool.
        asking: makes the queries and records peers that do not answer.
        pause: sleeps for some seconds.
    """

    def __init__(self, calls: PoolCalls, asking: Asking, pause: Callable[[float], None]) -> None:
        self._calls = calls
        self._asking = asking
        self._pause = pause

    def add_causes(
        self, point: AccessPoint, look: Look, machines: Mapping[str, MachineState], now_s: float
    ) -> list[NamedEvent]:
        """Return the events of a look at an access point, evictions with their causes.

        A run without a reported start has failed to begin. If the queue knows its slot, both start
        and eviction are returned; if it does not, neither is: there is no run to be lost. A run
        whose start only the queue reported has failed to begin, unless the ad has a mark of it.

        Args:
            point: the access point.
            look: the look at it.
            machines: current machines of the pool.
            now_s: time of the look.
        """
        wanted = [event for event in look.batch.events if _lacks_cause(event, now_s)][
            -_MAX_QUERIED:
        ]
        jobs = self._jobs(point, wanted, now_s) if wanted else {}
        slots = self._slots(jobs.values(), now_s) if jobs else {}
        new_events: list[NamedEvent] = []
        for event in look.batch.events:
            if not _lacks_cause(event, now_s):
                new_events.append(event)
                continue
            ad = jobs.get(event[2])
            run = look.evicted.get(event, _NO_RUN)
            if event in look.evicted and not run.machine:
                new_events += _failed_start(event, ad)
                continue
            slot = None if ad is None else slots.get(str(ad.get("LastRemoteHost")))
            reason = _cause(event, ad, slot, machines.get(run.machine))
            if reason == UNKNOWN_REASON and ad is not None and run.queued_start_s is not None:
                reason = reason if had_begun(ad, run.queued_start_s) else "failed_start"
            new_events.append((*event[:3], reason))
        return new_events

    def _jobs(
        self, point: AccessPoint, wanted: Iterable[NamedEvent], now_s: float
    ) -> dict[str, Any]:
        """Return the ads of the jobs that are still in the queue, by name."""
        constraint = in_clusters(event[2] for event in wanted)
        ads = self._asking.ask(
            f"schedd {point.name}",
            now_s,
            lambda: point.schedd.query(constraint, list(_JOB_ATTRIBUTES)),
        )
        return {job_name(ad, point.name): ad for ad in ads or ()}

    def _slots(self, jobs: Collection[Ad], now_s: float) -> dict[str, Any]:
        """Return the last slots of jobs, by name; dynamic slots are included."""
        names = {str(ad["LastRemoteHost"]) for ad in jobs if "LastRemoteHost" in ad}
        if not names:
            return {}
        constraint = f"member(Name, {{{','.join(map(quote, sorted(names)))}}})"
        slots: dict[str, Any] = {}
        for pauses in range(_MAX_PAUSES + 1):
            if pauses:
                self._pause(_PAUSE_S)
            ads = self._asking.ask("collector", now_s, lambda: self._query_slots(constraint))
            slots = {str(ad["Name"]): ad for ad in ads or ()}
            if ads is None or not any(_is_due(ad, slots, now_s) for ad in jobs):
                break
        return slots

    def _query_slots(self, constraint: str) -> Any:
        calls = self._calls
        return calls.collector.query(calls.slot_ads, constraint, list(_SLOT_ATTRIBUTES))


def _is_due(job: Ad, slots: Mapping[str, Any], now_s: float) -> bool:
    """Return whether a slot vacated a moment ago will soon report its new state."""
    vacated_s = number(job, "LastVacateTime")
    slot = slots.get(str(job.get("LastRemoteHost")))
    return slot is not None and now_s - vacated_s < _AD_DELAY_S and ad_time_s(slot) <= vacated_s


def _lacks_cause(event: NamedEvent, now_s: float) -> bool:
    """Return whether an event is a recent eviction whose cause may still be found."""
    is_recent = now_s - event[0] <= _CAUSE_WINDOW_S
    return event[1] == events.EVICTED and event[3] in (UNKNOWN_REASON, "held") and is_recent


def _failed_start(event: NamedEvent, ad: Any) -> list[NamedEvent]:
    """Return the start and eviction of a run whose start is missing in the log."""
    if ad is None:
        return []
    slot = str(ad.get("LastRemoteHost") or "")
    begun_s, next_s = number(ad, "JobCurrentStartDate"), inf
    if begun_s > event[0]:  # that is the next attempt
        begun_s, next_s = number(ad, "JobLastStartDate"), begun_s
        if not begun_s:
            return []
    if not slot or begun_s > event[0] or had_begun(ad, begun_s, next_s):
        return []
    if begun_s == int(event[0]):
        begun_s = event[0]
    return [started(event[2], begun_s, slot, ad), (*event[:3], "failed_start")]


def _cause(event: NamedEvent, ad: Any, slot: Any, machine: MachineState | None) -> str:
    """Return an eviction's reason: by the job's code, else by its slot, else by its machine."""
    reported = str(event[3])
    vacated_s = 0.0 if ad is None else number(ad, "LastVacateTime")
    if abs(vacated_s - event[0]) > _CLOCK_TOLERANCE_S:  # its last run is a different one
        ad = slot = None
    code = -1 if ad is None else int(number(ad, "VacateReasonCode"))
    if code in REASONS:
        return REASONS[code]
    if reported != UNKNOWN_REASON or code in NOT_CAUSED_BY_SLOT:
        return reported
    if slot is not None and ad_time_s(slot) >= vacated_s:
        return _cause_by_slot(slot, str(ad.get("User") or ""), vacated_s)
    if machine is None or not (machine.owner or machine.draining):
        return reported
    return "drained" if machine.draining else "owner"


def _cause_by_slot(slot: Any, user: str, vacated_s: float) -> str:
    """Return an eviction's reason by the slot's ad after the eviction."""
    entered_s = number(slot, "EnteredCurrentState")
    if slot.get("Draining") is True or slot.get("State") == "Drained":
        return "drained"
    if is_owned(slot):
        return "owner" if entered_s <= vacated_s + _OWNER_WITHIN_S else UNKNOWN_REASON
    if slot.get("State") == "Preempting" and "PreemptingUser" in slot:
        return "preempted"
    if slot.get("State") != "Claimed" or abs(entered_s - vacated_s) >= _CLOCK_TOLERANCE_S:
        return UNKNOWN_REASON
    if any(name in slot for name in _PREEMPTIONS):
        return "preempted" if any(number(slot, name) for name in _PREEMPTIONS) else UNKNOWN_REASON
    return "preempted" if str(slot.get("RemoteOwner") or user) != user else UNKNOWN_REASON


# -- own holds -------------------------------------------------------------------------------------
# Holds by which Outrider keeps jobs in the queue: its policies see these jobs as waiting.

_ENDS: Final = frozenset({events.STARTED, events.COMPLETED, events.REMOVED})


class OwnHolds:
    """Jobs that are held only by Outrider's own lease."""

    def __init__(self) -> None:
        self._held: set[str] = set()

    def without(self, new_events: Iterable[NamedEvent]) -> list[NamedEvent]:
        """Return the events without these holds, and without the releases that end them."""
        left = []
        for event in new_events:
            _, kind, job, extra = event
            if kind == events.HELD and extra == OWN_HOLD:
                self._held.add(job)
            elif kind == events.RELEASED and job in self._held:
                self._held.discard(job)
            else:
                left.append(event)
                if kind in _ENDS:
                    self._held.discard(job)
        return left

    def save(self) -> list[str]:
        """Return the jobs, as JSON types."""
        return sorted(self._held)

    def restore(self, saved: object) -> None:
        """Resume from the value of `save`. Raises `msgspec.ValidationError` if it does not fit."""
        self._held = msgspec.convert(saved, set[str])
