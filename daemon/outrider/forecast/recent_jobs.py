"""Jobs that arrived at a site in the last days, and the history of run times."""

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
"""Period for which an arrived job is kept, seconds."""


class RecentJob(msgspec.Struct):
    """Job that arrived recently; `run_s` is nan until it ends."""

    job: int
    submit_s: float
    spec: JobSpec
    run_s: float = nan

    @property
    def estimate_s(self) -> float:
        """Estimated run time at submission, seconds; nan: none."""
        return nan if self.spec.estimate_s is None else self.spec.estimate_s


class RecentJobs:
    """Recorder of recent jobs and run times; its calls must be in the order of time.

    Attributes:
        history: run times of all runs that have ended, for any reason.
        whole_runs: run times of those that completed or were killed by their users. Evicted runs
            are not in it, for simulations that model evictions themselves.
        first_s: time of the first arrival, Unix seconds; inf: none yet.
    """

    def __init__(self) -> None:
        self.history = RunTimeHistory()
        self.whole_runs = RunTimeHistory()
        self.first_s = inf
        self._jobs: deque[RecentJob] = deque()
        self._there: dict[int, RecentJob] = {}
        self._since_s: dict[int, float] = {}
        self._groups: dict[int, list[int]] = {}

    @property
    def jobs(self) -> Iterable[RecentJob]:
        """Jobs that arrived in the last days, in order."""
        return self._jobs

    @property
    def arrivals(self) -> tuple[list[RecentJob], float]:
        """Known arrivals: recent jobs, and the begin of the known period.

        The setter restores them after events that are no record of arrivals.
        """
        return list(self._jobs), self.first_s

    @arrivals.setter
    def arrivals(self, known: tuple[list[RecentJob], float]) -> None:
        jobs, self.first_s = known
        self._jobs = deque(jobs)

    def submitted(self, time_s: float, job: int, spec: JobSpec) -> None:
        """Record that a job arrived."""
        self._groups[job] = groups_in(self.history, spec)
        self._there[job] = came = RecentJob(job, time_s, spec)
        self._jobs.append(came)
        self.first_s = min(self.first_s, time_s)
        while self._jobs and self._jobs[0].submit_s < time_s - KEPT_S:
            self._jobs.popleft()

    def started(self, time_s: float, job: int) -> None:
        """Record that a job began to run."""
        self._since_s[job] = time_s

    def ended(self, time_s: float, job: int, leaves: bool) -> None:
        """Record that a run ended; the job leaves with it, or waits again."""
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

    def known(self, job: int) -> RecentJob | None:
        """Return a present job whose arrival was seen; None for any other."""
        return self._there.get(job)

    def groups_of(self, job: int, spec: JobSpec) -> list[int]:
        """Return (levels,) groups of a job in `history`, by its request at arrival."""
        if job not in self._groups:  # it arrived before the record began
            self._groups[job] = groups_in(self.history, spec)
        return self._groups[job]


def groups_in(history: RunTimeHistory, spec: JobSpec) -> list[int]:
    """Return (levels,) groups of a job in a history of run times."""
    estimate_s = nan if spec.estimate_s is None else spec.estimate_s
    return history.groups_of(spec.user or spec.vo, estimate_s, spec.job_class, spec.cpus)
