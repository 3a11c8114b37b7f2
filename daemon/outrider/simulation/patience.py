"""The turnaround from which a job earns no utility any more."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.model.utility import TimeUtility

_HORIZONS: Final = 40
_HALVINGS: Final = 60


def worthless_after_s(utility: TimeUtility, ideal_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """(jobs,) turnaround from which a job's utility is 0, seconds; inf if that never happens.

    Found by bisection, for a utility that does not rise with the turnaround and reaches 0 within
    2^40 ideal run times.

    Args:
        utility: time utility function of the jobs' class.
        ideal_s: (jobs,) run times, seconds.
    """
    low, high = ideal_s.copy(), np.maximum(ideal_s, 1e-3)
    for _ in range(_HORIZONS):
        high = np.where(utility.unit(high, ideal_s) > 0.0, 2.0 * high, high)
    never = utility.unit(high, ideal_s) > 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        worth = utility.unit(middle, ideal_s) > 0.0
        low, high = np.where(worth, middle, low), np.where(worth, high, middle)
    return np.where(never, np.inf, high)
