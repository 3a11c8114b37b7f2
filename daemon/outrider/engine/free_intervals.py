"""Until when did a machine that was free at some moment stay free? Answered by one bisection.

McGough and Forshaw judge the choice to keep a job queued afterwards: it was bad if some machine,
free at that moment, stayed free long enough to run the job (equation 4, second case). Keeping
every free interval of every machine would cost memory without end. But intervals close in the
order of time, so an interval that closes now reaches further than every one that closed before:
for all moments inside it, it is the answer. What remains is a short staircase of break points.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

_MOST_STEPS = 65_536
_MOST_PENDING = 1_024

TAKEN = 0
FREE = 1
RESERVED = 2


class FreeIntervals:
    """The furthest-reaching free interval over any past moment, kept as a staircase.

    For moments in ``[starts[i], starts[i + 1])`` the longest-lasting machine was free until
    ``ends[i]``; an answer before the moment itself means that none was free.

    Machines come and go far more often than anybody asks: an interval that closes is only noted,
    and the staircase is built from the notes when it is needed.

    Attributes:
        open_since: free machines and since when, the longest free first.
    """

    def __init__(self) -> None:
        self.open_since: OrderedDict[int, float] = OrderedDict()
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._pending: list[tuple[float, float]] = []

    def opened(self, machine: int, now: float) -> None:
        """A machine became free. Calls come in the order of time."""
        self.open_since[machine] = now

    def closed(self, machine: int, now: float) -> None:
        """A machine that was free is free no longer."""
        pending = self._pending
        pending.append((self.open_since.pop(machine), now))
        if len(pending) > _MOST_PENDING:
            self._build()

    def _build(self) -> None:
        starts, ends = self._starts, self._ends
        for since, until in self._pending:
            if until <= since:
                continue
            while starts and starts[-1] >= since:
                starts.pop()
                ends.pop()
            starts.append(since)
            ends.append(until)
        self._pending.clear()
        if len(starts) > _MOST_STEPS:
            del starts[: _MOST_STEPS // 2]
            del ends[: _MOST_STEPS // 2]

    def oldest_open(self, free: Sequence[int]) -> tuple[float, int]:
        """The machine that has been free the longest and is not reserved, as (since, machine).

        Raises:
            LookupError: no machine is free.
        """
        for machine, since in self.open_since.items():
            if free[machine] == FREE:
                return since, machine
        raise LookupError("no machine is free")

    def reaches(self, start: float, end: float) -> bool:
        """Whether an interval that has closed covered ``[start, end]``."""
        self._build()
        at = bisect_right(self._starts, start) - 1
        return at >= 0 and self._ends[at] >= end

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        self._build()
        free = [[since, machine] for machine, since in self.open_since.items()]
        return {"starts": self._starts, "ends": self._ends, "open": free}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._starts = list(saved["starts"])
        self._ends = list(saved["ends"])
        self._pending.clear()
        self.open_since.clear()
        self.open_since.update((machine, since) for since, machine in saved["open"])
