"""What is wrong with the logs: since when, and whether it is worth an alarm."""

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

PASSES_WITHIN_S: Final = 5.0
"""A log that was read before may be away for so long: a rotation takes it away for a moment."""
_MOST_TOLD: Final = 5


class _Trouble(NamedTuple):
    since_s: float
    why: str
    may_pass: bool


class Troubles:
    """Keeps which of the logs cannot be read, by name.

    What the settings name is a group of names: a log, or all that match a pattern. A group is in
    trouble where none of it can be read: among the files that match a pattern may be some that
    are no logs.

    Args:
        clock: Unix seconds now; it may be set back.

    No group is empty.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._troubles: dict[str, _Trouble] = {}
        self._were_read: set[str] = set()

    def note(self, name: str, why: str, may_pass: bool = False) -> None:
        """A log was looked at; `why` is empty where it was read."""
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
        """Nobody follows this log any more."""
        self._troubles.pop(name, None)
        self._were_read.discard(name)

    def names(self) -> list[str]:
        """The logs that cannot be read."""
        return list(self._troubles)

    def age_s(self, groups: Iterable[Collection[str]]) -> float:
        """Seconds for which the group that is in trouble the longest has been; 0 if none is."""
        if not self._troubles:
            return 0.0
        since_s = [self._since_s(group) for group in groups if self._is_in_trouble(group)]
        return max(0.0, self._clock() - min(since_s)) if since_s else 0.0

    def told(self, groups: Iterable[Collection[str]]) -> str:
        """What keeps groups from being read, but for what may pass and has not lasted yet."""
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
        """Forget everything."""
        self._troubles.clear()
        self._were_read.clear()

    def _is_in_trouble(self, group: Collection[str]) -> bool:
        return all(name in self._troubles for name in group)

    def _since_s(self, group: Collection[str]) -> float:
        return max(self._troubles[name].since_s for name in group)


def some_of(texts: Iterable[str]) -> str:
    """The first of these texts as one, without repetition: there may be thousands of logs."""
    different = list(dict.fromkeys(texts))
    left = len(different) - _MOST_TOLD
    more = [f"and {left} more"] if left > 0 else []
    return "; ".join([*different[:_MOST_TOLD], *more])
