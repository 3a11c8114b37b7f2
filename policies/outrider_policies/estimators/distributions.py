"""How long jobs like these run: the whole distribution, learned from those that ended."""

from math import floor, log, log2
from typing import Any, Final, NamedTuple

import numpy as np

from outrider.api import JobSpec
from outrider_policies.estimators.context_histograms import ContextHistograms, Floats, Level

BINS: Final = 96
LONGEST_S: Final = 3e6
"""Bins are even in the logarithm of the run time, from one second to five weeks: 17 % wide."""
BIN_WIDTH: Final = log(LONGEST_S) / BINS
MIDDLES_S: Final[Floats] = np.exp((np.arange(BINS) + 0.5) * BIN_WIDTH)
"""(BINS,) the middle of each bin, seconds."""

LEVELS: Final = (
    Level(0.9995, 5.0),  # class
    Level(0.999, 5.0),  # class, requested time to a factor of two
    Level(0.998, 5.0),  # class, requested time and CPUs to a factor of two
    Level(0.998, 8.0),  # class, requested time to the second
    Level(0.99, 8.0),  # class, VO, requested time to a factor of two
    Level(0.99, 8.0),  # class, user
    Level(0.8, 4.0),  # the same, short memory
    Level(0.98, 6.0),  # class, user, requested time to a factor of two
    Level(0.97, 6.0),  # class, user, requested time to the second, CPUs
    Level(0.7, 4.0),  # the same, short memory
)
_USER: Final = 5
"""Index of the level of the user."""


class Kind(NamedTuple):
    """What jobs have in common whose run times are predicted alike: all that their user said."""

    job_class: str
    user: str
    vo: str
    requested_s: float | None
    cpus: int

    @classmethod
    def of(cls, spec: JobSpec, requested_s: float | None) -> "Kind":
        """The kind of a job; `requested_s` is what its user said, whoever estimated since."""
        return cls(spec.job_class, spec.user, spec.vo, requested_s, spec.cpus)


class RunTimeDistributions:
    """Distributions of run times by kind of job; see `ContextHistograms`.

    Args:
        contexts: most users, requests and so on remembered of each kind.

    Attributes:
        learned_n: run times learned.
    """

    def __init__(self, contexts: int) -> None:
        self._contexts = contexts
        self._histograms = self._empty()
        self.learned_n = 0

    def _empty(self) -> ContextHistograms:
        return ContextHistograms(LEVELS, BINS, self._contexts, _USER)

    def predict(self, kind: Kind) -> Floats:
        """(BINS,) the probability of each bin; they sum to about 1."""
        return self._histograms.predict(_keys(kind))

    def learn(self, kind: Kind, run_s: float) -> None:
        """A job of this kind ran so long."""
        place = int(log(max(run_s, 1.0)) / BIN_WIDTH)
        self._histograms.learn(_keys(kind), min(place, BINS - 1))
        self.learned_n += 1

    def save(self) -> dict[str, Any]:
        """What was learned, as plain data."""
        return {"histograms": self._histograms.save(), "learned_n": self.learned_n}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave. Raises `ValueError` if it has other bins or levels."""
        histograms = self._empty()
        histograms.restore(saved["histograms"])
        self._histograms = histograms
        self.learned_n = saved["learned_n"]


def _keys(kind: Kind) -> tuple[tuple[Any, ...], ...]:
    """Its context keys, one for each of `LEVELS`."""
    job_class, user, requested_s = kind.job_class, kind.user, kind.requested_s
    size = floor(log2(kind.cpus))
    length = -1 if not requested_s else floor(log2(max(requested_s, 1.0)))
    like = (job_class, user, requested_s, kind.cpus)
    by_user = (job_class, user)
    return (
        (job_class,),
        (job_class, length),
        (job_class, length, size),
        (job_class, requested_s),
        (job_class, kind.vo, length),
        by_user,
        by_user,
        (job_class, user, length),
        like,
        like,
    )
