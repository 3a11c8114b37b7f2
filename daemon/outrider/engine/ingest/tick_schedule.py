"""When the engine wants a tick: now, or later."""

import heapq
from collections.abc import Mapping
from math import inf
from typing import Any


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
        """When the next one falls: `now_s` if one is due; infinite where none is wanted."""
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
