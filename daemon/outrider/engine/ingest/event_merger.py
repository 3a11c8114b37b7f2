"""Live feeder: merges several sources, out of order, into one stream of events with ticks.

Events wait until every source has been seen up to their time (the watermark). Then they enter the
engine in the order of time, with ticks between time stamps as in a replay. The result depends only
on arrivals and watermarks, and both are in the journal: replayed, they give the same stream.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import inf, nextafter
from typing import Any

from outrider.engine.ingest.bounded_names import Names
from outrider.engine.ingest.machine_registry import Complete, Describe, as_reported
from outrider.engine.ingest.normaliser import Normaliser
from outrider.engine.ingest.set_aside import (
    FAULT,
    IMPLAUSIBLE_TIME,
    REASONS,
    NotApplicableError,
    SetAside,
    TimeLimits,
    refuse_impossible,
)
from outrider.model.events import JOB_KINDS, KIND_NAMES, STARTED, TICK, Event, NamedEvent

EventIdentity = tuple[str, float, int, str]
"""Identity of an event: label of its adapter, time_s, kind, subject."""


class EventMerger:
    """Merge of sources by time, with normalised events and added ticks.

    It is also the engine's actuator (`outrider.engine.Actuator`), which starts nothing.

    Args:
        sources: labels of the adapters; the slowest of them holds the watermark.
        describe, complete: the site's information on machines; see `MachineRegistry`.
        names: limits on the names that are followed; None: all are.

    Attributes:
        now: everything up to this time has entered the engine.
        counts: events by source and kind name, including the rejected ones.
        duplicates: events that contained nothing new, by source.
        late: events that arrived after their time had been decided.
        set_aside: rejected events, which could not be applied, by reason.
        newly_set_aside: the rejected events since it was last emptied, in order.
        leave_out: keys of events that are rejected, as faults, without being tried.
    """

    def __init__(
        self,
        sources: Iterable[str],
        describe: Describe,
        complete: Complete = as_reported,
        names: Names | None = None,
    ) -> None:
        self.normaliser = Normaliser(describe, complete, names)
        self.now = -inf
        self.counts: defaultdict[str, Counter[str]] = defaultdict(
            Counter, {label: Counter() for label in sources}
        )
        self.duplicates: Counter[str] = Counter()
        self.late = 0
        self.set_aside = dict.fromkeys(REASONS, 0)
        self.newly_set_aside: list[SetAside] = []
        self.leave_out: Collection[EventIdentity] = ()
        self._at_hand: tuple[str, NamedEvent] | None = None
        self._steps: Iterator[Event] = iter(())
        self._watermark = Watermark(self.counts)
        self._arrivals = ArrivalQueue(self.counts)
        self._waiting = self._arrivals.heap
        self._ticks = TickSchedule()

    # -- the actuator -----------------------------------------------------------------------------

    def start(self, job: int, machine: int) -> None:
        """Do nothing: in shadow a decision is only recorded."""

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s`, after all other events of that moment."""
        if time_s <= self.now:
            self._ticks.is_due = True
        else:
            self._ticks.add(time_s)

    # -- sources ------------------------------------------------------------------------------

    def arrive(self, source: str, events: Iterable[NamedEvent]) -> None:
        """Queue events that arrived; they wait for the watermark."""
        self._arrivals.add(source, events)

    def admit(
        self, source: str, events: Sequence[NamedEvent], limits: TimeLimits
    ) -> Sequence[NamedEvent]:
        """Reject, before they arrive, events with an implausible time; return the others.

        An event that is rejected here never was an input, and is not replayed.
        """
        if all(map(limits.hold, events)):
            return events
        for event in events:
            if not limits.hold(event):
                self._set_aside_early(source, event)
        return [event for event in events if limits.hold(event)]

    def recheck(self, limits: TimeLimits) -> None:
        """Reject waiting events whose time is implausible under the given limits."""
        for source, event in self._arrivals.take_out(limits):
            self._set_aside_early(source, event)

    def seen(self, source: str, until_s: float) -> Iterator[Event]:
        """Note that a source has been seen up to a time; yield what may enter the engine now.

        The generator must be consumed by the engine itself (`Engine.feed`): ticks depend on what
        the engine requested while it handled the events before.
        """
        self._watermark.note(source, until_s)
        yield from self.advance(self.watermark_s)

    def note_seen(self, source: str, until_s: float) -> float | None:
        """Note that a source has been seen up to a time.

        Returns:
            The watermark for `advance`; None if it would yield neither an event nor a tick.
        """
        self._watermark.note(source, until_s)
        watermark_s = self.watermark_s
        moves = (
            (bool(self._waiting) and self._waiting[0][0] <= watermark_s)
            or self._ticks.next_s(self.now) <= watermark_s
            or self.normaliser.settles_at_s <= watermark_s
        )
        return watermark_s if moves else None

    @property
    def watermark_s(self) -> float:
        """Time up to which every source has been seen."""
        return self._watermark.time_s

    def waits_for(self, source: str) -> bool:
        """Return whether the others wait for this source, alone or among several."""
        return self._watermark.waits_for(source)

    def excuse(self, source: str) -> None:
        """Stop waiting for a source that is away, until it is seen again."""
        self._watermark.excuse(source)

    def expect(self, source: str) -> None:
        """Wait again for an excused source until it has been seen."""
        self._watermark.expect(source)

    def advance(self, watermark_s: float) -> Iterator[Event]:
        """Yield what may enter the engine up to a watermark."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= watermark_s:
            time_s, _, _, origin, event = waiting[0]  # stays there if a tick before it fails
            yield from self._settled(time_s)
            yield from self._due_ticks(time_s)
            if event[1] == STARTED and self._ticks.is_due:
                # a start is the batch system's own decision: the policies in shadow decide before
                # it, on the state in which it was made
                yield self._tick()
            heapq.heappop(waiting)
            steps = self._translate(origin, event)
            if time_s >= self.now:
                self.now = time_s
            elif steps is not None:
                self.late += 1
            if steps:
                self._steps = iter(steps)
                yield from self._steps
            self._at_hand = None
        if watermark_s > -inf:
            yield from self._settled(watermark_s)
            yield from self._due_ticks(nextafter(watermark_s, inf))

    def finish(self, last_s: float) -> Iterator[Event]:
        """Yield the rest, including delayed events, when nothing more will arrive."""
        yield from self.advance(last_s)
        yield from self.normaliser.settle(inf)

    def _settled(self, time_s: float) -> Iterator[Event]:
        """Yield starts that the normaliser delayed until a time; policies decide before them."""
        due_s = self.normaliser.settles_at_s
        if due_s > time_s or due_s == inf:
            return
        if self._ticks.is_due:
            yield self._tick()
        yield from self.normaliser.settle(time_s)

    def _translate(self, origin: str, event: NamedEvent) -> list[Event] | None:
        """Return the steps that an event means, counted; None if it is a duplicate or rejected."""
        self._at_hand, self._steps = (origin, event), iter(())
        try:
            if self.leave_out and (origin, *event[:3]) in self.leave_out:
                raise NotApplicableError(FAULT)
            refuse_impossible(event)
            steps = self.normaliser.translate(event)
        except NotApplicableError as refused:
            self.counts[origin][KIND_NAMES[event[1]]] += 1
            self._set_aside(SetAside(origin, event, refused.reason))
            return None
        if steps is None:
            self.duplicates[origin] += 1
        else:
            self.counts[origin][KIND_NAMES[event[1]]] += 1
        return steps

    def _due_ticks(self, before_s: float) -> Iterator[Event]:
        """Yield the ticks before a time: one due now, then those requested for later times."""
        while (due_s := self._ticks.next_s(self.now)) < before_s:
            self.now = max(self.now, due_s)
            yield self._tick()

    def _tick(self) -> Event:
        """Return one tick that serves everything due at this moment, as in the simulation."""
        self._ticks.take(self.now)
        return self.now, TICK, 0, None

    def reach(self, watermark_s: float) -> None:
        """Mark everything up to a watermark as entered; older events are late from now on."""
        self.now = max(self.now, watermark_s)

    # -- what cannot be applied ---------------------------------------------------------------

    def _set_aside(self, event: SetAside) -> None:
        self.set_aside[event.reason] += 1
        self.newly_set_aside.append(event)

    def _set_aside_early(self, source: str, event: NamedEvent) -> None:
        self.counts[source][KIND_NAMES[event[1]]] += 1
        self._set_aside(SetAside(source, event, IMPLAUSIBLE_TIME))

    def recount(self, source: str, kind: str, reason: str) -> None:
        """Count again an event that was rejected before it arrived, from the record of that."""
        self.counts[source][kind] += 1
        self.set_aside[reason] += 1

    def give_up(self, error: Exception) -> tuple[EventIdentity | None, list[Event]]:
        """Reject the event at hand (or else a tick) because something failed on it.

        The stream that `advance` returned is over; the caller continues with another one.

        Returns:
            The event's identity (None: a tick), and what else it meant for machines, which must
            still be applied.
        """
        at_hand = self._at_hand
        origin, event = at_hand or ("", (self.now, TICK, "", None))
        self._set_aside(SetAside(origin, event, FAULT, f"{type(error).__name__}: {error}"))
        left = [step for step in self._steps if step[1] not in JOB_KINDS]
        self._at_hand, self._steps = None, iter(())
        return (None if at_hand is None else (origin, *event[:3])), left

    def take_set_aside(self) -> list[SetAside]:
        """Return the events rejected since the last call, in order."""
        taken, self.newly_set_aside = self.newly_set_aside, []
        return taken

    def amend_last(self, detail: str) -> None:
        """Add detail to the record of the event that was rejected last."""
        self.newly_set_aside[-1].detail += detail

    def begin(self) -> None:
        """Restart the counts after the history has been read."""
        for counts in self.counts.values():
            counts.clear()
        self.duplicates.clear()
        self.normaliser.repairs.clear()
        if self.normaliser.names is not None:
            self.normaliser.names.begin()
        self.late = 0
        self.set_aside = dict.fromkeys(REASONS, 0)
        self.newly_set_aside.clear()

    def waiting_n(self) -> int:
        """Return the number of events that have arrived and wait for the watermark."""
        return len(self._waiting)

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return everything as plain data; events as (time_s, arrival, source, event)."""
        return {
            "tracker": self.normaliser.save(),
            "now": None if self.now == -inf else self.now,
            "counts": {label: dict(counts) for label, counts in self.counts.items()},
            "duplicates": dict(self.duplicates),
            "late": self.late,
            "set_aside": self.set_aside,
            "seen": self._watermark.save(),
            **self._arrivals.save(),
            **self._ticks.save(),
        }

    def restore(self, saved: dict[str, Any], revive: Callable[[list[Any]], NamedEvent]) -> None:
        """Resume from what `save` returned; `revive` rebuilds an event from plain data."""
        self.normaliser.restore(saved["tracker"])
        self.now = -inf if saved["now"] is None else saved["now"]
        self.counts |= {label: Counter(counts) for label, counts in saved["counts"].items()}
        self.duplicates = Counter(saved["duplicates"])
        self.late = saved["late"]
        self.set_aside |= saved["set_aside"]
        self._watermark.restore(saved["seen"])
        self._arrivals.restore(saved, revive)
        self._ticks.restore(saved)


