"""The queue as a planning policy reckons with it: what each job needs, and what it would be worth.

Columns rather than jobs one by one: in an overloaded system thousands wait, and each round looks
at all of them.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import NOWHERE, SUSPENDED_STATE, Job, Queue, SiteView, TimeUtility
from outrider_policies.learners.run_lengths import RunLengths

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

LEAST_LEFT: Final = 1e-3
"""A run that outlasts its estimate is taken to end soon: this part of the estimate is left."""


class WaitingJobs:
    """Waiting jobs by row, in the order in which they got in line.

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
        self._now = view.now
        self._utilities = _by_class(self.jobs, queue.interactive, view)
        for row, job in enumerate(self.jobs):
            if job.state == SUSPENDED_STATE:
                least_s = LEAST_LEFT * self.ideal_s[row]
                self.left_s[row] = max(self.left_s[row] - job.work_s(view.now), least_s)
                self.home[row] = job.machine

    def may_run_on(self, machine: int) -> Mask:
        """(n,) open, and not bound to another machine; whether it has the CPUs is not asked."""
        mask: Mask = self.is_open & ((self.home == NOWHERE) | (self.home == machine))
        return mask

    def units(self, rows: Rows, remaining_s: Floats) -> Floats:
        """Unit utilities of the jobs of some rows, if they complete in so many seconds."""
        turnaround_s = self._now + remaining_s - self._submit_s[rows]
        ideal_s = self.ideal_s[rows]
        if len(self._utilities) == 1:
            utility, _ = self._utilities[0]
            return utility.unit(turnaround_s, ideal_s)
        units = np.empty(len(rows))
        for utility, is_of_class in self._utilities:
            mask = is_of_class[rows]
            units[mask] = utility.unit(turnaround_s[mask], ideal_s[mask])
        return units


def _by_class(
    jobs: Sequence[Job], is_interactive: Mask, view: SiteView
) -> list[tuple[TimeUtility, Mask]]:
    """The utility of each class that waits, and whose rows it is for."""
    masks: Iterable[Mask] = (is_interactive, ~is_interactive)
    return [(view.utility(jobs[int(mask.argmax())]), mask) for mask in masks if mask.any()]
