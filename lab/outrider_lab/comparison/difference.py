"""Differences between policies on the same jobs, each with its interval and a verdict."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider_lab.reporting.bootstrap import Blocks, Interval, interval, resampled_means

BETTER: Final = "better"
WORSE: Final = "worse"
NO_DIFFERENCE: Final = "no difference"
TOO_SHORT: Final = "too short"
FEWEST_BLOCKS: Final = 5
"""With fewer there are too few different resamples for an interval."""

Floats = NDArray[np.float64]


class Differences:
    """Means of one figure under several policies, and how surely they differ. Less is better.

    Args:
        policies: by column.
        values: shape (jobs, policies), a figure of each job under each policy.
        blocks: of time, by job.
        seed: of the resampling.
    """

    def __init__(
        self, policies: Sequence[str], values: Floats, blocks: Blocks, seed: int = 0
    ) -> None:
        self._column = {name: number for number, name in enumerate(policies)}
        self.means = values.mean(axis=0)
        self.blocks_n = len(np.unique(blocks))
        self._drawn: Floats | None = None
        if self.blocks_n >= FEWEST_BLOCKS:
            numbered = np.unique(blocks, return_inverse=True)[1]
            self._drawn = resampled_means(values, seed, numbered)

    def mean(self, policy: str) -> float:
        """The mean over the jobs."""
        return float(self.means[self._column[policy]])

    def ratios(self, policy: str, other: str) -> Floats | None:
        """Policy's mean over the other's in every resample; None: too few blocks of time."""
        if self._drawn is None:
            return None
        column = self._column
        ratios: Floats = self._drawn[:, column[policy]] / self._drawn[:, column[other]]
        return ratios

    def between(self, policy: str, other: str) -> dict[str, Any]:
        """The policy less the other.

        Returns:
            difference (of the means), interval (95 %; None: too few blocks of time), ratio (None
            where the other's mean is 0), verdict.
        """
        ours, theirs = self.mean(policy), self.mean(other)
        found: Interval | None = None
        if self._drawn is not None:
            column = self._column
            less = self._drawn[:, column[policy]] - self._drawn[:, column[other]]
            found = interval(less, self.blocks_n)
        return {
            "difference": ours - theirs,
            "interval": found,
            "ratio": ours / theirs if theirs else None,
            "verdict": verdict(found),
        }


def verdict(found: Interval | None) -> str:
    """What the interval of a difference says of a figure of which less is better."""
    if found is None:
        return TOO_SHORT
    if found.holds_zero:
        return NO_DIFFERENCE
    return BETTER if found.high < 0.0 else WORSE