# -- arrival queue ---------------------------------------------------------------------------------
# Events that have arrived and wait for the watermark, the earliest first.


class ArrivalQueue:
    """Heap of arrived events by time; at equal times by source, then in order of arrival.

    Args:
        sources: labels of the adapters, in the order in which their events follow at equal times.

    Attributes:
        heap: (time_s, rank of the source, arrival, source, event); read and popped by the merger.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        self.heap: list[tuple[float, int, int, str, NamedEvent]] = []
        self._rank = {label: n for n, label in enumerate(sources)}
        self._arrived = 0

    def add(self, source: str, events: Iterable[NamedEvent]) -> None:
        """Add events of a source that arrived in this order."""
        rank = self._rank.setdefault(source, len(self._rank))
        for event in events:
            self._arrived += 1
            heapq.heappush(self.heap, (event[0], rank, self._arrived, source, event))

    def take_out(self, limits: TimeLimits) -> list[tuple[str, NamedEvent]]:
        """Remove the events with an implausible time; return them with their sources."""
        wrong = sorted(entry[:3] for entry in self.heap if not limits.hold(entry[4]))
        if not wrong:
            return []
        by_place = {entry[:3]: entry[3:] for entry in self.heap}
        self.heap[:] = [entry for entry in self.heap if limits.hold(entry[4])]
        heapq.heapify(self.heap)
        return [by_place[place] for place in wrong]

    def save(self) -> dict[str, Any]:
        """Return everything as plain data; events as (time_s, arrival, source, event)."""
        return {
            "waiting": [
                [time_s, n, label, event]
                for time_s, _, n, label, event in sorted(self.heap, key=lambda e: e[:3])
            ],
            "arrivals": self._arrived,
        }

    def restore(self, saved: Mapping[str, Any], revive: Callable[[list[Any]], NamedEvent]) -> None:
        """Resume from what `save` returned; `revive` rebuilds an event from plain data."""
        self.heap[:] = [
            (t, self._rank.get(label, len(self._rank)), n, label, revive(event))
            for t, n, label, event in saved["waiting"]
        ]
        heapq.heapify(self.heap)
        self._arrived = saved["arrivals"]


# -- tick schedule ---------------------------------------------------------------------------------
# Ticks that the engine wants, now or later.


class TickSchedule:
    """Ticks that the engine has requested.

    Attributes:
        is_due: one is wanted at the present moment.
    """

    def __init__(self) -> None:
        self.is_due = False
        self._later_s: list[float] = []

    def add(self, time_s: float) -> None:
        """Request a tick at a later time."""
        heapq.heappush(self._later_s, time_s)

    def next_s(self, now_s: float) -> float:
        """Return the time of the next tick: `now_s` if one is due, infinite if there is none."""
        if self.is_due:
            return now_s
        return self._later_s[0] if self._later_s else inf

    def take(self, now_s: float) -> None:
        """Mark a tick that happens now: it serves all requests up to now."""
        self.is_due = False
        while self._later_s and self._later_s[0] <= now_s:
            heapq.heappop(self._later_s)

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {"wakes": sorted(self._later_s), "tick_due": self.is_due}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Resume from what `save` returned."""
        self._later_s = list(saved["wakes"])
        self.is_due = saved["tick_due"]


