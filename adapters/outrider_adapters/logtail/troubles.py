"""Problems of logs: since when each lasts, and whether to report it."""

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

PASSES_WITHIN_S: Final = 5.0
"""Seconds for which a log may be missing without a report, since a rotation moves it."""
_MAX_TEXTS: Final = 5


class _Trouble(NamedTuple):
    since_s: float
    why: str
    may_pass: bool


class Troubles:
    """Record of the logs that cannot be read, by name.

    Each path of the settings is a group of names: a log, or all that match a pattern. A group is in
    trouble if none of its files can be read: some of the files that match a pattern may not be
    logs.

    Args:
        clock: Unix seconds now; it may be set back.

    No group is empty.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._troubles: dict[str, _Trouble] = {}
        self._were_read: set[str] = set()

    def note(self, name: str, why: str, may_pass: bool = False) -> None:
        """Record a check of a log; `why` is empty if it was read."""
        if not why:
            self._troubles.pop(name, None)
            self._were_read.add(name)
            return
        now_s = self._clock()
        before = self._troubles.get(name)
        since_s = now_s if before is None else min(before.since_s, now_s)
        passes = may_pass or name in self._were_read
        self._troubles[name] = _Trouble(since_s, why, passes)

    def drop(self, name: str) -> None:
        """Drop a log that is no longer followed."""
        self._troubles.pop(name, None)
        self._were_read.discard(name)

    def names(self) -> list[str]:
        """Return the logs that cannot be read."""
        return list(self._troubles)

    def age_s(self, groups: Iterable[Collection[str]]) -> float:
        """Return the seconds for which the oldest trouble of a group has lasted; 0 if none."""
        if not self._troubles:
            return 0.0
        since_s = [self._since_s(group) for group in groups if self._is_in_trouble(group)]
        return max(0.0, self._clock() - min(since_s)) if since_s else 0.0

    def describe(self, groups: Iterable[Collection[str]]) -> str:
        """Describe why groups cannot be read, without new problems that may pass."""
        if not self._troubles:
            return ""
        lasting_s = self._clock() - PASSES_WITHIN_S
        whys: list[str] = []
        for group in groups:
            if self._is_in_trouble(group):
                troubles = [self._troubles[name] for name in group]
                if self._since_s(group) <= lasting_s or not all(t.may_pass for t in troubles):
                    whys += [trouble.why for trouble in troubles]
        return some_of(whys)

    def clear(self) -> None:
        """Forget all logs and their problems."""
        self._troubles.clear()
        self._were_read.clear()

    def _is_in_trouble(self, group: Collection[str]) -> bool:
        return all(name in self._troubles for name in group)

    def _since_s(self, group: Collection[str]) -> float:
        return max(self._troubles[name].since_s for name in group)


def some_of(texts: Iterable[str]) -> str:
    """Join the first of these texts, without repetition: there may be thousands of logs."""
    different = list(dict.fromkeys(texts))
    left = len(different) - _MAX_TEXTS
    more = [f"and {left} more"] if left > 0 else []
    return "; ".join([*different[:_MAX_TEXTS], *more])
