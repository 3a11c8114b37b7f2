"""Queue for planning policies: the work and the utility of every queued job, in columns.

Columns rather than single jobs, because in an overloaded system thousands are queued, and every
scheduling pass reads all of them.
"""

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api import COMPLETED_RUN, NOWHERE, Job, JobSpec, Outcome, Queue, SiteView, TimeUtility

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]


# -- run lengths -----------------------------------------------------------------------------------
# Ideal run times for utilities: estimates, or the mean of completed runs.


class RunLengths:
    """Ideal run times: the estimate, or the mean of completed jobs without an estimate.

    Nothing depends on future jobs: the longest length, if not given, is the longest seen so far.
    """

    def __init__(self, assumed_s: float, longest_s: float | None) -> None:
        """Start with lengths that are assumed until some are known.

        Args:
            assumed_s: length of a job without estimate, until one of them has completed.
            longest_s: the longest possible length, seconds; None: the longest seen so far.
        """
        self._assumed_s = assumed_s
        self._given_s = longest_s
        self._longest_seen_s = 0.0
        self._runs_n = 0
        self._total_s = 0.0

    @property
    def longest_s(self) -> float:
        """The longest length, given or seen; seconds, > 0."""
        return self._given_s or self._longest_seen_s or self._assumed_s

    @property
    def typical_s(self) -> float:
        """Length assumed for a job without estimate, seconds."""
        mean_s = self._total_s / self._runs_n if self._runs_n else self._assumed_s
        return max(mean_s, SHORTEST_S)

    def ideal_s(self, job: Job) -> float:
        """Return the run time of a job on all requested CPUs, seconds, > 0."""
        estimate_s = job.spec.estimate_s
        return self.typical_s if estimate_s is None else max(estimate_s, SHORTEST_S)

    def of_queue(self, estimate_s: Floats) -> Floats:
        """Return (n,) ideal run times of queued jobs from (n,) estimates, nan: no estimate."""
        if len(estimate_s):
            longest_s = float(np.fmax.reduce(estimate_s))
            if longest_s > self._longest_seen_s:
                self._longest_seen_s = longest_s
        return self.of_jobs(estimate_s)

    def of_jobs(self, estimate_s: Floats) -> Floats:
        """Return (n,) ideal run times of jobs from their (n,) estimates, nan: no estimate."""
        ideal_s: Floats = np.maximum(estimate_s, SHORTEST_S)
        unknown = np.isnan(ideal_s)
        if np.count_nonzero(unknown):
            ideal_s[unknown] = self.typical_s
        return ideal_s

    def completed(self, run_s: float) -> None:
        """Count the completion of a job without estimate after so many seconds."""
        self._runs_n += 1
        self._total_s += run_s
        self._longest_seen_s = max(self._longest_seen_s, run_s)

    def save(self) -> dict[str, Any]:
        """Return the observed lengths as plain data."""
        return {
            "longest_seen_s": self._longest_seen_s,
            "runs_n": self._runs_n,
            "total_s": self._total_s,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned."""
        self._longest_seen_s = float(saved["longest_seen_s"])
        self._runs_n = int(saved["runs_n"])
        self._total_s = float(saved["total_s"])


class QueuedJobs:
    """Queued jobs by row, in queue order; jobs preempted in this pass are last.

    Attributes:
        jobs: (n,) the jobs.
        requested: (n,) requested CPUs.
        left_s: (n,) work left, seconds on all requested CPUs at speed 1.
        ideal_s: (n,) the whole work, in the same unit.
        home: (n,) the machine on which a preempted job must resume; `NOWHERE`: any machine.
        is_open: (n,) True if it is not yet placed in this pass.
        changes_n: number of times that jobs were taken out or put back in this pass.
    """

    def __init__(self, queue: Queue, view: SiteView, lengths: RunLengths) -> None:
        self.jobs: list[Job] = list(queue.jobs)
        self.requested = queue.cpus
        self.ideal_s = lengths.of_queue(queue.estimate_s)
        self.left_s = left_of(self.ideal_s, queue.work_s)
        self.home = queue.home
        self.is_open = np.ones(len(self.jobs), dtype=bool)
        self._submit_s = queue.submit_s
        self._is_interactive = queue.interactive
        self._bound = queue.bound.nonzero()[0].tolist()
        self._view = view
        self.changes_n = 0
        self._at_speed: dict[float, tuple[Floats, Floats]] = {}
        self._utilities = self._by_class()

    @property
    def has_open(self) -> bool:
        """True if a job is left that is not placed yet."""
        return bool(np.count_nonzero(self.is_open))

    def may_run_on(self, machine: int, left: Mapping[str, float]) -> Mask:
        """Return (n,) True where a job is open and may run on a machine; CPUs are not checked.

        Args:
            machine: its number.
            left: resources besides CPUs that are left there, by name.
        """
        mask: Mask = self.is_open & ((self.home == NOWHERE) | (self.home == machine))
        for row in self._bound:
            mask[row] &= self.could_run(row, machine, left)
        return mask

    def could_run(self, row: int, machine: int, left: Mapping[str, float]) -> bool:
        """Return whether the job of a row may use a machine with these resources left."""
        job = self.jobs[row]
        if not self._view.may_use(job, machine):
            return False
        requested = job.spec.resources
        return requested is None or all(n <= left.get(name, n) for name, n in requested.amounts())

    def take(self, row: int) -> Job:
        """Mark the job of a row as placed, and return it."""
        self.is_open[row] = False
        self.changes_n += 1
        return self.jobs[row]

    def put_back(self, row: int) -> None:
        """Mark the job of a row as not placed."""
        self.is_open[row] = True
        self.changes_n += 1

    def copied(self) -> "QueuedJobs":
        """Return a copy with its own `is_open`, for an alternative plan."""
        other = copy(self)
        other.is_open = self.is_open.copy()
        return other

    def close_hopeless(self) -> None:
        """Exclude, in this pass, jobs that could earn nothing even if they started now."""
        if self.jobs:
            self.is_open &= self.at_speed(1.0)[1] > 0.0

    def units(self, rows: Rows, remaining_s: Floats) -> Floats:
        """Return (rows,) unit utilities if these jobs complete in `remaining_s` (rows,) seconds."""
        turnaround_s = self._view.now + remaining_s - self._submit_s[rows]
        ideal_s = self.ideal_s[rows]
        if len(self._utilities) == 1:
            utility, _ = self._utilities[0]
            return utility.unit(turnaround_s, ideal_s)
        units = np.empty(len(rows))
        for utility, is_of_class in self._utilities:
            mask = is_of_class[rows]
            units[mask] = utility.unit(turnaround_s[mask], ideal_s[mask])
        return units

    def at_speed(self, speed: float) -> tuple[Floats, Floats]:
        """Return (n,) seconds until each completes on all its CPUs, and (n,) its unit utility then.

        Computed once for all machines of a speed.
        """
        known = self._at_speed.get(speed)
        if known is None:
            remaining_s = self.left_s / speed
            units = self.units(np.arange(len(self.jobs)), remaining_s)
            known = self._at_speed[speed] = remaining_s, units
        return known

    def add(self, jobs: Sequence[Job], machine: int, ideal_s: Sequence[float]) -> None:
        """Append jobs that were preempted on a machine in this pass."""
        self.changes_n += 1
        self._at_speed = {}
        now = self._view.now
        left_s = [work_left_s(job, s, now) for job, s in zip(jobs, ideal_s, strict=True)]
        submit_s = [job.start_s if job.submit_s is None else job.submit_s for job in jobs]
        interactive = [job.spec.job_class == "interactive" for job in jobs]
        rows = enumerate(jobs, len(self.jobs))
        self._bound = [*self._bound, *(row for row, job in rows if job.spec.is_bound)]
        self.jobs = [*self.jobs, *jobs]
        n, join = len(jobs), np.concatenate
        self.requested = join([self.requested, [job.spec.cpus for job in jobs]])
        self.ideal_s = join([self.ideal_s, ideal_s])
        self.left_s = join([self.left_s, left_s])
        self.home = join([self.home, [machine] * n])
        self.is_open = join([self.is_open, [True] * n])
        self._submit_s = join([self._submit_s, submit_s])
        self._is_interactive = join([self._is_interactive, interactive])
        self._utilities = self._by_class()

    def _by_class(self) -> list[tuple[TimeUtility, Mask]]:
        """Return the utility function of each queued class, with the mask of its rows."""
        interactive_n, masks = np.count_nonzero(self._is_interactive), list[Mask]()
        if interactive_n:
            masks.append(self._is_interactive)
        if interactive_n < len(self.jobs):
            masks.append(~self._is_interactive)
        return [(self._view.utility(self.jobs[int(mask.argmax())]), mask) for mask in masks]


MIN_LEFT_RATIO: Final = 1e-3
"""Minimum of work left as a ratio of the estimate, for a run that exceeds its estimate."""


def work_left_s(job: Job, ideal_s: float, now: float) -> float:
    """Return the work left of a job, seconds on all requested CPUs at speed 1."""
    return max(ideal_s - job.work_s(now), MIN_LEFT_RATIO * ideal_s)


def left_of(ideal_s: Floats, work_s: Floats) -> Floats:
    """Return (n,) work left of jobs.

    Args:
        ideal_s: (n,) the whole work.
        work_s: (n,) the work done, in the same unit.
    """
    left_s: Floats = np.maximum(ideal_s - work_s, MIN_LEFT_RATIO * ideal_s)
    return left_s


class JobRequest(NamedTuple):
    """A job's request, used as the key of its outcome.

    Attributes:
        submit_s: submission time; None if unknown.
        estimate_s: run time estimate, seconds; None if unknown.
        cpus: requested CPUs.
        job_class: declared class.
    """

    submit_s: float | None
    estimate_s: float | None
    cpus: int
    job_class: str


def request_of(job: Job) -> Hashable:
    """Return the request of a job, as the key of its outcome."""
    spec = job.spec
    return JobRequest(job.submit_s, spec.estimate_s, spec.cpus, spec.job_class)


def final_utility(outcome: Outcome, request: JobRequest, view: SiteView) -> float:
    """Return unit utility x requested CPUs x ideal run time, CPU-seconds.

    Vengerov 2005, section 2. 0 for a run that did not complete its job. Without an estimate the
    ideal run time is the length of the run.
    """
    if outcome.ending != COMPLETED_RUN:
        return 0.0
    submit_s = outcome.start_s if request.submit_s is None else request.submit_s
    ideal_s = outcome.run_s if request.estimate_s is None else request.estimate_s
    job_of_class = Job(outcome.job, JobSpec(job_class=request.job_class), submit_s)
    unit = float(view.utility(job_of_class).unit(outcome.end_s - submit_s, ideal_s))
    return unit * request.cpus * ideal_s


SHORTEST_S: Final = 1e-3
"""Minimum of a run time, seconds: utility per second must be finite."""
