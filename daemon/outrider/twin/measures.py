"""Measures that policies are compared by, for the past as a whole and for each block."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import exp, hypot, sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.model.student import student_quantile
from outrider.twin.replicates import Outcome
from outrider.twin.tally import NOTHING, Mark, Tally, energy_j

Floats = NDArray[np.float64]
CAP_S: Final = 86_400.0
"""Maximal overhead counted per job in the capped mean: no single job dominates it."""


class Stretch(NamedTuple):
    """Part of a run between two marks, with the overheads of the jobs that completed in it."""

    begin: Mark
    end: Mark
    overhead_s: Floats

    @property
    def energy_j(self) -> float:
        """Joules of the runs that ended; nan where watts are unknown."""
        before = energy_j(self.begin) if self.begin.energy_j else 0.0
        return energy_j(self.end) - before

    @property
    def badput_s(self) -> float:
        """CPU-seconds of wasted runs."""
        return self.end.badput_s - self.begin.badput_s

    @property
    def goodput_s(self) -> float:
        """CPU-seconds of runs that completed their job."""
        return self.end.goodput_s - self.begin.goodput_s

    @property
    def evictions(self) -> int:
        """Number of wasted runs, for any reason."""
        return self.end.evictions - self.begin.evictions


class Measure(NamedTuple):
    """Figure of a stretch that is compared between policies.

    Attributes:
        name: its field in ``outrider twin --json``, the ratio of two policies.
        of: the figure; nan or 0 where it does not exist.
        floor: minimal half width, on the logarithm, of an estimate for the past.
    """

    name: str
    of: Callable[[Stretch], float]
    floor: float


def _mean(stretch: Stretch) -> float:
    return float(stretch.overhead_s.mean()) if len(stretch.overhead_s) else 0.0


def capped_mean_s(stretch: Stretch) -> float:
    """Return the mean overhead, each capped at `CAP_S`; 0 without any."""
    return float(np.minimum(stretch.overhead_s, CAP_S).mean()) if len(stretch.overhead_s) else 0.0


def _percentile(percent: float) -> Callable[[Stretch], float]:
    def of(stretch: Stretch) -> float:
        values = stretch.overhead_s
        return float(np.percentile(values, percent)) if len(values) else 0.0

    return of


MEASURES: Final = (
    Measure("energy_ratio", lambda s: s.energy_j, 0.01),
    Measure("badput_ratio", lambda s: s.badput_s, 0.01),
    Measure("evictions_ratio", lambda s: float(s.evictions), 0.01),
    Measure("overhead_mean_ratio", _mean, 0.03),
    Measure("overhead_capped_mean_ratio", capped_mean_s, 0.03),
    Measure("overhead_p95_ratio", _percentile(95), 0.03),
    Measure("overhead_p99_ratio", _percentile(99), 0.03),
)


def whole(outcome: Outcome) -> Stretch:
    """Return the whole past; unfinished jobs count with their overhead so far, as in a replay."""
    overhead_s = np.concatenate([outcome.overhead_s, outcome.unfinished_s])
    return Stretch(NOTHING, outcome.total, overhead_s)


def completed_only(outcome: Outcome) -> Stretch:
    """Return the whole past with the overheads of completed jobs: what a record has, too."""
    return Stretch(NOTHING, outcome.total, outcome.overhead_s)


def seen_stretch(tally: Tally) -> Stretch:
    """Return what happened, with the overheads of jobs that completed."""
    return Stretch(NOTHING, tally.total, tally.overhead_s)


def blocks(outcome: Outcome) -> list[Stretch]:
    """Return each block of the past, with the jobs that completed in it."""
    ends = [*outcome.marks, outcome.total]
    return [
        Stretch(begin, end, outcome.overhead_s[begin.completed : end.completed])
        for begin, end in pairwise(ends)
    ]


def log_ratios(measure: Measure, candidate: Sequence[Stretch], other: Sequence[Stretch]) -> Floats:
    """Return (stretches,) logarithms of candidate over other; nan if either is 0 or unknown."""
    a = np.array([measure.of(stretch) for stretch in candidate], dtype=np.float64)
    b = np.array([measure.of(stretch) for stretch in other], dtype=np.float64)
    known = (a > 0.0) & (b > 0.0)
    return np.where(known, np.log(np.where(known, a, 1.0) / np.where(known, b, 1.0)), np.nan)


# -- estimates -------------------------------------------------------------------------------------
# Estimates of the ratio of a candidate to the incumbent, with their intervals.
#
# There are two, never mixed. The past: only chance (of policies, and of the run times of pending
# jobs) and what a simulated site leaves out make a difference. The next window: a forecast, where
# arrivals and owners will differ.

LEVEL: Final = 0.9
_TAIL: Final = (1.0 + LEVEL) / 2.0
_Z: Final = 1.6448536269514722
"""Quantile of the normal distribution at `_TAIL`."""
BLOCK_WEEKS: Final = 2.0
"""Length of a block of the past, weeks."""
HALVES_WEIGHT: Final = 1.5
"""Weight of the difference between the halves of the past: a trend may continue."""


class Estimate(NamedTuple):
    """Ratio of candidate to incumbent, with its interval.

    Attributes:
        estimate: the ratio.
        low, high: ends of the interval.
    """

    estimate: float
    low: float
    high: float

    def widened(self, log_ratio: float) -> "Estimate":
        """Return the estimate with this much more on each side, in the logarithm."""
        return Estimate(self.estimate, self.low * exp(-log_ratio), self.high * exp(log_ratio))

    def to_json(self) -> dict[str, float]:
        """Return the object of ``outrider twin --json``."""
        return {"estimate": self.estimate, "low": self.low, "high": self.high, "level": LEVEL}


def past_estimate(log_ratios: Floats, floor: float) -> Estimate | None:
    """Estimate the ratio for the past.

    The half width on the logarithm is ``sqrt((t s_r)^2 + floor^2)``. s_r is the spread between
    replicates, because the past happened once. `floor` is for what no simulated site includes.

    Args:
        log_ratios: (replicates,) of the whole window.
        floor: minimal half width.

    Returns:
        None where a ratio is undefined.
    """
    if not np.isfinite(log_ratios).all():
        return None
    half = hypot(student_quantile(_TAIL, len(log_ratios) - 1) * _spread(log_ratios), floor)
    return _around(float(log_ratios.mean()), half)


def next_estimate(log_ratios: Floats, blocks: Floats, next_weeks: float) -> Estimate | None:
    """Forecast the ratio for the next window.

    The half width on the logarithm is ``sqrt((t e)^2 + (1.645 s_r sqrt(1 + 1/m))^2 +
    (1.5 |d|)^2)``: ``e = s_14 sqrt(1/n + 1/n')``, where s_14 is the spread between the n blocks of
    two weeks, of which the next window has n' (a window as long as the past: sqrt(2) times the
    standard error of the past's mean); s_r the spread between m replicates; d the difference
    between the halves of the past, because a trend may continue.

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
    """Return the standard deviation of a sample."""
    return float(values.std(ddof=1))
