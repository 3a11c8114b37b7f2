"""What completed jobs were worth to their users: utility, summed up as jobs complete."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility, utility_of

_AT_ONCE: Final = 1024


class UtilityStatistics:
    """Sum of unit utility x CPUs asked for x ideal run time (Vengerov 2005, section 2).

    So a job is worth as much as its CPU-seconds would be in small jobs. The ideal run time is what
    the job took, had it had all the CPUs it asked for. Rows are valued a fixed number at a
    time, so that the sum does not depend on how many come at once.

    Args:
        utilities: time utility functions by job class.
    """

    def __init__(self, utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES) -> None:
        self._utilities = utilities
        self._summed = 0.0
        self._rows: dict[str, NDArray[np.float64]] = {}

    def completed(
        self, job_class: str, turnaround_s: NDArray[np.float64], ideal_s: NDArray[np.float64],
        cpu_s: NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Jobs of a class completed; `cpu_s`: CPU-seconds of their runs."""
        rows = np.column_stack((turnaround_s, ideal_s, cpu_s))
        if job_class in self._rows:
            rows = np.concatenate((self._rows[job_class], rows))
        whole = len(rows) // _AT_ONCE * _AT_ONCE
        for first in range(0, whole, _AT_ONCE):
            self._summed += self._worth(job_class, rows[first : first + _AT_ONCE])
        self._rows[job_class] = rows[whole:]

    def _worth(self, job_class: str, rows: NDArray[np.float64]) -> float:
        turnaround_s, ideal_s, cpu_s = np.ascontiguousarray(rows.T)
        unit = utility_of(self._utilities, job_class).unit(turnaround_s, ideal_s)
        return float((unit * cpu_s).sum())

    @property
    def total(self) -> float:
        """The sum until now, in CPU-seconds of unit utility."""
        return self._summed + sum(self._worth(name, rows) for name, rows in self._rows.items())

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        rows = {name: rows.tolist() for name, rows in self._rows.items()}
        return {"summed": self._summed, "rows": rows}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._summed = saved["summed"]
        self._rows = {
            name: np.array(rows, dtype=float).reshape(-1, 3) for name, rows in saved["rows"].items()
        }
