"""Distributions of job lengths, and of the age at which jobs that never end are removed."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BINS: Final = 31
EDGES_S: Final = np.concatenate([[0.0], 60.0 * 2.0 ** (np.arange(BINS) / 2.0)])
"""(BINS + 1,) edges of the bins of length and age, seconds.

The first is one minute, then two bins per doubling, up to a month. Longer values are counted in the
last bin.
"""
MIDDLES_S: Final = (EDGES_S[1:] + EDGES_S[:-1]) / 2.0

PRIOR_JOBS: Final = 1.0
"""Prior pseudo-counts of completions, and of removals, spread evenly over the bins."""
DOUBTED_JOBS: Final = 40.0
"""Prior pseudo-count of completions used instead for the odds and the mean length. Because the bins
reach to a month, jobs are taken as long and good until many more have completed."""


class Lengths(NamedTuple):
    """Distributions estimated from the counts of `JobLength`.

    Attributes:
        good: (BINS, BINS); row a is the distribution of a good job's length over bins, given that
            it is longer than the lower edge of bin a.
        bad: (BINS, BINS); row A is the distribution of the time until a bad job is removed, given
            an age in bin A.
        odds: (BINS, BINS) odds of bad to good, by bin of the longest lost run and bin of the age.
        mean_s: mean length of good jobs with the prior of `DOUBTED_JOBS`, seconds.
    """

    good: Floats
    bad: Floats
    odds: Floats
    mean_s: float


class JobLength:
    """Histograms of job lengths and removal ages, for the chance that an evicted job completes.

    A job is *good* (it completes after some length of uninterrupted work) or *bad* (it is removed
    at some age, regardless of its runs). A good job that lost a run of `a` seconds is longer than
    that; a bad one of age `A` was not removed before that age. Hence

        bad : good = (removed at an age above A) : (completed with a length above a)

    Neither count depends on who placed the jobs or how long they were deferred. So both can be
    learned from any batch system's runs; the longest run of a removed job would depend on it.
    Jobs that have not left are not counted yet.

    Attributes:
        completed: (BINS,) completions by length.
        removed: (BINS,) removals by age.
    """

    def __init__(self) -> None:
        self.completed = np.zeros(BINS)
        self.removed = np.zeros(BINS)

    def take(self, lengths_s: Sequence[float], ages_s: Sequence[float]) -> None:
        """Count completions of these lengths and removals at these ages."""
        self.completed += np.bincount(_bins(np.array(lengths_s)), minlength=BINS)
        self.removed += np.bincount(_bins(np.array(ages_s)), minlength=BINS)

    def forget(self, ratio: float) -> None:
        """Multiply all counts by `ratio`."""
        self.completed *= ratio
        self.removed *= ratio

    def estimate(self) -> Lengths:
        """Estimate the distributions from counts and priors."""
        completed = self.completed + PRIOR_JOBS / BINS
        removed = self.removed + PRIOR_JOBS / BINS
        doubted = self.completed + DOUBTED_JOBS / BINS
        return Lengths(
            good=_truncated(completed),
            bad=np.einsum("ak,akr->ar", _truncated(removed), _TIMES_TO_REMOVAL),
            odds=_tail(removed)[None, :] / _tail(doubted)[:, None],
            mean_s=float(doubted @ MIDDLES_S / doubted.sum()),
        )

    def save(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {"completed": self.completed.tolist(), "removed": self.removed.tolist()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned.

        Raises:
            ValueError: it was saved with another number of bins.
        """
        if not len(saved["completed"]) == len(saved["removed"]) == BINS:
            raise ValueError(f"job lengths in {len(saved['completed'])} bins; expected {BINS}")
        self.completed = np.array(saved["completed"], dtype=np.float64)
        self.removed = np.array(saved["removed"], dtype=np.float64)


def _bins(seconds: Floats) -> NDArray[np.intp]:
    found = np.searchsorted(EDGES_S, seconds, side="right") - 1
    return np.clip(found, 0, BINS - 1)


def _tail(counts: Floats) -> Floats:
    return np.cumsum(counts[::-1])[::-1]


def _truncated(counts: Floats) -> Floats:
    return np.triu(np.broadcast_to(counts, (BINS, BINS))) / _tail(counts)[:, None]


def _times_to_removal() -> Floats:
    """Return (BINS, BINS, BINS) an indicator of the bin of the time to removal.

    It maps age bin i and removal-age bin j to bin k of j - i.
    """
    time_to_removal_s = np.maximum(MIDDLES_S[None, :] - MIDDLES_S[:, None], 0.0)
    indicator: Floats = (_bins(time_to_removal_s)[..., None] == np.arange(BINS)).astype(np.float64)
    return indicator


_TIMES_TO_REMOVAL: Final = _times_to_removal()
