"""The jobs that came to a site in the last days, and how long jobs run there."""

from collections import deque
from collections.abc import Iterable
from math import inf, nan
from typing import Final

import msgspec
import numpy as np

from outrider.forecast.expected_starts import DAYS_BACK
from outrider.forecast.run_times import RunTimeHistory
from outrider.model.jobs import JobSpec
from outrider.model.localtime import DAY_S

KEPT_S: Final = (DAYS_BACK + 1) * DAY_S
"""For so long a job that came is kept, seconds."""


class Came(msgspec.Struct):
    """A job that came lately; `run_s` is nan until it ends."""

    job: int
    submit_s: float
    spec: JobSpec
    run_s: float = nan

    @property
    def estimate_s(self) -> float:
        """Run time that it was submitted with, seconds; nan: none."""
        return nan if self.spec.estimate_s is None else self.spec.estimate_s


class RecentJobs:
    """Learns from what befalls jobs, in the order of time.

    Attributes:
        history: run times of runs that have ended, however they did.
        whole_runs: of those that ended by themselves or were killed by their users: for whom
            simulates evictions by himself, those that were evicted are no run times.
        first_s: when the first job came, Unix seconds; inf: none has.
    """

    def __init__(self) -> None:
        self.history = RunTimeHistory()
        self.whole_runs = RunTimeHistory()
        self.first_s = inf
        self._lately: deque[Came] = deque()
        self._there: dict[int, Came] = {}
        self._since_s: dict[int, float] = {}
        self._groups: dict[int, list[int]] = {}

    @property
    def lately(self) -> Iterable[Came]:
        """Those that came in the last days, in order."""
        return self._lately

    @property
    def arrivals(self) -> tuple[list[Came], float]:
        """What is known of arrivals: those that came lately, and since when they are known.

        To be put back where others were told of that are no record of arrivals.
        """
        return list(self._lately), self.first_s

    @arrivals.setter
    def arrivals(self, known: tuple[list[Came], float]) -> None:
        lately, self.first_s = known
        self._lately = deque(lately)

    def submitted(self, time_s: float, job: int, spec: JobSpec) -> None:
        """A job came."""
        self._groups[job] = groups_in(self.history, spec)
        self._there[job] = came = Came(job, time_s, spec)
        self._lately.append(came)
        self.first_s = min(self.first_s, time_s)
        while self._lately and self._lately[0].submit_s < time_s - KEPT_S:
            self._lately.popleft()

    def started(self, time_s: float, job: int) -> None:
        """A job began to run."""
        self._since_s[job] = time_s

    def ended(self, time_s: float, job: int, leaves: bool) -> None:
        """A run ended; the job leaves with it, or waits again."""
        since_s, came = self._since_s.pop(job, None), self._there.get(job)
        if since_s is not None and came is not None:
            came.run_s = time_s - since_s
            groups = np.array(self._groups[job], dtype=np.int64)
            self.history.add(groups, came.run_s, came.estimate_s)
            if leaves:
                whole = np.array(groups_in(self.whole_runs, came.spec), dtype=np.int64)
                self.whole_runs.add(whole, came.run_s, came.estimate_s)
        if leaves:
            self._there.pop(job, None)
            self._groups.pop(job, None)
        elif came is not None:
            came.run_s = nan  # it waits again

    def known(self, job: int) -> Came | None:
        """A job that is there still and whose coming was seen."""
        return self._there.get(job)

    def groups_of(self, job: int, spec: JobSpec) -> list[int]:
        """(levels,) groups of a job in `history`, by what it asked for when it came."""
        if job not in self._groups:  # it was there before anybody watched
            self._groups[job] = groups_in(self.history, spec)
        return self._groups[job]


def groups_in(history: RunTimeHistory, spec: JobSpec) -> list[int]:
    """(levels,) groups of a job in a history of run times."""
    estimate_s = nan if spec.estimate_s is None else spec.estimate_s
    return history.groups_of(spec.user or spec.vo, estimate_s, spec.job_class, spec.cpus)
