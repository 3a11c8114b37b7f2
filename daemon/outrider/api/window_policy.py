"""A policy that chooses one job out of the first of the queue, as a trained selector does."""

import random
from abc import abstractmethod
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api.capabilities import Ranks
from outrider.api.policy import Policy, SettingsT_co
from outrider.api.queue import Queue
from outrider.api.queue_window import Observation, observe_window
from outrider.api.site_view import SiteView
from outrider.model.decisions import NO_MACHINE, NOWHERE, Choice
from outrider.model.jobs import Job

SELECTED: Final = "selected"
"""Reason of a start that a selector chose, or that the site's discipline let pass."""


class WindowPolicy(Ranks, Policy[SettingsT_co]):
    """Selects the next job out of a window: the oldest `window` jobs that wait.

    Whenever a CPU is free and two jobs or more wait, `select` names the one that is tried next;
    the others follow in the order of their arrival, as far as the site's discipline lets them pass
    it. After each start `select` is asked again. A job starts on the machine that has been free the
    longest, one of several CPUs where they fit tightest, as under ``fifo`` and ``sjf``.

    Attributes:
        window: jobs that `select` sees.
    """

    ranks_anew = True
    window: int
    features: ClassVar[tuple[str, ...]] = ("submit_s", "estimate_s", "cpus", "job_class")

    def __init__(self, settings: SettingsT_co, rng: random.Random, window: int) -> None:
        super().__init__(settings, rng)
        self.window = window
        self._chosen_at_s = 0.0
        self._chosen: set[int] = set()  # at that moment: in shadow they stay in the queue

    @abstractmethod
    def select(self, jobs: list[Job], observation: Observation) -> int:
        """The row of the job that is tried next; one that is none means the oldest.

        Args:
            jobs: two or more, by row.
            observation: of these jobs, as `observe_window` gives it.
        """

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """The selected job at 0, behind it all others by arrival."""
        places = np.arange(1.0, len(queue.jobs) + 1.0)
        rows = self._rows(queue, view) if view.free_total else []  # the last start may have left 0
        if len(rows) > 1:
            waiting_n = len(queue.jobs) - len(self._chosen)
            seen = observe_window(queue, rows, view, self.window, waiting_n)
            selected = self.select([queue.jobs[row] for row in rows], seen)
            places[rows[selected if 0 <= selected < len(rows) else 0]] = 0.0
        return places

    def _rows(self, queue: Queue, view: SiteView) -> list[int]:
        if view.now != self._chosen_at_s:
            self._chosen_at_s = view.now
            self._chosen.clear()
        if not self._chosen:
            return list(range(min(self.window, len(queue.jobs))))
        rows: list[int] = []
        for row, job in enumerate(queue.jobs):
            if len(rows) == self.window:
                break
            if job.number not in self._chosen:
                rows.append(row)
        return rows

    def on_dequeue(self, job: Job, view: SiteView) -> None:
        """A job left the queue."""
        self._chosen.discard(job.number)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """The longest-free machine, or the tightest for several CPUs; never defers a job."""
        cpus = job.spec.cpus
        machine = view.longest_free() if cpus == 1 else view.tightest(cpus)
        if machine == NOWHERE:
            return Choice(NOWHERE, NO_MACHINE, 1.0)
        self._chosen.add(job.number)
        return Choice(machine, SELECTED, 1.0)
