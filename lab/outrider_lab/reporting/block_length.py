"""How long the stretches of time must be that are drawn together: chosen from the waits themselves.

Waits of neighbours are alike as long as the queue remembers. How long that is, the waits' own
autocorrelation says: Politis and White, "Automatic Block-Length Selection for the Dependent
Bootstrap", Econometric Reviews 23 (2004), with the correction of Patton, Politis and White (28,
2009), for the circular block bootstrap. Three things are other than there:

* the length is half as long again: theirs gives the best variance, and an interval's coverage
  wants longer blocks (docs/comparing.md has what was measured);
* lags are looked at up to half the series, and the length has no upper bound: where a queue
  remembers too long for the trace there are few blocks, and so no verdict, not a wrong one;
* the length is never below the mean wait: whoever waits meets those who come meanwhile.
"""

from math import ceil, log10, sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

LONGER: Final = 1.5
"""Blocks by Politis and White's."""
_LEAST_S: Final = 1.0
_SHORTEST_SERIES: Final = 10


def politis_white(series: ArrayLike) -> float:
    """The block length, in values of the series, for which the mean's variance is found best.

    Args:
        series: shape (n,), in order.

    Returns:
        1 to n; n for fewer than ten values; 1 where all are equal.

    Raises:
        ValueError: a value is not finite.
    """
    values = np.asarray(series, dtype=float)
    if not np.isfinite(values).all():
        raise ValueError("a value is not finite: right would be waits of jobs that started")
    n = len(values)
    if n < _SHORTEST_SERIES:
        return float(max(n, 1))
    if np.ptp(values) == 0.0:
        return 1.0
    covariances = _autocovariances(values, n // 2)
    last = _last_correlated_lag(covariances / covariances[0], n)
    most = min(2 * max(last, 1), len(covariances) - 1)
    lags = np.arange(1, most + 1)
    weights = np.clip(2.0 * (1.0 - lags / most), 0.0, 1.0)  # flat top: 1 up to half of the lags
    weighted = weights * covariances[1 : most + 1]
    slope = 2.0 * float((lags * weighted).sum())
    spectrum = float(covariances[0] + 2.0 * weighted.sum())
    if spectrum <= 0.0:  # neighbours make up for each other: any block is long enough
        return 1.0
    length = (2.0 * slope**2 / (4.0 / 3.0 * spectrum**2)) ** (1 / 3) * n ** (1 / 3)
    return float(min(max(length, 1.0), n))


def _autocovariances(values: Floats, most: int) -> Floats:
    """At lags 0 to `most`, each over n; by Fourier transform, for traces are long."""
    n = len(values)
    transformed = np.fft.rfft(values - values.mean(), 2 * n)
    covariances: Floats = np.fft.irfft(np.abs(transformed) ** 2, 2 * n)[: most + 1] / n
    return covariances


def _last_correlated_lag(correlations: Floats, n: int) -> int:
    """The lag after which several in a row are insignificant; the last one, if none is."""
    in_a_row = max(5, ceil(sqrt(log10(n))))
    small = np.abs(correlations[1:]) < 2.0 * sqrt(log10(n) / n)
    if len(small) < in_a_row:
        return len(small)
    found = np.nonzero(np.convolve(small, np.ones(in_a_row), "valid") > in_a_row - 0.5)[0]
    return int(found[0]) if len(found) else len(small)


def block_of_waits(submit_s: ArrayLike, wait_s: ArrayLike) -> float:
    """The length of a block of time, in seconds, for what is measured of these jobs.

    Args:
        submit_s: shape (jobs,), in any order.
        wait_s: shape (jobs,), of the same jobs.

    Returns:
        Whole mean gaps between arrivals; never below the mean wait, nor below a second.

    Raises:
        ValueError: different lengths, no jobs, or a wait that is not finite.
    """
    arrivals, waits = np.asarray(submit_s, dtype=float), np.asarray(wait_s, dtype=float)
    if arrivals.shape != waits.shape or not len(waits):
        raise ValueError(f"{len(waits)} waits of {len(arrivals)} jobs: right would be one of each")
    length = ceil(LONGER * politis_white(waits[np.argsort(arrivals, kind="stable")]))
    gap_s = float(np.ptp(arrivals)) / max(len(arrivals) - 1, 1)
    return max(length * gap_s, float(waits.mean()), _LEAST_S)
