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
from math import sqrt
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outrider.model.student import student_quantile

RESAMPLES: Final = 4000
DAY_S: Final = 86_400.0
LEVEL: Final = 0.97
"""For an interval that is to hold 95 %. Blocks are independent only nearly, and their length is
chosen from the same data; so of 500 trials of equals at most 6 % are called different."""
_DRAWN_AT_ONCE: Final = 1 << 22

Floats = NDArray[np.float64]
Blocks = NDArray[np.int64]


class Interval(NamedTuple):
    """Where a figure lies, with the probability that was asked for."""

    low: float
    high: float

    @property
    def holds_zero(self) -> bool:
        """Whether 0 lies within it, ends included."""
        return self.low <= 0.0 <= self.high


def blocks_of_time(time_s: ArrayLike, block_s: float = DAY_S) -> Blocks:
    """The block of each moment, from 0 on without gaps: stretches of `block_s` seconds.

    Stretches in which nothing lies are no blocks: there is nothing to draw.
    """
    stretch = np.floor(np.asarray(time_s, dtype=float) / block_s)
    blocks: Blocks = np.unique(stretch, return_inverse=True)[1].astype(np.int64)
    return blocks


def resampled_means(
    values: ArrayLike, seed: int, blocks: Blocks | None = None, resamples: int = RESAMPLES
) -> Floats:
    """The means of the columns of `values`, again for every resample.

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
        raise ValueError("nothing to resample: right would be one value or more")
    table = table.reshape(len(table), -1)
    if blocks is None:
        blocks = np.arange(len(table))
    if len(blocks) != len(table):
        raise ValueError(f"{len(blocks)} blocks for {len(table)} rows: right would be as many")
    counts = np.bincount(blocks).astype(float)
    sums = np.stack([np.bincount(blocks, weights=column) for column in table.T], axis=1)
    drawn = [(w @ sums) / (w @ counts)[:, None] for w in _draws(len(counts), seed, resamples)]
    return np.concatenate(drawn)


def _draws(blocks: int, seed: int, resamples: int) -> Iterator[Floats]:
    """How often each block is drawn, a row for each resample; a few rows at a time."""
    rng = np.random.default_rng(seed)
    evenly = np.full(blocks, 1.0 / blocks)
    at_once = max(1, _DRAWN_AT_ONCE // blocks)
    for done in range(0, resamples, at_once):
        size = min(at_once, resamples - done)
        yield rng.multinomial(blocks, evenly, size=size).astype(float)


def interval(resampled: ArrayLike, blocks_n: int | None = None, level: float = 0.95) -> Interval:
    """The percentile interval of a resampled figure.

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
    """The 95 % interval of a figure, by Student's t with the standard error of its resamples.

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
        raise ValueError(f"{blocks_n} blocks give no interval: right would be two or more")
    error = float(np.std(np.asarray(resampled, dtype=float))) * sqrt(blocks_n / (blocks_n - 1))
    reach = student_quantile((1.0 + LEVEL) / 2.0, blocks_n - 1) * error
    return Interval(measured - reach, measured + reach)


def paired_interval(
    ours: ArrayLike, theirs: ArrayLike, seed: int = 0, blocks: Blocks | None = None
) -> Interval:
    """The 95 % interval of the mean of ours - theirs, row by row on the same things.

    Raises:
        ValueError: different lengths, or nothing in them.
    """
    a, b = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    if a.shape != b.shape:
        raise ValueError(f"{len(a)} values beside {len(b)}: right would be pairs")
    blocks_n = len(a) if blocks is None else len(np.unique(blocks))
    return student_interval(resampled_means(a - b, seed, blocks), float((a - b).mean()), blocks_n)
