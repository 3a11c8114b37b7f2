"""Base of policies that choose one of the first jobs of the queue, as a trained selector."""

import random
from abc import abstractmethod
from collections.abc import Sequence
from math import log1p
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api.capabilities import Ranks
from outrider.api.policy import Policy, SettingsT_co
from outrider.api.queue import Queue
from outrider.api.site_view import SiteView
from outrider.model.decisions import NO_MACHINE, NOWHERE, Choice
from outrider.model.jobs import Job

# -- queue window ----------------------------------------------------------------------------------
# The first jobs of the queue as a matrix of numbers: the input of a trained selector.
#
# One row per job, oldest first; one column per feature, each from 0 to 1. An environment that
# trains a selector and a policy that runs it later call the same function, so that both see the
# same numbers. They contain nothing that a user could not know: of run times only the estimate.

Observation = NDArray[np.float32]
"""Matrix (window, features), each value from 0 to 1."""

WINDOW_FEATURES: Final = (
    "is_job", "wait", "estimate", "estimate_known", "cpus", "fits_now", "interactive",
    "free_cpus", "queue_length",
)  # fmt: skip
"""Names of the columns; a row without a job is 0 throughout.

``is_job``: 1. ``wait``: since submission, log(1 + s) of at most 4 weeks. ``estimate``: of the run
time, on the same scale; 0 where there is none. ``estimate_known``: 1 or 0. ``cpus``: requested, as
a share of the site's. ``fits_now``: 1 if a machine that is open has the CPUs left. ``interactive``:
1 if that is its declared class. ``free_cpus``: CPUs left at the site, as a share. ``queue_length``:
jobs that wait, log(1 + n) of at most 10,000. The last two are the same in every row.
"""

LONGEST_S: Final = 28 * 86_400.0
MOST_JOBS: Final = 10_000


def observe_window(
    queue: Queue, rows: Sequence[int], view: SiteView, window: int, waiting_n: int
) -> Observation:
    """Return the matrix of the jobs in these rows of the queue.

    Args:
        queue: the waiting jobs.
        rows: rows of the queue, at most `window`, in the order of the matrix.
        view: the site.
        window: rows of the matrix.
        waiting_n: jobs that wait, those beyond the window included.
    """
    seen = np.zeros((window, len(WINDOW_FEATURES)), dtype=np.float32)
    at, n = np.asarray(rows, dtype=np.intp), len(rows)
    estimate_s, cpus = queue.estimate_s[at], queue.cpus[at]
    left = [view.cpus_left(machine) for machine in view.free_since]
    site_cpus = max(1, view.open_cpus)
    seen[:n, 0] = 1.0
    seen[:n, 1] = _log_share(view.now - queue.submit_s[at], LONGEST_S)
    seen[:n, 2] = _log_share(np.nan_to_num(estimate_s), LONGEST_S)
    seen[:n, 3] = ~np.isnan(estimate_s)
    seen[:n, 4] = np.minimum(cpus / site_cpus, 1.0)
    seen[:n, 5] = cpus <= max(left, default=0)
    seen[:n, 6] = queue.interactive[at]
    seen[:n, 7] = min(sum(left) / site_cpus, 1.0)
    seen[:n, 8] = min(log1p(waiting_n) / log1p(MOST_JOBS), 1.0)
    return seen


def _log_share(values: NDArray[np.float64], most: float) -> NDArray[np.float64]:
    """Map each value from 0 at 0 to 1 at `most` and beyond, logarithmically."""
    shares: NDArray[np.float64] = np.log1p(np.clip(values, 0.0, most)) / log1p(most)
    return shares


# -- window policy ---------------------------------------------------------------------------------

SELECTED: Final = "selected"
"""Reason of a start that a selector chose, or that the site's discipline let pass."""


class WindowPolicy(Ranks, Policy[SettingsT_co]):
    """Policy that selects the next job from a window: the oldest `window` waiting jobs.

    Whenever a CPU is free and two jobs or more wait, `select` names the one that is tried next.
    The others follow in the order of their arrival, as far as the site's discipline lets them pass
    it. After each start `select` is called again. A job starts on the machine that has been free
    longest; one of several CPUs where it fits tightest, as under ``fifo`` and ``sjf``.

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
        """Return the row of the job that is tried next; an invalid row means the oldest.

        Args:
            jobs: two or more, by row.
            observation: of these jobs, as `observe_window` gives it.
        """

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Place the selected job at 0 and all others after it, by arrival."""
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
        """Forget a job that left the queue."""
        self._chosen.discard(job.number)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose the longest-free machine, or the tightest for several CPUs; never defer a job."""
        cpus = job.spec.cpus
        machine = view.longest_free() if cpus == 1 else view.tightest(cpus)
        if machine == NOWHERE:
            return Choice(NOWHERE, NO_MACHINE, 1.0)
        self._chosen.add(job.number)
        return Choice(machine, SELECTED, 1.0)
