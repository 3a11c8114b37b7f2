"""The queue for planning policies: the work and the utility of every queued job, in columns.

Columns rather than single jobs, because in an overloaded system thousands are queued, and every
scheduling pass looks at all of them.
"""

from collections.abc import Mapping, Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from outrider.api import NOWHERE, Job, Queue, SiteView, TimeUtility
from outrider_policies.planning.run_lengths import RunLengths
from outrider_policies.planning.work_left import left_of, work_left_s

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]


class QueuedJobs:
    """Queued jobs by row, in queue order; jobs preempted in this pass are last.

    Attributes:
        jobs: (n,) the jobs.
        requested: (n,) requested CPUs.
        left_s: (n,) work left, seconds on all requested CPUs at speed 1.
        ideal_s: (n,) the whole work, in the same unit.
        home: (n,) the machine on which a preempted job must resume; `NOWHERE`: any machine.
        is_open: (n,) whether it is not yet placed in this pass.
        changes_n: how often jobs were taken out or put back in this pass.
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
        """Whether a job is left that is not placed yet."""
        return bool(np.count_nonzero(self.is_open))

    def may_run_on(self, machine: int, left: Mapping[str, float]) -> Mask:
        """(n,) open and possible on a machine; the machine's CPUs are not checked.

        Args:
            machine: its number.
            left: resources besides CPUs that are left there, by name.
        """
        mask: Mask = self.is_open & ((self.home == NOWHERE) | (self.home == machine))
        for row in self._bound:
            mask[row] &= self.could_run(row, machine, left)
        return mask

    def could_run(self, row: int, machine: int, left: Mapping[str, float]) -> bool:
        """Whether the job of a row may use a machine with these resources left."""
        job = self.jobs[row]
        if not self._view.may_use(job, machine):
            return False
        requested = job.spec.resources
        return requested is None or all(n <= left.get(name, n) for name, n in requested.amounts())

    def take(self, row: int) -> Job:
        """The job of a row is placed."""
        self.is_open[row] = False
        self.changes_n += 1
        return self.jobs[row]

    def put_back(self, row: int) -> None:
        """It is not placed after all."""
        self.is_open[row] = True
        self.changes_n += 1

    def copied(self) -> "QueuedJobs":
        """A copy with its own `is_open`, for an alternative plan."""
        other = copy(self)
        other.is_open = self.is_open.copy()
        return other

    def close_hopeless(self) -> None:
        """Exclude, in this pass, jobs that could earn nothing even if they started now."""
        if self.jobs:
            self.is_open &= self.at_speed(1.0)[1] > 0.0

    def units(self, rows: Rows, remaining_s: Floats) -> Floats:
        """(rows,) unit utilities if these jobs complete in `remaining_s` (rows,) seconds."""
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
        """(n,) seconds until each completes on all its CPUs, and (n,) its unit utility then.

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
        """The utility function of each queued class, with the mask of its rows."""
        interactive_n, masks = np.count_nonzero(self._is_interactive), list[Mask]()
        if interactive_n:
            masks.append(self._is_interactive)
        if interactive_n < len(self.jobs):
            masks.append(~self._is_interactive)
        return [(self._view.utility(self.jobs[int(mask.argmax())]), mask) for mask in masks]
