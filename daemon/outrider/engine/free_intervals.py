"""Until when did a machine that was free at some moment stay free? Answered by one bisection.

McGough and Forshaw judge the choice to keep a job queued afterwards: it was bad if some machine,
free at that moment, stayed free long enough to run the job (equation 4, second case). Keeping
every free interval of every machine would cost memory without end. But intervals close in the
order of time, so an interval that closes now reaches further than every one that closed before:
for all moments inside it, it is the answer. What remains is a short staircase of break points.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from typing import Any

_MOST_STEPS = 65_536

TAKEN = 0
FREE = 1
RESERVED = 2


class FreeIntervals:
    """The furthest-reaching free interval over any past moment, kept as a staircase.

    For moments in ``[starts[i], starts[i + 1])`` the longest-lasting machine was free until
    ``ends[i]``; an answer before the moment itself means that none was free.
    """

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._open: deque[tuple[float, int]] = deque()

    def opened(self, machine: int, now: float) -> None:
        """A machine became free. Calls come in the order of time."""
        self._open.append((now, machine))

    def closed(self, since: float, now: float) -> None:
        """A machine that was free since `since` is free no longer."""
        if now <= since:
            return
        starts, ends = self._starts, self._ends
        while starts and starts[-1] >= since:
            starts.pop()
            ends.pop()
        starts.append(since)
        ends.append(now)
        if len(starts) > _MOST_STEPS:
            del starts[: _MOST_STEPS // 2]
            del ends[: _MOST_STEPS // 2]

    def oldest_open(self, free: Sequence[int], free_since: Sequence[float]) -> tuple[float, int]:
        """The machine that has been free the longest, as (since, machine).

        Raises:
            LookupError: no machine is free.
        """
        waiting = self._open
        if len(waiting) > 4 * len(free) + 1024:
            alive = [(t, m) for t, m in waiting if free[m] and free_since[m] == t]
            waiting.clear()
            waiting.extend(alive)
        while waiting and (not free[waiting[0][1]] or free_since[waiting[0][1]] != waiting[0][0]):
            waiting.popleft()
        for since, machine in waiting:
            if free[machine] == FREE and free_since[machine] == since:
                return since, machine
        raise LookupError("no machine is free")

    def reaches(self, start: float, end: float) -> bool:
        """Whether an interval that has closed covered ``[start, end]``."""
        at = bisect_right(self._starts, start) - 1
        return at >= 0 and self._ends[at] >= end

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {"starts": self._starts, "ends": self._ends, "open": [list(o) for o in self._open]}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._starts = list(saved["starts"])
        self._ends = list(saved["ends"])
        self._open = deque((since, machine) for since, machine in saved["open"])
