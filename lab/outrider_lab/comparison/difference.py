"""Differences between policies on the same jobs, each with its interval and a verdict."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider_lab.reporting.bootstrap import Blocks, Interval, interval, resampled_means
from outrider_lab.reporting.verdicts import Verdict, verdict_of

BETTER: Final = "better"
WORSE: Final = "worse"
UNDECIDED: Final = str(Verdict.UNDECIDED)
TOO_SMALL: Final = str(Verdict.TOO_SMALL)
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
            "verdict": compared(found, self.blocks_n, FEWEST_BLOCKS),
        }


def compared(
    found: tuple[float, float] | None, measured_n: int, fewest: int, more_is_better: bool = False
) -> str:
    """What the interval of a difference says: ours less theirs.

    Args:
        found: the interval; None: there is none.
        measured_n: how many blocks of time or seeds it is from.
        fewest: with fewer it says nothing.
        more_is_better: of a figure such as utility.

    Returns:
        `BETTER`, `WORSE`, `UNDECIDED` where it holds 0, or `TOO_SMALL`.
    """
    below = verdict_of(found, (None, 0.0), measured_n, fewest)
    above = verdict_of(found, (0.0, None), measured_n, fewest)
    if below is Verdict.TOO_SMALL:
        return TOO_SMALL
    if Verdict.REPRODUCED not in (below, above):  # it holds 0, if only at an end
        return UNDECIDED
    return BETTER if (above is Verdict.REPRODUCED) == more_is_better else WORSE
