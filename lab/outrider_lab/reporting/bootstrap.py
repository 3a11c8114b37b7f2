"""Intervals by resampling: of means, and of what is made of several means over the same things.

Two policies on one trace are compared job by job, and what befalls a job befalls its neighbours:
waits of one busy afternoon are one observation, not a thousand. So whole blocks of time are drawn
with replacement, all jobs of a block together and for all policies at once (a paired cluster
bootstrap: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 8; Davison and
Hinkley, "Bootstrap Methods and their Application", 1997, section 8.2.3). Where the observations
are independent, such as seeds, each is a block of its own.

Percentile intervals of few blocks are too narrow, as a normal distribution's would be in place of
Student's; told how many blocks there are, they are widened by as much (Hesterberg, "What Teachers
Should Know About the Bootstrap", The American Statistician 69, 2015, section 5.3).
"""

from collections.abc import Iterator
from math import ceil, log10, sqrt
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outrider.model.student import student_quantile

RESAMPLES: Final = 4000
DAY_S: Final = 86_400.0
LEVEL: Final = 0.97
"""Nominal level for an interval that is to cover 95 %.

Blocks are independent only nearly, and their length is chosen from the same data; so of 500 trials
of equals at most 6 % are called different.
"""
_DRAWN_AT_ONCE: Final = 1 << 22
Floats = NDArray[np.float64]
Blocks = NDArray[np.int64]


class Interval(NamedTuple):
    """Interval of a figure, with the requested probability."""

    low: float
    high: float

    @property
    def holds_zero(self) -> bool:
        """True if 0 lies within it, ends included."""
        return self.low <= 0.0 <= self.high


def blocks_of_time(time_s: ArrayLike, block_s: float = DAY_S) -> Blocks:
    """Return the block of each moment, from 0 on without gaps: stretches of `block_s` seconds.

    Stretches in which nothing lies are no blocks: there is nothing to draw.
    """
    stretch = np.floor(np.asarray(time_s, dtype=float) / block_s)
    blocks: Blocks = np.unique(stretch, return_inverse=True)[1].astype(np.int64)
    return blocks


def resampled_means(
    values: ArrayLike, seed: int, blocks: Blocks | None = None, resamples: int = RESAMPLES
) -> Floats:
    """Return the means of the columns of `values`, again for every resample.

    Args:
        values: shape (n,) or (n, columns): a row for each job (or seed), a column for each policy.
        seed: of the resampling.
        blocks: shape (n,), the block of each row, from 0 on; None: every row is one.
        resamples: how often blocks are drawn, as many as there are.

    Returns:
        Shape (resamples, columns). All columns of a row have the same blocks: their differences
        and ratios are paired.

    Raises:
        ValueError: no rows, or blocks of another length.
    """
    table = np.asarray(values, dtype=float)
    if not table.size:
        raise ValueError("nothing to resample: expected one value or more")
    table = table.reshape(len(table), -1)
    if blocks is None:
        blocks = np.arange(len(table))
    if len(blocks) != len(table):
        raise ValueError(f"{len(blocks)} blocks for {len(table)} rows: expected as many")
    counts = np.bincount(blocks).astype(float)
    sums = np.stack([np.bincount(blocks, weights=column) for column in table.T], axis=1)
    drawn = [(w @ sums) / (w @ counts)[:, None] for w in _draws(len(counts), seed, resamples)]
    return np.concatenate(drawn)


