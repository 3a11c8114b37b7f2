"""Mean run times of this site, the unit of features, rewards and guards."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

UNKNOWN_S: Final = 3600.0
"""Run time assumed before any run has completed."""

_MEMORY_N: Final = 1000
_ALL: Final = 2


class MeanRuns:
    """Running means over completed runs, by class and of all, with a memory of about 1000 runs.

    After the n-th run, mean += (value - mean) / min(n, 1000).
    """

    def __init__(self) -> None:
        self._seconds = [UNKNOWN_S] * 3
        self._counts = [0] * 3
        self._work_s = UNKNOWN_S

    @property
    def run_s(self) -> float:
        """Mean run time, seconds."""
        return self._seconds[_ALL]

    @property
    def work_s(self) -> float:
        """Mean work of a run, CPU-seconds."""
        return self._work_s

    @property
    def is_known(self) -> bool:
        """Whether any run has completed."""
        return self._counts[_ALL] > 0

    def take(self, interactive: bool, run_s: float, cpus: int) -> None:
        """Count a completed run."""
        for at in (int(interactive), _ALL):
            self._counts[at] += 1
            share = 1.0 / min(self._counts[at], _MEMORY_N)
            self._seconds[at] += share * (run_s - self._seconds[at])
        self._work_s += 1.0 / min(self._counts[_ALL], _MEMORY_N) * (run_s * cpus - self._work_s)

    def expected_s(self, estimate_s: Floats, interactive: NDArray[np.bool_]) -> Floats:
        """(n,) expected run times, seconds: the estimate, or the mean of the class or of all."""
        missing = np.isnan(estimate_s)
        if not missing.any():
            return estimate_s
        batch_s, interactive_s = (
            seconds if count else self.run_s
            for seconds, count in zip(self._seconds[:_ALL], self._counts[:_ALL], strict=True)
        )
        return np.where(missing, np.where(interactive, interactive_s, batch_s), estimate_s)

    def save(self) -> dict[str, Any]:
        """Means and counts."""
        return {
            "seconds": list(self._seconds),
            "counts": list(self._counts),
            "work_s": self._work_s,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._seconds = list(saved["seconds"])
        self._counts = list(saved["counts"])
        self._work_s = saved["work_s"]
