"""Seconds that queued jobs wait for each reason, at a cost that does not grow with the queue."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from outrider.formats.workload import Floats

REASONS: Final = (
    "no_machine", "too_wide", "behind_head", "would_delay", "deferred", "impossible",
)  # fmt: skip
"""What a queued job waits for, a closed list.

* no_machine: no CPU is free for any job;
* too_wide: some are, but no machine that it may use has the CPUs, memory, GPUs it asks for;
* behind_head: it would fit; a job before it does not, and nobody passes (discipline ``strict``);
* would_delay: it would fit, and would delay a job before it (``easy``, ``easy_sjbf``,
  ``conservative``);
* deferred: it would fit, and the policy keeps it queued;
* impossible: it fits on no machine of the site.
"""
NO_MACHINE, TOO_WIDE, BEHIND, DELAY, DEFERRED, IMPOSSIBLE = range(len(REASONS))


class _Size:
    """What was counted for all queued jobs that ask for so many CPUs.

    Attributes:
        jobs_n: how many are queued.
        fitting_s: seconds in which a free machine had as many CPUs left.
        narrow_s: seconds in which none had, though some machine was free.
    """

    __slots__ = ("fitting_s", "jobs_n", "narrow_s")

    def __init__(self) -> None:
        self.jobs_n = 0
        self.fitting_s = self.narrow_s = 0.0


class _Mark(NamedTuple):
    """What was counted when a job joined the queue, or was last chosen otherwise."""

    cpus: int
    closed_s: float
    fitting_s: float
    narrow_s: float


class QueueTimes:
    """Counts time once for all jobs that ask for equally many CPUs.

    A job's part of that is what was counted between two marks: when it joins the queue, when the
    policy says otherwise of it, and when it leaves. Only jobs that ask for more than CPUs are
    looked at one by one.

    Args:
        jobs_n: jobs that there will be; numbers are below that.
        unstarted: the reason of a job that would fit and is not deferred.

    Attributes:
        waited_s: (jobs_n, reasons) seconds, of jobs that are queued up to their last mark.
    """

    def __init__(self, jobs_n: int, unstarted: int) -> None:
        self.waited_s: Floats = np.zeros((jobs_n, len(REASONS)))
        self._unstarted = unstarted
        self._closed_s = 0.0
        self._sizes: dict[int, _Size] = {}
        self._marks: dict[int, _Mark] = {}
        self._chosen: dict[int, int] = {}
        self._bound: dict[int, int] = {}

    @property
    def widest(self) -> int:
        """The most CPUs that a queued job asks for; 0: none is queued."""
        return max((*self._sizes, *self._bound.values()), default=0)

    def join(self, job: int, cpus: int, is_bound: bool) -> None:
        """A job is queued from now on, or asks for something else than before.

        Args:
            job: its number.
            cpus: that it asks for.
            is_bound: it asks for more than CPUs: other resources, or a class of machines.
        """
        self.leave(job)
        if is_bound:
            self._bound[job] = cpus
        else:
            self._mark(job, cpus)

    def leave(self, job: int) -> None:
        """A job is queued no more; one that is not is left alone."""
        self._bound.pop(job, None)
        mark = self._marks.pop(job, None)
        if mark is None:
            return
        size = self._sizes[mark.cpus]
        size.jobs_n -= 1
        if not size.jobs_n:
            del self._sizes[mark.cpus]
        closed_s = self._closed_s - mark.closed_s
        fitting_s = size.fitting_s - mark.fitting_s
        narrow_s = size.narrow_s - mark.narrow_s
        waited_s, chosen = self.waited_s[job], self._chosen.get(job)
        if chosen == IMPOSSIBLE:
            waited_s[IMPOSSIBLE] += closed_s + fitting_s + narrow_s
            return
        waited_s[NO_MACHINE] += closed_s
        waited_s[TOO_WIDE if chosen is None else chosen] += narrow_s
        waited_s[self._unstarted if chosen is None else chosen] += fitting_s

    def choose(self, job: int, chosen: int | None) -> None:
        """From now on the policy says so of a job: `DEFERRED`, `IMPOSSIBLE`, or nothing."""
        if self._chosen.get(job) == chosen:
            return
        mark = self._marks.get(job)
        if mark is not None:  # what was counted so far is of what was said before
            self.leave(job)
            self._mark(job, mark.cpus)
        if chosen is None:
            del self._chosen[job]
        else:
            self._chosen[job] = chosen

    def pass_time(self, seconds: float, widest: int, fits: Callable[[int], bool]) -> None:
        """So much time passed.

        Args:
            seconds: how much.
            widest: the most CPUs that a free machine had left, or as many as anybody asks for.
            fits: whether a bound job, by its number, would have fitted on a free machine.
        """
        if not widest:
            self._closed_s += seconds
        else:
            for cpus, size in self._sizes.items():
                if cpus <= widest:
                    size.fitting_s += seconds
                else:
                    size.narrow_s += seconds
        for job in self._bound:
            self.waited_s[job, self._why(job, widest, fits)] += seconds

    def settle(self) -> None:
        """Bring `waited_s` up to now for all jobs that are queued."""
        for job, mark in list(self._marks.items()):
            self.leave(job)
            self._mark(job, mark.cpus)

    def _mark(self, job: int, cpus: int) -> None:
        size = self._sizes.setdefault(cpus, _Size())
        size.jobs_n += 1
        self._marks[job] = _Mark(cpus, self._closed_s, size.fitting_s, size.narrow_s)

    def _why(self, job: int, widest: int, fits: Callable[[int], bool]) -> int:
        chosen = self._chosen.get(job)
        if chosen == IMPOSSIBLE:
            return IMPOSSIBLE
        if not widest:
            return NO_MACHINE
        if chosen is not None:
            return chosen
        return self._unstarted if fits(job) else TOO_WIDE