def _draws(blocks: int, seed: int, resamples: int) -> Iterator[Floats]:
    """Return how often each block is drawn, a row for each resample; a few rows at a time."""
    rng = np.random.default_rng(seed)
    evenly = np.full(blocks, 1.0 / blocks)
    at_once = max(1, _DRAWN_AT_ONCE // blocks)
    for done in range(0, resamples, at_once):
        size = min(at_once, resamples - done)
        yield rng.multinomial(blocks, evenly, size=size).astype(float)


def interval(resampled: ArrayLike, blocks_n: int | None = None, level: float = 0.95) -> Interval:
    """Return the percentile interval of a resampled figure.

    Args:
        resampled: shape (resamples,).
        blocks_n: how many blocks were drawn from, to widen it for few; None: it is not widened.
        level: the probability with which it should hold the truth.
    """
    tail = (1.0 - level) / 2.0
    if blocks_n is not None and blocks_n > 1:
        reach = sqrt(blocks_n / (blocks_n - 1)) * student_quantile(1.0 - tail, blocks_n - 1)
        tail = NormalDist().cdf(-reach)
    low, high = np.quantile(np.asarray(resampled, dtype=float), (tail, 1.0 - tail))
    return Interval(float(low), float(high))


def student_interval(resampled: ArrayLike, measured: float, blocks_n: int) -> Interval:
    """Return the 95 % interval of a figure, by Student's t on its resamples' standard error.

    Means of a few long blocks are nearly normal, and a t test on them is right or careful even
    where blocks differ in spread (Ibragimov and Muller, "t-Statistic Based Correlation and
    Heterogeneity Robust Inference", Journal of Business & Economic Statistics 28, 2010).

    Args:
        resampled: shape (resamples,).
        measured: the figure itself, about which the interval lies.
        blocks_n: how many blocks were drawn from.

    Raises:
        ValueError: fewer than two blocks.
    """
    if blocks_n < 2:
        raise ValueError(f"{blocks_n} blocks give no interval: expected two or more")
    error = float(np.std(np.asarray(resampled, dtype=float))) * sqrt(blocks_n / (blocks_n - 1))
    reach = student_quantile((1.0 + LEVEL) / 2.0, blocks_n - 1) * error
    return Interval(measured - reach, measured + reach)


def paired_interval(
    ours: ArrayLike, theirs: ArrayLike, seed: int = 0, blocks: Blocks | None = None
) -> Interval:
    """Return the 95 % interval of the mean of ours - theirs, over paired rows.

    Raises:
        ValueError: different lengths, or nothing in them.
    """
    a, b = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    if a.shape != b.shape:
        raise ValueError(f"{len(a)} values beside {len(b)}: expected pairs")
    blocks_n = len(a) if blocks is None else len(np.unique(blocks))
    return student_interval(resampled_means(a - b, seed, blocks), float((a - b).mean()), blocks_n)


# -- block length ----------------------------------------------------------------------------------
# How long the stretches of time must be that are drawn together: chosen from the waits themselves.
#
# Waits of neighbours are alike as long as the queue remembers. How long that is, the waits' own
# autocorrelation says: Politis and White, "Automatic Block-Length Selection for the Dependent
# Bootstrap", Econometric Reviews 23 (2004), with the correction of Patton, Politis and White (28,
# 2009), for the circular block bootstrap. Three things are other than there:
#
# * the length is half as long again: theirs gives the best variance, and an interval's coverage
#   wants longer blocks (docs/comparing.md has what was measured);
# * lags are looked at up to half the series, and the length has no upper bound: where a queue
#   remembers too long for the trace there are few blocks, and so no verdict, not a wrong one;
# * the length is never below the mean wait: whoever waits meets those who come meanwhile.

LONGER: Final = 1.5
"""Blocks by Politis and White's."""
_LEAST_S: Final = 1.0
_SHORTEST_SERIES: Final = 10


def politis_white(series: ArrayLike) -> float:
    """Return the block length, in values of the series, that finds the mean's variance best.

    Args:
        series: shape (n,), in order.

    Returns:
        1 to n; n for fewer than ten values; 1 where all are equal.

    Raises:
        ValueError: a value is not finite.
    """
    values = np.asarray(series, dtype=float)
    if not np.isfinite(values).all():
        raise ValueError("a value is not finite: expected waits of jobs that started")
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
    """Return autocovariances at lags 0 to `most`, each over n; by Fourier transform for speed."""
    n = len(values)
    transformed = np.fft.rfft(values - values.mean(), 2 * n)
    covariances: Floats = np.fft.irfft(np.abs(transformed) ** 2, 2 * n)[: most + 1] / n
    return covariances


def _last_correlated_lag(correlations: Floats, n: int) -> int:
    """Return the lag after which several in a row are insignificant; the last one, if none is."""
    in_a_row = max(5, ceil(sqrt(log10(n))))
    small = np.abs(correlations[1:]) < 2.0 * sqrt(log10(n) / n)
    if len(small) < in_a_row:
        return len(small)
    found = np.nonzero(np.convolve(small, np.ones(in_a_row), "valid") > in_a_row - 0.5)[0]
    return int(found[0]) if len(found) else len(small)


def block_of_waits(submit_s: ArrayLike, wait_s: ArrayLike) -> float:
    """Return the length of a block of time, in seconds, for what is measured of these jobs.

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
        raise ValueError(f"{len(waits)} waits of {len(arrivals)} jobs: expected one of each")
    length = ceil(LONGER * politis_white(waits[np.argsort(arrivals, kind="stable")]))
    gap_s = float(np.ptp(arrivals)) / max(len(arrivals) - 1, 1)
    return max(length * gap_s, float(waits.mean()), _LEAST_S)
