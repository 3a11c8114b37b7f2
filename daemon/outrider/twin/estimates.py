"""How many times as much a candidate takes as the incumbent: estimates with their intervals.

Two answers, never mixed. The past: what would have been, where only chance (policies' own, and the
run times of pending jobs) and what a simulated site leaves out make a difference. The next window:
a forecast, where arrivals and owners will be others.
"""

from math import exp, hypot, sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.model.student import student_quantile

Floats = NDArray[np.float64]

LEVEL: Final = 0.9
_TAIL: Final = (1.0 + LEVEL) / 2.0
_Z: Final = 1.6448536269514722
"""Quantile of the normal distribution at `_TAIL`."""
BLOCK_WEEKS: Final = 2.0
"""Length of a block of the past."""
HALVES_WEIGHT: Final = 1.5
"""Weight of the difference between the halves of the past: a trend is given room to go on."""


class Estimate(NamedTuple):
    """A ratio, candidate over incumbent, with its interval.

    Attributes:
        estimate: the ratio.
        low, high: of the interval.
    """

    estimate: float
    low: float
    high: float

    def widened(self, log_ratio: float) -> "Estimate":
        """With this much more on each side, in the logarithm."""
        return Estimate(self.estimate, self.low * exp(-log_ratio), self.high * exp(log_ratio))

    def to_json(self) -> dict[str, float]:
        """As in ``outrider twin --json``."""
        return {"estimate": self.estimate, "low": self.low, "high": self.high, "level": LEVEL}


def past_estimate(log_ratios: Floats, floor: float) -> Estimate | None:
    """What would have been.

    The half width on the logarithm is ``sqrt((t s_r)^2 + floor^2)``: s_r is the spread between
    replicates, for the past happened once; `floor` is for what no simulated site has in it.

    Args:
        log_ratios: (replicates,) of the whole window.
        floor: at least this half width.

    Returns:
        None where a ratio is undefined.
    """
    if not np.isfinite(log_ratios).all():
        return None
    half = hypot(student_quantile(_TAIL, len(log_ratios) - 1) * _spread(log_ratios), floor)
    return _around(float(log_ratios.mean()), half)


def next_estimate(log_ratios: Floats, blocks: Floats, next_weeks: float) -> Estimate | None:
    """A forecast of a window to come.

    The half width on the logarithm is ``sqrt((t e)^2 + (1.645 s_r sqrt(1 + 1/m))^2 +
    (1.5 |d|)^2)``: ``e = s_14 sqrt(1/n + 1/n')``, where s_14 is the spread between the n blocks of
    two weeks, of which the next window has n' (a window as long as the past: sqrt(2) times the
    standard error of the past's mean); s_r the spread between m replicates; d the difference
    between the halves of the past: a trend may go on.

    Args:
        log_ratios: (replicates,) of the whole past.
        blocks: (replicates, blocks) of each block of the past; two or more.
        next_weeks: length of the next window.

    Returns:
        None where a ratio is undefined.
    """
    if not (np.isfinite(log_ratios).all() and np.isfinite(blocks).all()):
        return None
    by_block = blocks.mean(axis=0)
    n, m = len(by_block), len(log_ratios)
    error = _spread(by_block) * sqrt(1.0 / n + BLOCK_WEEKS / next_weeks)
    early, late = by_block[: n // 2].mean(), by_block[(n + 1) // 2 :].mean()
    half = sqrt(
        (student_quantile(_TAIL, n - 1) * error) ** 2
        + (_Z * _spread(log_ratios) * sqrt(1.0 + 1.0 / m)) ** 2
        + (HALVES_WEIGHT * abs(late - early)) ** 2
    )
    return _around(float(log_ratios.mean()), half)


def _around(log_ratio: float, half: float) -> Estimate:
    return Estimate(exp(log_ratio), exp(log_ratio - half), exp(log_ratio + half))


def _spread(values: Floats) -> float:
    """Standard deviation of a sample."""
    return float(values.std(ddof=1))
