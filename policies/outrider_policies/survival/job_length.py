"""How long jobs run, and how soon those that never end are removed."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BINS: Final = 31
EDGES_S: Final = np.concatenate([[0.0], 60.0 * 2.0 ** (np.arange(BINS) / 2.0)])
"""(BINS + 1,) edges of the bins of length and of age: a minute, then two a doubling, to a month.
What is longer is counted in the last bin."""
MIDDLES_S: Final = (EDGES_S[1:] + EDGES_S[:-1]) / 2.0

PRIOR_JOBS: Final = 1.0
"""Completions, and removals, counted before any was seen, spread evenly over the bins."""
DOUBTED_JOBS: Final = 40.0
"""Completions that are added, in the same way, where a job is judged: as the bins reach to a month,
jobs are believed to be long and good until many more than these have shown how long they are."""


class Lengths(NamedTuple):
    """What follows from the counts of `JobLength`.

    Attributes:
        good: (BINS, BINS); row a is the distribution of a good job's length, by bin, if it is
            longer than the edge of bin a.
        bad: (BINS, BINS); row A is that of the time until a bad job of the age of bin A is removed.
        odds: (BINS, BINS) bad to good, by bin of the longest lost run and by bin of the age.
        mean_s: mean length of good jobs, with doubt.
    """

    good: Floats
    bad: Floats
    odds: Floats
    mean_s: float


class JobLength:
    """Two histograms, from which follows what a job that was evicted may still become.

    A job is *good* (it completes after some length of undisturbed work) or *bad* (it is removed
    at some age, whatever was done with it). A good job that lost a run of `a` seconds is longer
    than that; a bad one of age `A` is one that nobody removed by then. Hence

        bad : good = (removed at an age above A) : (completed with a length above a)

    Neither count depends on who placed the jobs or how long they were held, so both may be learned
    from any batch system's runs; the longest run of a removed job would depend on it. Jobs that
    are still there count as nothing yet.

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
        """What was counted so far is worth this ratio of it from now on."""
        self.completed *= ratio
        self.removed *= ratio

    def estimate(self) -> Lengths:
        """All that follows from the counts and the priors."""
        completed = self.completed + PRIOR_JOBS / BINS
        removed = self.removed + PRIOR_JOBS / BINS
        doubted = self.completed + DOUBTED_JOBS / BINS
        return Lengths(
            good=_beyond(completed),
            bad=np.einsum("ak,akr->ar", _beyond(removed), _LAPSES),
            odds=_tail(removed)[None, :] / _tail(doubted)[:, None],
            mean_s=float(doubted @ MIDDLES_S / doubted.sum()),
        )

    def save(self) -> dict[str, Any]:
        """Counts as plain data."""
        return {"completed": self.completed.tolist(), "removed": self.removed.tolist()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave.

        Raises:
            ValueError: it was counted in other bins.
        """
        if not len(saved["completed"]) == len(saved["removed"]) == BINS:
            raise ValueError(
                f"job lengths in {len(saved['completed'])} bins; right would be {BINS}"
            )
        self.completed = np.array(saved["completed"], dtype=np.float64)
        self.removed = np.array(saved["removed"], dtype=np.float64)


def _bins(seconds: Floats) -> NDArray[np.intp]:
    found = np.searchsorted(EDGES_S, seconds, side="right") - 1
    return np.clip(found, 0, BINS - 1)


def _tail(counts: Floats) -> Floats:
    return np.cumsum(counts[::-1])[::-1]


def _beyond(counts: Floats) -> Floats:
    return np.triu(np.broadcast_to(counts, (BINS, BINS))) / _tail(counts)[:, None]


def _lapses() -> Floats:
    """(age, age at removal, bin of the time between): 1 where the first two lead to the third."""
    lapse_s = np.maximum(MIDDLES_S[None, :] - MIDDLES_S[:, None], 0.0)
    lapses: Floats = (_bins(lapse_s)[..., None] == np.arange(BINS)).astype(np.float64)
    return lapses


_LAPSES: Final = _lapses()
