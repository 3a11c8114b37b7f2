"""How long owners, reboots and administrators left machines alone, whatever jobs ran there."""

from bisect import bisect_right
from typing import Any, Final

from outrider.api import SiteView, events

_TAKES: Final = frozenset({events.OWNER_CAME, events.REBOOTED, events.DRAINED, events.LEFT})
_GIVES: Final = frozenset({events.USABLE, events.JOINED})
_MOST_STEPS: Final = 65_536


class LeftAlone:
    """Answers of any past moment how long the machine that lasted longest was left alone.

    Stretches end in the order of time, so one that ends now reaches further than all before: for
    the moments inside it, it is the answer. What is kept is a staircase: at moments in
    ``[starts[i], starts[i + 1])`` some machine was left alone until ``ends[i]``. The oldest steps
    are forgotten when there are very many.
    """

    def __init__(self) -> None:
        self._since: dict[int, float] = {}  # in the order of time
        self._starts: list[float] = []
        self._ends: list[float] = []

    def notice(self, kind: int, machine: int, view: SiteView) -> None:
        """Something happened to a machine: see `outrider.api.Policy.notice`."""
        if kind in _TAKES:
            since = self._since.pop(machine, None)
            if since is not None and since < view.now:
                self._close(since, view.now)
        elif kind in _GIVES and machine not in self._since and view.is_free(machine):
            self._since[machine] = view.now

    def _close(self, since: float, now: float) -> None:
        starts, ends = self._starts, self._ends
        while starts and starts[-1] >= since:
            starts.pop()
            ends.pop()
        starts.append(since)
        ends.append(now)
        if len(starts) > _MOST_STEPS:
            del starts[: _MOST_STEPS // 2]
            del ends[: _MOST_STEPS // 2]

    def lasted(self, start_s: float, end_s: float, now: float) -> bool:
        """Whether some machine was seen to be left alone from start to end."""
        at = bisect_right(self._starts, start_s) - 1
        if at >= 0 and self._ends[at] >= end_s:
            return True
        longest = next(iter(self._since.values()), now)
        return end_s <= now and longest <= start_s

    def save(self) -> dict[str, Any]:
        """Everything, as plain data."""
        since = [[machine, time_s] for machine, time_s in self._since.items()]
        return {"since": since, "starts": list(self._starts), "ends": list(self._ends)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._since = dict(saved["since"])
        self._starts, self._ends = list(saved["starts"]), list(saved["ends"])
