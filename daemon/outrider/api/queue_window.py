"""The first jobs of the queue as a matrix of numbers: what a trained selector looks at.

One row a job, oldest first; one column a feature, each from 0 to 1. An environment that trains a
selector and a policy that runs it later call the same function, so that both see the same numbers.
There is nothing in them that a user could not know: of run times only the estimate.
"""

from collections.abc import Sequence
from math import log1p
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.api.queue import Queue
from outrider.api.site_view import SiteView

Observation = NDArray[np.float32]
"""(window, features), each value from 0 to 1."""

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
    """The matrix of the jobs in these rows of the queue.

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
    """From 0 at 0 to 1 at `most` and beyond, by the logarithm."""
    shares: NDArray[np.float64] = np.log1p(np.clip(values, 0.0, most)) / log1p(most)
    return shares
