"""Stretches of time in which a machine was open to jobs, whether or not jobs ran there.

No owner, reboot or administrator closed the machine. McGough and Forshaw judge the choice to defer
a job afterwards: it was bad if some machine could have run the job to its end (equation 4, second
case). That other jobs were given to the machine later does not make it good. Keeping every stretch
of every machine would cost unbounded memory. But stretches end in the order of time, so one that
ends now reaches further than every one that ended before: for all moments inside it, it is the
answer. What remains is a short staircase of break points.
"""

from bisect import bisect_left, bisect_right
from math import inf
from typing import Any

_MAX_STEPS = 65_536
_MAX_PENDING = 1_024


class Availability:
    """Staircase of the furthest-reaching stretch over any past moment.

    For moments in ``[starts[i], starts[i + 1])`` the machine that lasted longest was left alone
    until ``ends[i]``; an answer before the moment itself means that there was none.

    Owners come far more often than the staircase is read: a stretch that ends is only recorded, and
    the staircase is built from the records when it is needed.
    """

    def __init__(self) -> None:
        self._since: dict[int, float] = {}  # the longest first
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._pending: list[tuple[float, float]] = []

    def begin(self, machine: int, now: float) -> None:
        """Begin a machine's stretch. Calls must be in the order of time."""
        self._since[machine] = now

    def end(self, machine: int, now: float) -> None:
        """End the machine's stretch."""
        pending = self._pending
        pending.append((self._since.pop(machine), now))
        if len(pending) > _MAX_PENDING:
            self._build()

    def correct(self, machine: int, alone: bool, now: float) -> None:
        """Correct, after a fault, whether a stretch of the machine continues now."""
        if alone:
            self._since.setdefault(machine, now)
        else:
            self._since.pop(machine, None)

    def _build(self) -> None:
        starts, ends = self._starts, self._ends
        earliest = inf
        steps = []
        for stretch in reversed(self._pending):
            since, until = stretch
            if since < earliest and since < until:
                earliest = since
                steps.append(stretch)
        self._pending.clear()
        at = bisect_left(starts, earliest)  # what began later ended before
        del starts[at:], ends[at:]
        for since, until in reversed(steps):
            starts.append(since)
            ends.append(until)
        if len(starts) > _MAX_STEPS:
            del starts[: _MAX_STEPS // 2]
            del ends[: _MAX_STEPS // 2]

    def lasted(self, start_s: float, end_s: float, now: float) -> bool:
        """Return whether one stretch was seen to cover the time from start to end."""
        self._build()
        at = bisect_right(self._starts, start_s) - 1
        if at >= 0 and self._ends[at] >= end_s:
            return True
        longest = next(iter(self._since.values()), inf)
        return end_s <= now and longest <= start_s

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        self._build()
        since = [[since, machine] for machine, since in self._since.items()]
        return {"starts": self._starts, "ends": self._ends, "since": since}

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned."""
        self._starts = list(saved["starts"])
        self._ends = list(saved["ends"])
        self._pending.clear()
        self._since.clear()
        self._since.update((machine, since) for since, machine in saved["since"])
