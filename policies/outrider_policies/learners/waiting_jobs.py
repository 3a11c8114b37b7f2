"""The queue as a planning policy reckons with it: what each job needs, and what it would be worth.

Columns rather than jobs one by one: in an overloaded system thousands wait, and each round looks
at all of them.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import NOWHERE, SUSPENDED_STATE, Job, Queue, SiteView, TimeUtility
from outrider_policies.learners.run_lengths import RunLengths

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

LEAST_LEFT: Final = 1e-3
"""A run that outlasts its estimate is taken to end soon: this part of the estimate is left."""


class WaitingJobs:
    """Waiting jobs by row, in the order in which they got in line.

    Attributes:
        jobs: the jobs.
        asked: (n,) CPUs each asks for.
        left_s: (n,) work left, seconds on all those CPUs at speed 1.
        ideal_s: (n,) the whole work, in the same unit.
        submit_s: (n,) when each was submitted.
        home: (n,) the machine on which a preempted job waits to go on; `NOWHERE`: it may run
            anywhere.
        is_open: (n,) not yet taken in this round.
    """

    def __init__(self, queue: Queue, view: SiteView, lengths: RunLengths) -> None:
        self.jobs: Sequence[Job] = queue.jobs
        self.asked = queue.cpus
        self.ideal_s = lengths.of_queue(queue)
        self.submit_s = queue.submit_s
        self.left_s = self.ideal_s
        self.home = np.full(len(self.jobs), NOWHERE)
        self.is_open = np.ones(len(self.jobs), dtype=bool)
        self._now = view.now
        self._utilities = _by_class(queue, view)
        suspended = [row for row, job in enumerate(self.jobs) if job.state == SUSPENDED_STATE]
        if suspended:
            self.left_s = self.ideal_s.copy()
            for row in suspended:
                job = self.jobs[row]
                self.left_s[row] -= job.work_s(view.now)
                self.home[row] = job.machine
            np.maximum(self.left_s, LEAST_LEFT * self.ideal_s, out=self.left_s)

    def fitting(self, machine: int) -> NDArray[np.bool_]:
        """(n,) which may run on a machine, if it has enough CPUs."""
        mask: NDArray[np.bool_] = self.is_open & ((self.home == NOWHERE) | (self.home == machine))
        return mask

    def units(self, rows: Rows, remaining_s: Floats) -> Floats:
        """Unit utilities of the jobs of some rows, if they complete in so many seconds."""
        turnaround_s = self._now + remaining_s - self.submit_s[rows]
        ideal_s = self.ideal_s[rows]
        if len(self._utilities) == 1:
            utility, _ = self._utilities[0]
            return utility.unit(turnaround_s, ideal_s)
        units = np.empty(len(rows))
        for utility, is_of_class in self._utilities:
            mask = is_of_class[rows]
            units[mask] = utility.unit(turnaround_s[mask], ideal_s[mask])
        return units


def _by_class(queue: Queue, view: SiteView) -> list[tuple[TimeUtility, NDArray[np.bool_]]]:
    """The utility of each class that waits, and whose rows it is for."""
    found = []
    for mask in (queue.interactive, ~queue.interactive):
        if mask.any():
            found.append((view.utility(queue.jobs[int(mask.argmax())]), mask))
    return found
