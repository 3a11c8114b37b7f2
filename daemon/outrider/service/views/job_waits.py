"""How long many jobs have waited, worked out together: of 100,000, a call for each would count."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.model.jobs import QUEUED, Job

_SUBMIT_S: Final = attrgetter("submit_s")
_ELIGIBLE_S: Final = attrgetter("spec.eligible_s")


def waits_s(jobs: Sequence[Job], at_s: float) -> NDArray[np.float64]:
    """As `Job.wait_s` of each that is queued; NaN for the others, and where it is not known."""
    since_s = np.array(list(map(_SUBMIT_S, jobs)), float)  # None becomes NaN
    eligible_s = list(map(_ELIGIBLE_S, jobs))
    if eligible_s.count(None) < len(jobs):
        later_s = np.fmax(since_s, np.array(eligible_s, float))
        since_s = np.where(np.isnan(since_s), np.nan, later_s)  # unknown, whatever came after
    queued = np.fromiter(map(attrgetter("state"), jobs), np.int8, len(jobs)) == QUEUED
    return np.where(queued, np.maximum(0.0, at_s - since_s), np.nan)
