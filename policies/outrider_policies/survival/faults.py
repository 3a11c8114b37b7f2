"""Faults: machines that throw off job after job though no owner sits there."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MEMORY_H: Final = 48.0
"""Mean memory of a fault: a broken machine is mended, or reinstalled, within days."""
PRIOR_H: Final = 1.0
"""Hours of faultless work that every machine is believed to have done before anything is known."""


class Faults:
    """Rate of the faults of each machine: faults per hour of work, both fading.

    After n faults in little time it is about n an hour: one is bad luck, three are a *black hole*,
    which real pools know as the host that seems always free because every job fails there. As
    the memory fades it falls below one an hour again, and the machine gets another chance.
    """

    def __init__(self) -> None:
        self._counted = np.zeros(0)
        self._worked_h = np.zeros(0)
        self._fading = float(np.exp(-1.0 / MEMORY_H))

    def grow(self, machines: int) -> None:
        """There are so many machines now; new ones have no faults."""
        more = machines - len(self._counted)
        if not more:
            return
        self._counted = np.pad(self._counted, (0, more))
        self._worked_h = np.pad(self._worked_h, (0, more))

    def end_run(self, machine: int, hours: float, faulty: bool) -> None:
        """A run of so many hours ended; `faulty`: the machine threw it off for no known reason."""
        self._worked_h[machine] += hours
        if faulty:
            self._counted[machine] += 1.0

    def fade(self) -> None:
        """An hour is over."""
        self._counted *= self._fading
        self._worked_h *= self._fading

    def rates(self) -> Floats:
        """(machines,) faults per hour of work."""
        rates: Floats = self._counted / (PRIOR_H + self._worked_h)
        return rates

    def save(self) -> list[list[float]]:
        """Counts as plain data, by machine number."""
        return [self._counted.tolist(), self._worked_h.tolist()]

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        self._counted = np.array(saved[0], dtype=np.float64)
        self._worked_h = np.array(saved[1], dtype=np.float64)
