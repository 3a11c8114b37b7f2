"""The live feeder: several sources, out of order, become one stream of events with ticks.

Events wait until every source has been seen up to their time (the watermark). Then they enter the
engine in the order of time, with ticks between time stamps as in a replay. Arrivals and watermarks
are all that it depends on, and both are in the journal: fed again, they give the same stream.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import inf, nextafter
from typing import Any

from outrider.engine.ingest.bounded_names import Names
from outrider.engine.ingest.machine_registry import Complete, Describe, as_told
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
"""Which event it was: label of its adapter, time_s, kind, subject."""


class EventMerger:
    """Merges sources by time, normalises their events, and adds ticks.

    It is also the engine's actuator (`outrider.engine.Actuator`), which starts nothing.

    Args:
        sources: labels of the adapters; the slowest of them holds the watermark.
        describe, complete: what the site knows of machines; see `MachineRegistry`.
        names: how many names are followed; None: all.

    Attributes:
        now: everything up to this time has entered the engine.
        counts: events by source and kind name; those set aside are among them.
        duplicates: events that told nothing new, by source.
        late: events that arrived after their time had been decided.
        set_aside: events that could not be applied, by reason.
        newly_set_aside: those of them since it was last emptied, in order.
        leave_out: keys of events that are set aside, as faults, without being tried.
    """

    def __init__(
        self,
        sources: Iterable[str],
        describe: Describe,
        complete: Complete = as_told,
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
        """Nothing starts from here: in shadow a decision is only recorded."""

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s`, after all other events of that moment."""
        if time_s <= self.now:
            self._ticks.is_due = True
        else:
            self._ticks.add(time_s)

    # -- sources ------------------------------------------------------------------------------

    def arrive(self, source: str, events: Iterable[NamedEvent]) -> None:
        """Events came; they wait for the watermark."""
        self._arrivals.add(source, events)

    def admit(
        self, source: str, events: Sequence[NamedEvent], limits: TimeLimits
    ) -> Sequence[NamedEvent]:
        """Set aside, before they arrive, events whose time is not believed; returns the others.

        What is set aside here never was an input: it is not to be fed again.
        """
        if all(map(limits.hold, events)):
            return events
        for event in events:
            if not limits.hold(event):
                self._set_aside_early(source, event)
        return [event for event in events if limits.hold(event)]

    def recheck(self, limits: TimeLimits) -> None:
        """Set aside events that wait, and whose time is not believed (any more)."""
        for source, event in self._arrivals.take_out(limits):
            self._set_aside_early(source, event)

    def seen(self, source: str, until_s: float) -> Iterator[Event]:
        """A source has been seen up to a time: yields what may enter the engine now.

        The generator must be consumed by the engine itself (`Engine.feed`): ticks depend on what
        the engine asked for while it handled the events before.
        """
        self._watermark.note(source, until_s)
        yield from self.advance(self.watermark_s)

    def note_seen(self, source: str, until_s: float) -> float | None:
        """A source has been seen up to a time.

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
        """Every source has been seen up to here."""
        return self._watermark.time_s

    def waits_for(self, source: str) -> bool:
        """Return whether this source is the one that the others wait for, or one of several."""
        return self._watermark.waits_for(source)

    def excuse(self, source: str) -> None:
        """A source is away: until it is seen again the others do not wait for it."""
        self._watermark.excuse(source)

    def expect(self, source: str) -> None:
        """A source that was excused is there: the others wait until it has been seen."""
        self._watermark.expect(source)

    def advance(self, watermark_s: float) -> Iterator[Event]:
        """As `seen`: yield what may enter the engine up to a watermark."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= watermark_s:
            time_s, _, _, origin, event = waiting[0]  # stays there should a tick before it fail
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
        """As `advance`, where nothing comes any more: what was delayed is given, too."""
        yield from self.advance(last_s)
        yield from self.normaliser.settle(inf)

    def _settled(self, time_s: float) -> Iterator[Event]:
        """Starts that the normaliser delayed until a time; policies decide before them."""
        due_s = self.normaliser.settles_at_s
        if due_s > time_s or due_s == inf:
            return
        if self._ticks.is_due:
            yield self._tick()
        yield from self.normaliser.settle(time_s)

    def _translate(self, origin: str, event: NamedEvent) -> list[Event] | None:
        """The steps that an event means, counted; None for a duplicate, or if it is set aside."""
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
        """Ticks that fall before a time: one due now, then those asked for earlier."""
        while (due_s := self._ticks.next_s(self.now)) < before_s:
            self.now = max(self.now, due_s)
            yield self._tick()

    def _tick(self) -> Event:
        """One tick serves all that is due at this moment, as in the simulation."""
        self._ticks.take(self.now)
        return self.now, TICK, 0, None

    def reach(self, watermark_s: float) -> None:
        """Everything up to a watermark has entered; an older event comes late from now on."""
        self.now = max(self.now, watermark_s)

    # -- what cannot be applied ---------------------------------------------------------------

    def _set_aside(self, event: SetAside) -> None:
        self.set_aside[event.reason] += 1
        self.newly_set_aside.append(event)

    def _set_aside_early(self, source: str, event: NamedEvent) -> None:
        self.counts[source][KIND_NAMES[event[1]]] += 1
        self._set_aside(SetAside(source, event, IMPLAUSIBLE_TIME))

    def recount(self, source: str, kind: str, reason: str) -> None:
        """An event was set aside before it arrived, by a record of that: count it again."""
        self.counts[source][kind] += 1
        self.set_aside[reason] += 1

    def give_up(self, error: Exception) -> tuple[EventIdentity | None, list[Event]]:
        """Something failed on the event at hand (or else on a tick): set it aside.

        The stream that `advance` gave is over; the caller goes on with another one.

        Returns:
            Which event it was (None: a tick), and what else it meant for machines, which must
            still be applied.
        """
        at_hand = self._at_hand
        origin, event = at_hand or ("", (self.now, TICK, "", None))
        self._set_aside(SetAside(origin, event, FAULT, f"{type(error).__name__}: {error}"))
        left = [step for step in self._steps if step[1] not in JOB_KINDS]
        self._at_hand, self._steps = None, iter(())
        return (None if at_hand is None else (origin, *event[:3])), left

    def take_set_aside(self) -> list[SetAside]:
        """Those set aside since the last time, in order."""
        taken, self.newly_set_aside = self.newly_set_aside, []
        return taken

    def amend_last(self, detail: str) -> None:
        """Add to what is recorded of the event that was set aside last."""
        self.newly_set_aside[-1].detail += detail

    def begin(self) -> None:
        """History has been read: count from now on."""
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
        """Events that have arrived and wait for the watermark."""
        return len(self._waiting)

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Everything as plain data; events as (time_s, arrival, source, [time, kind, ...])."""
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
        """Go on from what `save` gave; `revive` rebuilds an event from plain data."""
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
    """A heap by time; at equal times by source, then in the order of arrival.

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
        """Events of a source came, in this order."""
        rank = self._rank.setdefault(source, len(self._rank))
        for event in events:
            self._arrived += 1
            heapq.heappush(self.heap, (event[0], rank, self._arrived, source, event))

    def take_out(self, limits: TimeLimits) -> list[tuple[str, NamedEvent]]:
        """Remove the events whose time is not believed; returns them with their sources."""
        wrong = sorted(entry[:3] for entry in self.heap if not limits.hold(entry[4]))
        if not wrong:
            return []
        by_place = {entry[:3]: entry[3:] for entry in self.heap}
        self.heap[:] = [entry for entry in self.heap if limits.hold(entry[4])]
        heapq.heapify(self.heap)
        return [by_place[place] for place in wrong]

    def save(self) -> dict[str, Any]:
        """Everything as plain data; events as (time_s, arrival, source, event)."""
        return {
            "waiting": [
                [time_s, n, label, event]
                for time_s, _, n, label, event in sorted(self.heap, key=lambda e: e[:3])
            ],
            "arrivals": self._arrived,
        }

    def restore(self, saved: Mapping[str, Any], revive: Callable[[list[Any]], NamedEvent]) -> None:
        """Go on from what `save` gave; `revive` rebuilds an event from plain data."""
        self.heap[:] = [
            (t, self._rank.get(label, len(self._rank)), n, label, revive(event))
            for t, n, label, event in saved["waiting"]
        ]
        heapq.heapify(self.heap)
        self._arrived = saved["arrivals"]


