"""Where a job whose run was lost waits: before those that came meanwhile, or behind them."""

from bisect import bisect_left, bisect_right, insort
from math import inf
from typing import Final

LATELY_S: Final = 6 * 3_600.0
"""A job that has waited for longer may wait for a machine of its own: it tells nothing."""


class Requeueing:
    """Watches in which of two orders jobs start: that of submission, or that of joining the queue.

    Each start of one that never lost a run, while one that did, later, waits since lately and was
    submitted before it, speaks for the second order; each start of one that lost a run, while one
    waits that came before that, speaks for the first.

    Attributes:
        lost_s: when each job that waits again lost its run, Unix seconds.
        before: starts that speak for the order of submission.
        behind: starts that speak for the order of joining the queue.
    """

    def __init__(self) -> None:
        self.lost_s: dict[int, float] = {}
        self.before = 0
        self.behind = 0
        self._submit_s: dict[int, float] = {}
        self._fresh: list[tuple[float, int]] = []  # (submitted, job)
        self._lost: list[tuple[float, int]] = []  # (lost, job)

    @property
    def goes_behind(self) -> bool:
        """Whether a job that lost its run joins the end of the queue; False where it is open."""
        return self.behind > self.before

    def came(self, time_s: float, job: int) -> None:
        """A job was submitted."""
        self._submit_s[job] = time_s
        insort(self._fresh, (time_s, job))

    def lost(self, time_s: float, job: int) -> None:
        """A job lost its run and waits again."""
        if job in self._submit_s:
            self.takes_no_part(job)
            self.lost_s[job] = time_s
            insort(self._lost, (time_s, job))

    def started(self, time_s: float, job: int) -> None:
        """A job starts."""
        came_s = self._submit_s.get(job)
        lost_s = self.lost_s.get(job)
        self.takes_no_part(job)
        if came_s is None:
            return
        if lost_s is None:
            after = bisect_right(self._lost, (max(came_s, time_s - LATELY_S), inf))
            self.behind += any(self._submit_s[other] < came_s for _, other in self._lost[after:])
        else:
            before = bisect_left(self._fresh, (lost_s, -1)) - 1
            since_s = max(came_s, time_s - LATELY_S)
            self.before += before >= 0 and self._fresh[before][0] > since_s

    def takes_no_part(self, job: int) -> None:
        """A job is held, or no longer waits."""
        lost_s = self.lost_s.pop(job, None)
        times = self._fresh if lost_s is None else self._lost
        entry = (self._submit_s.get(job, inf) if lost_s is None else lost_s, job)
        place = bisect_left(times, entry)
        if place < len(times) and times[place] == entry:
            del times[place]

    def left(self, job: int) -> None:
        """A job has gone for good."""
        self.takes_no_part(job)
        self._submit_s.pop(job, None)
