"""Quantiles that keep their promise: levels that move until they are met as often as they say."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class QuantileLevels:
    """At which levels a predicted distribution must be read to be right as often as promised.

    A tenth percentile is right if a tenth of what comes lies below it. Where a distribution is
    too narrow, or the world drifts away from it, that fails; so each level is moved by what came
    (adaptive conformal inference: Gibbs and Candes, NeurIPS 2021, equation 2):

        level += step (target - [observed <= predicted])

    In the long run the promise is kept whatever the distribution was, as far as levels may go.

    Args:
        targets: what is promised, ascending, each between 0 and 1.
        step: how fast levels move.

    Attributes:
        levels: (n,) where to read the distribution now, ascending. None passes the middle
            between two targets, nor the last tenth of the way to 0 or 1.
    """

    def __init__(self, targets: Sequence[float], step: float) -> None:
        self.targets = np.array(targets)
        self.levels = self.targets.copy()
        self._step = step
        middles = (self.targets[1:] + self.targets[:-1]) / 2.0
        self._least = np.concatenate([self.targets[:1] / 10.0, middles])
        self._most = np.concatenate([middles, 1.0 - (1.0 - self.targets[-1:]) / 10.0])

    def learn(self, observed: float, predicted: Sequence[float]) -> None:
        """Take in one observation; `predicted` are the quantiles that were read for it."""
        met = observed <= np.asarray(predicted)
        moved = self.levels + self._step * (self.targets - met)
        self.levels = np.clip(moved, self._least, self._most)

    def save(self) -> list[float]:
        """The levels as plain data."""
        levels: list[float] = self.levels.tolist()
        return levels

    def restore(self, saved: Sequence[Any]) -> None:
        """Go on from what `save` gave. Raises `ValueError` if it has other targets."""
        if len(saved) != len(self.targets):
            raise ValueError(f"{len(saved)} quantile levels; right would be {len(self.targets)}")
        self.levels = np.array(saved, dtype=np.float64)
