"""Calibrated quantiles: levels that adapt until their coverage meets the targets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class QuantileLevels:
    """Levels at which to evaluate a predicted distribution to get the target coverage.

    A tenth percentile is right if a tenth of the observations lies below it. If the distribution
    is too narrow or drifts, that fails; so each level is corrected by every observation (adaptive
    conformal inference: Gibbs and Candes, NeurIPS 2021, equation 2):

        level += step (target - [observed <= predicted])

    In the long run the coverage meets the target for any distribution, within the limits below.

    Args:
        targets: target coverage, ascending, each between 0 and 1.
        step: learning rate of the levels.

    Attributes:
        levels: (n,) present levels, ascending. Each stays between the midpoints to its neighbours'
            targets, and at least a tenth of the outer targets' distance away from 0 and 1.
    """

    def __init__(self, targets: Sequence[float], step: float) -> None:
        self.targets = np.array(targets)
        self.levels = self.targets.copy()
        self._step = step
        middles = (self.targets[1:] + self.targets[:-1]) / 2.0
        self._least = np.concatenate([self.targets[:1] / 10.0, middles])
        self._most = np.concatenate([middles, 1.0 - (1.0 - self.targets[-1:]) / 10.0])

    def learn(self, observed: float, predicted: Sequence[float]) -> None:
        """Learn from one observation; `predicted`: (n,) quantiles that were issued for it."""
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
