"""Events that have arrived and wait for the watermark, the earliest first."""

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from outrider.engine.ingest.set_aside import TimeLimits
from outrider.model.events import NamedEvent


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
