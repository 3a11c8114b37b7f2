"""What completed jobs were worth to their users: utility, summed up as jobs complete."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from outrider.model.jobs import JobSpec
from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility, utility_of

_AT_ONCE: Final = 1024

Row = tuple[float, float, float]
"""Turnaround, ideal run time (seconds), weight (CPU-seconds)."""


class UtilityBook:
    """Sum of unit utility x CPUs asked for x ideal run time (Vengerov 2005, section 2).

    So a job is worth as much as its CPU-seconds would be in small jobs. The ideal run time is what
    the job took, had it had all the CPUs it asked for. Rows are valued many at a time: one by one
    they would cost more than all the rest of the accounting.

    Args:
        utilities: time utility functions by job class.
    """

    def __init__(self, utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES) -> None:
        self._utilities = utilities
        self._summed = 0.0
        self._rows: dict[str, list[Row]] = {}

    def completed(self, spec: JobSpec, turnaround_s: float, cpu_s: float) -> None:
        """A job completed; `cpu_s`: CPU-seconds of its run."""
        rows = self._rows.get(spec.job_class)
        if rows is None:
            rows = self._rows[spec.job_class] = []
        rows.append((turnaround_s, cpu_s / spec.cpus, cpu_s))
        if len(rows) >= _AT_ONCE:
            self._summed += self._worth(spec.job_class, rows)
            rows.clear()

    def _worth(self, job_class: str, rows: list[Row]) -> float:
        turnaround_s, ideal_s, cpu_s = np.array(rows).T
        unit = utility_of(self._utilities, job_class).unit(turnaround_s, ideal_s)
        return float((unit * cpu_s).sum())

    @property
    def total(self) -> float:
        """The sum until now, in CPU-seconds of unit utility."""
        return self._summed + sum(self._worth(name, rows) for name, rows in self._rows.items())

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {"summed": self._summed, "rows": self._rows}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._summed = saved["summed"]
        self._rows = {name: [(a, b, c) for a, b, c in rows] for name, rows in saved["rows"].items()}
