"""Frailty: a machine's rate of interruptions relative to its cluster's."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Frailty:
    """Gamma frailty of each machine (shared-frailty model, Clayton 1978).

    The hazard of machine m is z_m times its cluster's, with a Gamma prior of mean 1 and shape
    `shape` on z_m. After n interruptions where E were expected from the cluster's hazard, the
    posterior mean is (shape + n) / (shape + E): below 1 for a machine that stays idle longer than
    others, far above 1 for a black hole that evicts one job after another. Both counts decay, so
    that a machine that is avoided is tried again in the end.

    Args:
        shape: of the prior; small where machines of one cluster differ much.

    Attributes:
        interruptions: (machines,) decayed count n.
        expected: (machines,) E: the cluster's hazard summed over the machine's exposure.
    """

    def __init__(self, shape: float) -> None:
        self._shape = shape
        self.interruptions = np.zeros(0)
        self.expected = np.zeros(0)

    def grow(self, machines: int) -> None:
        """Extend the arrays to this many machines; new ones have the prior's frailty 1."""
        more = machines - len(self.expected)
        if not more:
            return
        self.interruptions = np.pad(self.interruptions, (0, more))
        self.expected = np.pad(self.expected, (0, more))

    def forget(self, ratio: float) -> None:
        """Multiply all counts by `ratio`."""
        self.interruptions *= ratio
        self.expected *= ratio

    def means(self) -> Floats:
        """(machines,) posterior mean of each frailty."""
        means: Floats = (self._shape + self.interruptions) / (self._shape + self.expected)
        return means

    def mean(self, machine: int) -> float:
        """Posterior mean of the frailty of one machine."""
        counted, expected = self.interruptions[machine], self.expected[machine]
        return float((self._shape + counted) / (self._shape + expected))

    def save(self) -> list[list[float]]:
        """Counts as plain data, by machine number."""
        return [self.interruptions.tolist(), self.expected.tolist()]

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        self.interruptions = np.array(saved[0], dtype=np.float64)
        self.expected = np.array(saved[1], dtype=np.float64)
