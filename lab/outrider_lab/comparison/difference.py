"""Differences between policies on the same jobs, each with its interval and a verdict."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider_lab.reporting.bootstrap import (
    Blocks,
    Interval,
    block_of_waits,
    blocks_of_time,
    resampled_means,
    student_interval,
)
from outrider_lab.reporting.claims import FEWEST_BLOCKS, Verdict, verdict_of

BETTER: Final = "better"
WORSE: Final = "worse"
UNDECIDED: Final = str(Verdict.UNDECIDED)
TOO_SMALL: Final = str(Verdict.TOO_SMALL)
RESAMPLES: Final = 1000
"""Number of resamples for a standard error, which is then known to 2 %."""
Floats = NDArray[np.float64]


class _Drawn(NamedTuple):
    block_s: float
    blocks_n: int
    means: Floats | None
    """(resamples, 2); None: too few blocks."""


# -- stretches -------------------------------------------------------------------------------------
# Stretches of a trace's time, for each pair of policies as long as their queues remember.


class Stretches:
    """Stretches of time whose jobs are resampled together when two policies are compared.

    Args:
        submit_s: shape (jobs,).
        wait_s: shape (jobs, policies), of the same jobs.
        block_s: seconds, as configured; None: chosen from the waits.
    """

    def __init__(self, submit_s: Floats, wait_s: Floats, block_s: float | None = None) -> None:
        self._submit_s = submit_s
        self._wait_s = wait_s
        self._given_s = block_s
        self._chosen_s: dict[int, float] = {}

    def block_s(self, one: int, other: int) -> float:
        """Return seconds of a stretch for two policies, by column: the longer of what each needs.

        Never below the mean wait under either, whoever chose.
        """
        return max(self._needed_s(one), self._needed_s(other))

    def blocks(self, one: int, other: int) -> Blocks:
        """Return the stretch of each job, from 0 on without gaps."""
        return blocks_of_time(self._submit_s, self.block_s(one, other))

    def _needed_s(self, policy: int) -> float:
        if policy not in self._chosen_s:
            waits = self._wait_s[:, policy]
            if not len(waits):
                needed = _NO_JOBS
            elif self._given_s is None:
                needed = block_of_waits(self._submit_s, waits)
            else:
                needed = max(self._given_s, float(waits.mean()))
            self._chosen_s[policy] = needed
        return self._chosen_s[policy]


class Differences:
    """Means of one figure under several policies, and how surely they differ. Less is better.

    Args:
        policies: by column.
        values: shape (jobs, policies), a figure of each job under each policy.
        stretches: of the same jobs.
        seed: of the resampling.
    """

    def __init__(
        self, policies: Sequence[str], values: Floats, stretches: Stretches, seed: int = 0
    ) -> None:
        self._column = {name: number for number, name in enumerate(policies)}
        self._values = values
        self._stretches = stretches
        self._seed = seed
        self.means = values.mean(axis=0)
        self._drawn: dict[tuple[int, int], _Drawn] = {}

    def mean(self, policy: str) -> float:
        """Return the mean over the jobs."""
        return float(self.means[self._column[policy]])

    def blocks_n(self, policy: str, other: str) -> int:
        """Return how many blocks of time two policies are compared by."""
        return self._draw(policy, other).blocks_n

    def log_ratios(self, policy: str, other: str) -> Floats | None:
        """Return log ratios of two policies' means in every resample; None: too few blocks."""
        means = self._draw(policy, other).means
        if means is None:
            return None
        logs: Floats = np.log(means[:, 0] / means[:, 1])
        return logs

    def between(self, policy: str, other: str) -> dict[str, Any]:
        """Return the difference of a policy less another.

        Returns:
            difference (of the means), interval (95 %; None: too few blocks of time), ratio (None
            where the other's mean is 0), blocks and block_s (how many, and how long), verdict.
        """
        ours, theirs = self.mean(policy), self.mean(other)
        block_s, blocks_n, means = self._draw(policy, other)
        found: Interval | None = None
        if means is not None:
            found = student_interval(means[:, 0] - means[:, 1], ours - theirs, blocks_n)
        return {
            "difference": ours - theirs,
            "interval": found,
            "ratio": ours / theirs if theirs else None,
            "block_s": block_s,
            "blocks": blocks_n,
            "verdict": compared(found, blocks_n, FEWEST_BLOCKS),
        }

    def _draw(self, policy: str, other: str) -> _Drawn:
        pair = (self._column[policy], self._column[other])
        if pair not in self._drawn:
            blocks = self._stretches.blocks(*pair)
            blocks_n = int(blocks.max()) + 1
            means = None
            if blocks_n >= FEWEST_BLOCKS:
                columns = self._values[:, list(pair)]
                means = resampled_means(columns, self._seed, blocks, RESAMPLES)
            self._drawn[pair] = _Drawn(self._stretches.block_s(*pair), blocks_n, means)
        return self._drawn[pair]


def compared(
    found: tuple[float, float] | None, measured_n: int, fewest: int, more_is_better: bool = False
) -> str:
    """Return the verdict of the interval of a difference: ours less theirs.

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


_NO_JOBS: Final = 1.0
