"""What usually happens in situations like this one: histograms from the general to the special."""

from collections.abc import Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SPREAD: Final = np.array([0.15, 0.7, 0.15])
"""An observation counts a little for the bins beside its own: they are arbitrary cuts."""
_WEIGHT_STEP: Final = 0.02
"""How fast the weights of the levels follow what they foretold: about the last fifty."""
_EVIDENCE: Final = np.array([0.5, 1.5, 5.0])
"""Where the weights of levels change: nothing, one, a few or many observations like this one."""


class Level(NamedTuple):
    """How much one level of contexts remembers, and how much it leans on the one before.

    Attributes:
        memory: what an observation is still worth when the next one of its context comes.
        doubt: as many observations' worth of the level before are added to its own.
    """

    memory: float
    doubt: float


class _Counts:
    """Observations of one context by bin, those of long ago at less."""

    __slots__ = ("bins", "total")

    def __init__(self, bins: Floats, total: float) -> None:
        self.bins = bins
        self.total = total


class ContextHistograms:
    """The distribution of something that falls into bins, given contexts of growing detail.

    A job is described by one key for each level: all jobs, those of its VO, of its user, of its
    user and size ... Each level leans on the one before where it has seen little,

        p_l = (counts_l + doubt_l p_(l-1)) / (n_l + doubt_l),    p_0 uniform over the bins,

    as back-off models of language do. The prediction is a mixture sum_l w_l p_l: which level
    foretells best is learned on the way, by on-line expectation maximisation,

        w_l += step (w_l p_l(observed) / sum_k w_k p_k(observed) - w_l),

    for situations in which much or little has been seen of the user (`gauge`) and of jobs just
    like this one (the last level). So a site whose users repeat themselves and one whose requests
    tell more need no different settings, and a level that misleads after a change loses its say.

    Args:
        levels: from the general to the special.
        bins: number of bins.
        contexts: most contexts that a level keeps; the one unseen for longest goes first.
        gauge: the level whose evidence, with that of the last, chooses the weights.
    """

    def __init__(self, levels: Sequence[Level], bins: int, contexts: int, gauge: int) -> None:
        self._levels = levels
        self._bins = bins
        self._contexts = contexts
        self._gauge = gauge
        self._counts: list[dict[Hashable, _Counts]] = [{} for _ in levels]
        self._weights = np.full((16, len(levels)), 1.0 / len(levels))
        self._uniform = np.full(bins, 1.0 / bins)

    def predict(self, keys: Sequence[Hashable]) -> Floats:
        """(bins,) the probability of each bin, given one key a level."""
        by_level, situation = self._by_level(keys)
        predicted: Floats = self._weights[situation] @ by_level
        return predicted

    def learn(self, keys: Sequence[Hashable], observed: int) -> None:
        """Take in that the bin `observed` came, in the context of these keys."""
        by_level, situation = self._by_level(keys)
        weights = self._weights[situation]
        credit = weights * by_level[:, observed]
        weights += _WEIGHT_STEP * (credit / credit.sum() - weights)
        for level, counts, key in zip(self._levels, self._counts, keys, strict=True):
            seen = counts.pop(key, None)  # put back at the end: the first is the longest unseen
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
        """(levels, bins) what each level foretells, and the row of the weights."""
        by_level = np.empty((len(keys), self._bins))
        before = self._uniform
        evidence = []
        for (_, doubt), counts, key, row in zip(
            self._levels, self._counts, keys, by_level, strict=True
        ):
            seen = counts.get(key)
            if seen is None:
                row[:] = before
                evidence.append(0.0)
            else:
                np.multiply(before, doubt, out=row)
                np.add(row, seen.bins, out=row)
                np.divide(row, seen.total + doubt, out=row)
                evidence.append(seen.total)
            before = row
        return by_level, 4 * _rank(evidence[self._gauge]) + _rank(evidence[-1])

    def save(self) -> dict[str, Any]:
        """Counts and weights as plain data; bins that are empty take no room."""
        return {
            "bins": self._bins,
            "weights": self._weights.tolist(),
            "levels": [
                [_saved(key, seen) for key, seen in counts.items()] for counts in self._counts
            ],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave. Raises `ValueError` if bins or levels were others."""
        if saved["bins"] != self._bins or len(saved["levels"]) != len(self._levels):
            raise ValueError(
                f"{saved['bins']} bins on {len(saved['levels'])} levels; right would be "
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


def _rank(evidence: float) -> int:
    return (
        int(evidence > _EVIDENCE[0]) + int(evidence > _EVIDENCE[1]) + int(evidence > _EVIDENCE[2])
    )


def _saved(key: Any, seen: _Counts) -> list[Any]:
    filled = np.flatnonzero(seen.bins)
    return [list(key), seen.total, filled.tolist(), seen.bins[filled].tolist()]
