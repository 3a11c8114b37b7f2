"""One number for a distribution of run times: which of two jobs of unknown length goes first."""

from math import inf, sqrt
from typing import Any, Final

import numpy as np

from outrider_policies.estimators.context_histograms import Floats
from outrider_policies.estimators.distributions import MIDDLES_S, Kind, RunTimeDistributions

SHORTEST_S: Final = 10.0
"""Shorter runs cost no more by waiting: the bound of the bounded slowdown."""
WARM_UP_JOBS: Final = 10
"""Completions before anything is predicted from them."""


def weighted_length_s(likely: Floats, longest_s: float = inf) -> float:
    """The length of a distribution: see `ExpectedLengths`.

    Args:
        likely: (bins,) probabilities of the bins of `MIDDLES_S`, which sum to 1.
        longest_s: nothing runs longer.
    """
    runs_s = np.minimum(MIDDLES_S, longest_s)
    mean_s = float(likely @ runs_s)
    cost = float(likely @ (1.0 / np.maximum(runs_s, SHORTEST_S)))
    return sqrt(mean_s / cost)


class ExpectedLengths:
    """The length in seconds by which jobs of a kind are put in order, from all that ended so far.

    Where a second of waiting costs a job w, the order that costs least in expectation on one
    machine is that of the least E[run] / w (Rothkopf 1966, "Scheduling with random service times",
    Management Science 12(9)). For the mean slowdown w is E[1 / run]; so jobs go by

        length = sqrt(E[run] / E[1 / max(run, 10 s)]),

    which is the run time itself where that is known. Where it is not, a kind of which some end
    within a minute comes before one of the same mean of which none does.

    A job does not run beyond what its user requested, where the batch system holds users to it: the
    distribution ends there. Before ten jobs have ended all lengths up to the request are equally
    likely, on the logarithmic scale.

    Args:
        contexts: as of `RunTimeDistributions`.
    """

    def __init__(self, contexts: int) -> None:
        self._distributions = RunTimeDistributions(contexts)

    def learn(self, kind: Kind, run_s: float) -> None:
        """A job of this kind ran so long."""
        self._distributions.learn(kind, run_s)

    def length_s(self, kind: Kind) -> float:
        """By which its jobs are put in order, seconds."""
        return weighted_length_s(self._likely(kind), kind.requested_s or inf)

    def median_s(self, kind: Kind) -> float:
        """Half of its jobs are expected to run shorter, seconds: for people."""
        reached = np.cumsum(self._likely(kind))
        middle = float(MIDDLES_S[int(np.searchsorted(reached, reached[-1] / 2.0))])
        return min(middle, kind.requested_s or inf)

    def _likely(self, kind: Kind) -> Floats:
        """(bins,) probabilities; they sum to 1."""
        if self._distributions.learned_n >= WARM_UP_JOBS:
            found = self._distributions.predict(kind)
        else:
            found = np.where(max(kind.requested_s or inf, SHORTEST_S) >= MIDDLES_S, 1.0, 0.0)
        likely: Floats = found / found.sum()
        return likely

    def save(self) -> dict[str, Any]:
        """What was learned, as plain data."""
        return self._distributions.save()

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave. Raises `ValueError` if it does not fit."""
        self._distributions.restore(saved)
