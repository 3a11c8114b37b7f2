"""Online prediction of a binned quantity from a hierarchy of contexts, general to specific."""

from collections.abc import Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SPREAD: Final = np.array([0.15, 0.7, 0.15])
"""An observation's weights on its own bin and its neighbours: bin edges are arbitrary."""
_WEIGHT_STEP: Final = 0.02
"""Learning rate of the levels' weights: a memory of about fifty observations."""
_EVIDENCE_EDGES: Final = np.array([0.5, 1.5, 5.0])
"""Edges of evidence classes: no, one, a few or many observations; each class has own weights."""


class Level(NamedTuple):
    """Parameters of one level of contexts.

    Attributes:
        memory: decay of a context's counts at each of its observations.
        prior_weight: weight of the more general level's prediction, in observations.
    """

    memory: float
    prior_weight: float


class _Counts:
    """Decayed observation counts of one context, by bin."""

    __slots__ = ("bins", "total")

    def __init__(self, bins: Floats, total: float) -> None:
        self.bins = bins
        self.total = total


class ContextHistograms:
    """Distributions of a binned quantity, given contexts of growing detail.

    A job is described by one key per level: all jobs, those of its VO, of its user, of its user
    and size ... Each level is smoothed by the more general one before it, as in back-off language
    models, with d the level's prior weight:

        p_l = (counts_l + d_l p_(l-1)) / (n_l + d_l),    p_0 uniform over the bins.

    The prediction is a mixture sum_l w_l p_l, whose weights are learned by online expectation
    maximisation,

        w_l += step (w_l p_l(observed) / sum_k w_k p_k(observed) - w_l),

    separately by how much evidence there is of the user (`user_level`) and of jobs with the same
    properties (the last level). So sites where users repeat their jobs and sites where requests are
    more informative need no different settings. A level that misleads after a change loses weight.

    Args:
        levels: from general to specific.
        bins: number of bins.
        contexts: maximum of contexts kept per level; the least recently observed is dropped first.
        user_level: the level whose evidence, with that of the last, selects the weights.
    """

    def __init__(self, levels: Sequence[Level], bins: int, contexts: int, user_level: int) -> None:
        self._levels = levels
        self._bins = bins
        self._contexts = contexts
        self._user_level = user_level
        self._counts: list[dict[Hashable, _Counts]] = [{} for _ in levels]
        self._weights = np.full((16, len(levels)), 1.0 / len(levels))
        self._uniform = np.full(bins, 1.0 / bins)

    def predict(self, keys: Sequence[Hashable]) -> Floats:
        """Return (bins,) the probability of each bin, given one key per level."""
        by_level, situation = self._by_level(keys)
        predicted: Floats = self._weights[situation] @ by_level
        return predicted

    def learn(self, keys: Sequence[Hashable], observed: int) -> None:
        """Learn that the bin `observed` occurred in these contexts."""
        by_level, situation = self._by_level(keys)
        weights = self._weights[situation]
        credit = weights * by_level[:, observed]
        weights += _WEIGHT_STEP * (credit / credit.sum() - weights)
        for level, counts, key in zip(self._levels, self._counts, keys, strict=True):
            seen = counts.pop(key, None)  # re-inserted at the end: the first is the least recent
            if seen is None:
                seen = _Counts(np.zeros(self._bins), 0.0)
                if len(counts) >= self._contexts:
                    del counts[next(iter(counts))]
            counts[key] = seen
            seen.bins *= level.memory
            seen.total = seen.total * level.memory + 1.0
            if 0 < observed < self._bins - 1:
                seen.bins[observed - 1 : observed + 2] += _SPREAD
            else:
                seen.bins[observed] += 1.0

    def _by_level(self, keys: Sequence[Hashable]) -> tuple[Floats, int]:
        """Return the (levels, bins) prediction of each level, and the row of the weights."""
        by_level = np.empty((len(keys), self._bins))
        prior = self._uniform
        evidence = []
        for (_, prior_weight), counts, key, row in zip(
            self._levels, self._counts, keys, by_level, strict=True
        ):
            seen = counts.get(key)
            if seen is None:
                row[:] = prior
                evidence.append(0.0)
            else:
                np.multiply(prior, prior_weight, out=row)
                np.add(row, seen.bins, out=row)
                np.divide(row, seen.total + prior_weight, out=row)
                evidence.append(seen.total)
            prior = row
        return by_level, 4 * _evidence_class(evidence[self._user_level]) + _evidence_class(
            evidence[-1]
        )

    def save(self) -> dict[str, Any]:
        """Return counts and weights as plain data; empty bins are left out."""
        return {
            "bins": self._bins,
            "weights": self._weights.tolist(),
            "levels": [
                [_saved(key, seen) for key, seen in counts.items()] for counts in self._counts
            ],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned. Raises `ValueError` if bins or levels differ in number."""
        if saved["bins"] != self._bins or len(saved["levels"]) != len(self._levels):
            raise ValueError(
                f"{saved['bins']} bins on {len(saved['levels'])} levels; expected "
                f"{self._bins} on {len(self._levels)}"
            )
        self._weights = np.array(saved["weights"], dtype=np.float64)
        self._counts = [dict(self._restored(*one) for one in level) for level in saved["levels"]]

    def _restored(
        self, key: Sequence[Any], total: float, filled: Sequence[int], values: Sequence[float]
    ) -> tuple[Hashable, _Counts]:
        bins = np.zeros(self._bins)
        bins[np.array(filled, dtype=np.intp)] = values
        return tuple(key), _Counts(bins, total)


def _evidence_class(evidence: float) -> int:
    return (
        int(evidence > _EVIDENCE_EDGES[0])
        + int(evidence > _EVIDENCE_EDGES[1])
        + int(evidence > _EVIDENCE_EDGES[2])
    )


def _saved(key: Any, seen: _Counts) -> list[Any]:
    filled = np.flatnonzero(seen.bins)
    return [list(key), seen.total, filled.tolist(), seen.bins[filled].tolist()]
