"""How long many jobs have waited, worked out together: of 100,000, a call for each would count."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from outrider.model.jobs import QUEUED, Job


def waits_s(jobs: Sequence[Job], at_s: float) -> NDArray[np.float64]:
    """As `Job.wait_s` of each that is queued; NaN for the others, and where it is not known."""
    since_s = np.array([job.submit_s for job in jobs], float)  # None becomes NaN
    for place, job in enumerate(jobs):
        eligible_s = job.spec.eligible_s
        if eligible_s is not None:  # of few jobs; where the submission is unknown, so is the wait
            since_s[place] = np.maximum(since_s[place], eligible_s)
    queued = np.fromiter(map(attrgetter("state"), jobs), np.int8, len(jobs)) == QUEUED
    return np.where(queued, np.maximum(0.0, at_s - since_s), np.nan)