# -- tick schedule ---------------------------------------------------------------------------------
# When the engine wants a tick: now, or later.


class TickSchedule:
    """The ticks that the engine has asked for.

    Attributes:
        is_due: one is wanted at the present moment.
    """

    def __init__(self) -> None:
        self.is_due = False
        self._later_s: list[float] = []

    def add(self, time_s: float) -> None:
        """One is wanted at a later time."""
        heapq.heappush(self._later_s, time_s)

    def next_s(self, now_s: float) -> float:
        """Return when the next one falls: `now_s` if one is due; infinite where none is wanted."""
        if self.is_due:
            return now_s
        return self._later_s[0] if self._later_s else inf

    def take(self, now_s: float) -> None:
        """A tick happens now: it serves all that are wanted by now."""
        self.is_due = False
        while self._later_s and self._later_s[0] <= now_s:
            heapq.heappop(self._later_s)

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {"wakes": sorted(self._later_s), "tick_due": self.is_due}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._later_s = list(saved["wakes"])
        self.is_due = saved["tick_due"]


# -- watermark -------------------------------------------------------------------------------------
# The watermark: up to which time every source has been seen.


class Watermark:
    """Keeps for each source up to which time it has been seen.

    Args:
        sources: labels of the adapters; the watermark waits for each of them.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        self._seen_s = dict.fromkeys(sources, -inf)

    @property
    def time_s(self) -> float:
        """Every source has been seen up to here."""
        return min(self._seen_s.values(), default=-inf)

    def note(self, source: str, until_s: float) -> None:
        """A source has been seen up to a time."""
        self._seen_s[source] = max(self._seen_s.get(source, -inf), until_s)

    def waits_for(self, source: str) -> bool:
        """Return whether no other source has been seen up to an earlier time, or it is not waited for."""
        return self._seen_s.get(source, -inf) <= self.time_s

    def excuse(self, source: str) -> None:
        """Do not wait for a source until it is seen again."""
        self._seen_s.pop(source, None)

    def expect(self, source: str) -> None:
        """Wait for a source from now on, though it was excused; until it has been seen at all."""
        self._seen_s.setdefault(source, -inf)

    def save(self) -> dict[str, float | None]:
        """Seconds by source; None: not seen yet."""
        return {label: None if s == -inf else s for label, s in self._seen_s.items()}

    def restore(self, saved: Mapping[str, float | None]) -> None:
        """Go on from what `save` gave, but for sources that are not configured any more."""
        for label, seen_s in saved.items():
            if label in self._seen_s and seen_s is not None:
                self._seen_s[label] = seen_s
