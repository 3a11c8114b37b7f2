"""What a machine will have left at every moment to come: for reservations one after the other."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from math import inf

from outrider.engine.scheduling.backfill import Ending
from outrider.engine.state.room import Room
from outrider.model.resources import Resources


class Profile:
    """Room on one machine from now on: a step at each moment at which it changes.

    Args:
        now: when it begins.
        room: what is left now.
        endings: what is expected to end, by time; none of it before now.
    """

    def __init__(self, now: float, room: Room, endings: Iterable[Ending]) -> None:
        self._times = [now]
        self._rooms = [room]
        for end in endings:
            if end.end_s > self._times[-1]:
                self._times.append(end.end_s)
                self._rooms.append(self._rooms[-1].copy())
            self._rooms[-1].give_back(end.cpus, end.resources)

    def holds_now(self, cpus: int, asked: Resources | None, lasts_s: float) -> bool:
        """Whether so much is left from now on for so long."""
        return self._too_small(0, cpus, asked, lasts_s) is None

    def earliest_s(self, cpus: int, asked: Resources | None, lasts_s: float) -> float:
        """The first moment from which on so much is left for so long; infinite if there is none."""
        at = 0
        while at < len(self._times):
            too_small = self._too_small(at, cpus, asked, lasts_s)
            if too_small is None:
                return self._times[at]
            at = too_small + 1
        return inf

    def _too_small(
        self, first: int, cpus: int, asked: Resources | None, lasts_s: float
    ) -> int | None:
        """The first step, from one on and for so long, that has not so much left."""
        end_s = self._times[first] + lasts_s
        for at in range(first, len(self._times)):
            if at > first and self._times[at] >= end_s:
                return None
            if not self._rooms[at].holds(cpus, asked):
                return at
        return None

    def take(self, start_s: float, lasts_s: float, cpus: int, asked: Resources | None) -> None:
        """So much is promised from a moment on, for so long."""
        first, end = self._step_at(start_s), self._step_at(start_s + lasts_s)
        for room in self._rooms[first:end]:
            room.take(cpus, asked)

    def _step_at(self, time_s: float) -> int:
        """The step that begins at a moment, made if there is none."""
        if time_s == inf:
            return len(self._times)
        at = bisect_left(self._times, time_s)
        if at == len(self._times) or self._times[at] != time_s:
            at = bisect_right(self._times, time_s)
            self._times.insert(at, time_s)
            self._rooms.insert(at, self._rooms[at - 1].copy())
        return at
