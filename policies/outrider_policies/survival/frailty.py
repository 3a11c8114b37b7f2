"""Frailty: how much oftener a machine is interrupted than others of its cluster."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Frailty:
    """Gamma frailty of each machine: its own interruptions per expected one.

    The hazard of machine m is z_m times its cluster's, z_m a priori Gamma distributed with mean 1
    and shape `shape` (Clayton 1978). After n interruptions where E were expected from the
    cluster's hazard its mean is (shape + n) / (shape + E): a machine that stands idle for long
    where others are taken gets below 1, a black hole that throws off job after job far above.
    Both counts fade, so that a machine that is avoided is tried again in the end.

    Args:
        shape: of the prior; small where machines of one cluster differ much.

    Attributes:
        interruptions: (machines,) counted.
        expected: (machines,) expected of the cluster's hazard over the machine's exposure.
    """

    def __init__(self, shape: float) -> None:
        self._shape = shape
        self.interruptions = np.zeros(0)
        self.expected = np.zeros(0)

    def grow(self, machines: int) -> None:
        """There are so many machines now; new ones are like any other."""
        more = machines - len(self.expected)
        if not more:
            return
        self.interruptions = np.pad(self.interruptions, (0, more))
        self.expected = np.pad(self.expected, (0, more))

    def forget(self, ratio: float) -> None:
        """What was counted so far is worth this ratio of it from now on."""
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
