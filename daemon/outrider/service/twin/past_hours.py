"""Which full hours of the past are asked about anew when the process beside the daemon begins."""

from math import ceil, inf

from outrider.model.localtime import HOUR_S


class PastHours:
    """All of them, as if it had been there; every so many where each takes long.

    Args:
        from_s: none before, Unix seconds.
        until_s: up to when the record tells.
        budget_s: for how long it may ask in all, seconds; but for the first hour, with which the
            loops are compiled.
    """

    def __init__(self, from_s: float, until_s: float, budget_s: float) -> None:
        self._from_s = from_s
        self._until_s = until_s
        self._budget_s = budget_s
        self._next_s: float | None = None
        self._is_first = True

    def was_there(self, time_s: float) -> None:
        """It asked at that time: only where it missed whole hours since are some asked anew."""
        self._next_s = _full_hour_after(time_s) + HOUR_S

    def is_due(self, now_s: float) -> bool:
        """Whether it is to be asked now, as the record goes on; its first moment never counts."""
        if self._next_s is None:
            self._next_s = _full_hour_after(max(now_s, self._from_s))
        return now_s >= self._next_s

    def took(self, now_s: float, seconds: float) -> None:
        """It was asked then, and that took so long: chooses the next hour."""
        if self._is_first:
            self._is_first, seconds = False, 0.0
        self._budget_s -= seconds
        hours = max(0.0, self._until_s - now_s) / HOUR_S
        if self._budget_s > 0.0:
            step = max(1, ceil(seconds * hours / self._budget_s))
            self._next_s = _full_hour_after(now_s) + (step - 1) * HOUR_S
        else:
            self._next_s = inf


def _full_hour_after(time_s: float) -> float:
    return (time_s // HOUR_S + 1.0) * HOUR_S