# -- watermark -------------------------------------------------------------------------------------
# The watermark: the time up to which every source has been seen.


class Watermark:
    """Times up to which each source has been seen.

    Args:
        sources: labels of the adapters; the watermark waits for each of them.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        self._seen_s = dict.fromkeys(sources, -inf)

    @property
    def time_s(self) -> float:
        """Time up to which every source has been seen."""
        return min(self._seen_s.values(), default=-inf)

    def note(self, source: str, until_s: float) -> None:
        """Note that a source has been seen up to a time."""
        self._seen_s[source] = max(self._seen_s.get(source, -inf), until_s)

    def waits_for(self, source: str) -> bool:
        """Return whether the source is the least advanced one, or is not waited for."""
        return self._seen_s.get(source, -inf) <= self.time_s

    def excuse(self, source: str) -> None:
        """Do not wait for a source until it is seen again."""
        self._seen_s.pop(source, None)

    def expect(self, source: str) -> None:
        """Wait again for a source that was excused, until it has been seen."""
        self._seen_s.setdefault(source, -inf)

    def save(self) -> dict[str, float | None]:
        """Return the seconds by source; None: not seen yet."""
        return {label: None if s == -inf else s for label, s in self._seen_s.items()}

    def restore(self, saved: Mapping[str, float | None]) -> None:
        """Resume from what `save` returned; skip sources that are no longer configured."""
        for label, seen_s in saved.items():
            if label in self._seen_s and seen_s is not None:
                self._seen_s[label] = seen_s
