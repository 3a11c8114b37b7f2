"""How long many jobs have waited, worked out together: of 100,000, a call for each would count."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from outrider.model.jobs import QUEUED, Job


def waits_s(jobs: Sequence[Job], at_s: float) -> NDArray[np.float64]:
    """As `Job.wait_s` of each that is queued; NaN for the others, and where it is not known."""
    submit_s = np.array([job.submit_s for job in jobs], float)  # None becomes NaN
    eligible_s = np.array([job.spec.eligible_s for job in jobs], float)
    queued = np.fromiter(map(attrgetter("state"), jobs), np.int8, len(jobs)) == QUEUED
    waited_s = np.maximum(0.0, at_s - np.fmax(submit_s, eligible_s))
    return np.where(queued & ~np.isnan(submit_s), waited_s, np.nan)
