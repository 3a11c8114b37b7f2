"""Faults: machines that evict one job after another although no owner is logged in."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MEMORY_H: Final = 48.0
"""Decay time of fault counts, hours: a broken machine is repaired or reinstalled within days."""
PRIOR_H: Final = 1.0
"""Prior: hours of work without a fault that every machine is given at the beginning."""


class Faults:
    """Fault rate of each machine: faults per hour of work, both with exponential decay.

    After n faults in a short time the rate is about n per hour: one is bad luck, three are a
    *black hole*, a host that always seems free because every job fails there. With the decay the
    rate falls below one per hour again, and the machine is tried again.
    """

    def __init__(self) -> None:
        self._counted = np.zeros(0)
        self._worked_h = np.zeros(0)
        self._fading = float(np.exp(-1.0 / MEMORY_H))

    def grow(self, machines: int) -> None:
        """Extend the arrays to this many machines; new ones have no faults."""
        more = machines - len(self._counted)
        if not more:
            return
        self._counted = np.pad(self._counted, (0, more))
        self._worked_h = np.pad(self._worked_h, (0, more))

    def end_run(self, machine: int, hours: float, faulty: bool) -> None:
        """Count a run of so many hours; `faulty`: evicted by the machine for no known reason."""
        self._worked_h[machine] += hours
        if faulty:
            self._counted[machine] += 1.0

    def fade(self) -> None:
        """Apply one hour of decay."""
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
