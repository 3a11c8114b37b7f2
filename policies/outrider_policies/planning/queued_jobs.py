"""The queue as a planning policy reckons with it: what each job needs, and what it would be worth.

Columns rather than jobs one by one: in an overloaded system thousands wait, and each round looks
at all of them.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import NOWHERE, SUSPENDED_STATE, Job, Queue, SiteView, TimeUtility
from outrider_policies.planning.run_lengths import RunLengths

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

LEAST_LEFT: Final = 1e-3
"""A run that outlasts its estimate is taken to end soon: this part of the estimate is left."""


class WaitingJobs:
    """Waiting jobs by row, in the order in which they got in line; the preempted of a round last.

    Attributes:
        jobs: the jobs.
        asked: (n,) CPUs each asks for.
        left_s: (n,) work left, seconds on all those CPUs at speed 1.
        ideal_s: (n,) the whole work, in the same unit.
        home: (n,) the machine on which a preempted job waits to go on; `NOWHERE`: it may run
            anywhere.
        is_open: (n,) not yet taken in this round.
    """

    def __init__(self, queue: Queue, view: SiteView, lengths: RunLengths) -> None:
        self.jobs: list[Job] = list(queue.jobs)
        self.asked = queue.cpus
        self.ideal_s = lengths.of_queue(queue.estimate_s)
        self.left_s = self.ideal_s.copy()
        self.home = np.full(len(self.jobs), NOWHERE)
        self.is_open = np.ones(len(self.jobs), dtype=bool)
        self._submit_s = queue.submit_s
        self._is_interactive = queue.interactive
        self._view = view
        for row, job in enumerate(self.jobs):
            if job.state == SUSPENDED_STATE:
                self.left_s[row] = work_left_s(job, float(self.ideal_s[row]), view.now)
                self.home[row] = job.machine
        self._utilities = self._by_class()
        self._bound = self._which_are_bound()

    def _which_are_bound(self) -> list[int]:
        """Rows of those that ask for more than CPUs, or may not run on every machine."""
        specs = enumerate(job.spec for job in self.jobs)
        return [row for row, spec in specs if spec.eligible or spec.resources is not None]

    def may_run_on(self, machine: int, left: Mapping[str, float]) -> Mask:
        """(n,) open and possible on a machine; whether it has the CPUs is not asked.

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
        asked = job.spec.resources
        return asked is None or all(n <= left.get(name, n) for name, n in asked.amounts())

    def copied(self) -> "WaitingJobs":
        """The same queue, to try something else with."""
        other = copy(self)
        other.is_open = self.is_open.copy()
        return other

    def close_hopeless(self) -> None:
        """Pass over, in this round, what could earn nothing even if it started now."""
        if self.jobs:
            self.is_open &= self.units(np.arange(len(self.jobs)), self.left_s) > 0.0

    def units(self, rows: Rows, remaining_s: Floats) -> Floats:
        """Unit utilities of the jobs of some rows, if they complete in so many seconds."""
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

    def add(self, jobs: Sequence[Job], machine: int, ideal_s: Sequence[float]) -> None:
        """Jobs that were preempted on a machine in this round wait, too."""
        now = self._view.now
        left_s = [work_left_s(job, s, now) for job, s in zip(jobs, ideal_s, strict=True)]
        submit_s = [job.start_s if job.submit_s is None else job.submit_s for job in jobs]
        interactive = [job.spec.job_class == "interactive" for job in jobs]
        self.jobs = [*self.jobs, *jobs]
        self.asked = np.append(self.asked, [job.spec.cpus for job in jobs])
        self.ideal_s = np.append(self.ideal_s, ideal_s)
        self.left_s = np.append(self.left_s, left_s)
        self.home = np.append(self.home, np.full(len(jobs), machine))
        self.is_open = np.append(self.is_open, np.ones(len(jobs), dtype=bool))
        self._submit_s = np.append(self._submit_s, submit_s)
        self._is_interactive = np.append(self._is_interactive, interactive)
        self._utilities = self._by_class()
        self._bound = self._which_are_bound()

    def _by_class(self) -> list[tuple[TimeUtility, Mask]]:
        """The utility of each class that waits, and whose rows it is for."""
        masks = (self._is_interactive, ~self._is_interactive)
        return [
            (self._view.utility(self.jobs[int(mask.argmax())]), mask)
            for mask in masks
            if mask.any()
        ]


def work_left_s(job: Job, ideal_s: float, now: float) -> float:
    """Work left of a job that runs or was preempted, seconds on all the CPUs it asks for."""
    return max(ideal_s - job.work_s(now), LEAST_LEFT * ideal_s)
