"""Seconds that queued jobs wait for each reason, counted once for all that are alike."""

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
    """What was counted for queued jobs that fit, or do not, at the same moments.

    Attributes:
        cpus: that they ask for.
        jobs_n: how many are queued.
        fitting_s: seconds in which they would have fitted on a free machine.
        narrow_s: seconds in which they would not, though some machine was free.
    """

    __slots__ = ("cpus", "fitting_s", "jobs_n", "narrow_s")

    def __init__(self, cpus: int) -> None:
        self.cpus = cpus
        self.jobs_n = 0
        self.fitting_s = self.narrow_s = 0.0

    def count(self, seconds: float, fits: bool) -> None:
        """So much time passed, in which they would have fitted, or not."""
        if fits:
            self.fitting_s += seconds
        else:
            self.narrow_s += seconds


class _Mark(NamedTuple):
    """What was counted when a job joined the queue, or was last chosen otherwise."""

    size: _Size
    closed_s: float
    fitting_s: float
    narrow_s: float


class QueueTimes:
    """Counts time once for all jobs that ask for equally many CPUs and nothing else.

    A job's part of that is what was counted between two marks: when it joins the queue, when the
    policy says otherwise of it, and when it leaves. A job that is bound, as it asks for more than
    CPUs, is counted by itself whenever a machine is free.

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
        self._bound: dict[int, _Size] = {}
        self._marks: dict[int, _Mark] = {}
        self._chosen: dict[int, int] = {}

    @property
    def widest(self) -> int:
        """The most CPUs that a queued job asks for; 0: none is queued."""
        return max((*self._sizes, *(size.cpus for size in self._bound.values())), default=0)

    def join(self, job: int, cpus: int, is_bound: bool) -> None:
        """A job is queued from now on, or asks for something else than before.

        Args:
            job: its number.
            cpus: that it asks for.
            is_bound: it asks for more than CPUs (`JobSpec.is_bound`).
        """
        self.leave(job)
        if is_bound:
            size = self._bound[job] = _Size(cpus)
        else:
            size = self._sizes.setdefault(cpus, _Size(cpus))
        size.jobs_n += 1
        self._mark(job, size)

    def leave(self, job: int) -> None:
        """A job is queued no more; one that is not is left alone."""
        if job not in self._marks:
            return
        self._settle(job)
        size = self._marks.pop(job).size
        size.jobs_n -= 1
        if self._bound.pop(job, None) is None and not size.jobs_n:
            del self._sizes[size.cpus]

    def choose(self, job: int, chosen: int | None) -> None:
        """From now on the policy says so of a job: `DEFERRED`, `IMPOSSIBLE`, or nothing."""
        if self._chosen.get(job) == chosen:
            return
        if job in self._marks:  # what was counted so far is of what was said before
            self._settle(job)
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
            return
        for cpus, size in self._sizes.items():
            size.count(seconds, cpus <= widest)
        for job, size in self._bound.items():
            # of one that is deferred or impossible both count alike, and to ask is dear
            size.count(seconds, job in self._chosen or fits(job))

    def settle(self) -> None:
        """Bring `waited_s` up to now for all jobs that are queued."""
        for job in self._marks:
            self._settle(job)

    def _mark(self, job: int, size: _Size) -> None:
        self._marks[job] = _Mark(size, self._closed_s, size.fitting_s, size.narrow_s)

    def _settle(self, job: int) -> None:
        """Add what was counted since a job's mark to what it waited for, and mark it anew."""
        mark = self._marks[job]
        size = mark.size
        closed_s = self._closed_s - mark.closed_s
        fitting_s, narrow_s = size.fitting_s - mark.fitting_s, size.narrow_s - mark.narrow_s
        waited_s, chosen = self.waited_s[job], self._chosen.get(job)
        waited_s[IMPOSSIBLE if chosen == IMPOSSIBLE else NO_MACHINE] += closed_s
        waited_s[TOO_WIDE if chosen is None else chosen] += narrow_s
        waited_s[self._unstarted if chosen is None else chosen] += fitting_s
        self._mark(job, size)
