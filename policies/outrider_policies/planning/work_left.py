"""Work that jobs have left, of one or of many at once, by the same arithmetic."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job

Floats = NDArray[np.float64]

LEAST_LEFT: Final = 1e-3
"""Least work left as a ratio of the estimate, for a run that exceeds its estimate."""


def work_left_s(job: Job, ideal_s: float, now: float) -> float:
    """Work left of a running or preempted job, seconds on all requested CPUs at speed 1."""
    return max(ideal_s - job.work_s(now), LEAST_LEFT * ideal_s)


def left_of(ideal_s: Floats, work_s: Floats) -> Floats:
    """(n,) work left of jobs, from (n,) all of it and (n,) what is done, in the same unit."""
    left_s: Floats = np.maximum(ideal_s - work_s, LEAST_LEFT * ideal_s)
    return left_s
