"""Amounts of CPUs, memory and GPUs in columns: what machines have, and what jobs ask for."""

from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.model.resources import Resources


@dataclass(slots=True)
class Amounts:
    """Optional columns of ``machines.csv`` or ``jobs.csv``; a row is a machine or a job.

    Attributes:
        cpus: (rows,) CPUs, at least 1.
        memory_mib, gpus: (rows,) memory in MiB, and GPUs; nan: the machine does not declare it,
            so that it is not checked there, or the job does not ask for it.
    """

    cpus: NDArray[np.int32]
    memory_mib: NDArray[np.float64]
    gpus: NDArray[np.float64]

    @property
    def is_plain(self) -> bool:
        """Whether every row has one CPU and says nothing else, as without these columns."""
        return bool((self.cpus == 1).all() and np.isnan((self.memory_mib, self.gpus)).all())

    @property
    def is_wide(self) -> bool:
        """Whether any row has several CPUs."""
        return bool((self.cpus > 1).any())

    def rows(self, order: Any) -> "Amounts":
        """Some rows, in an order."""
        return Amounts(self.cpus[order], self.memory_mib[order], self.gpus[order])

    def declared(self, row: int) -> Resources | None:
        """What a machine declares besides its CPUs; None: nothing."""
        return _resources(float(self.memory_mib[row]), float(self.gpus[row]))

    def requested(self, row: int) -> Resources | None:
        """What a job asks for besides CPUs; 0 is nothing."""
        return _resources(float(self.memory_mib[row]) or np.nan, float(self.gpus[row]) or np.nan)


def _resources(memory_mib: float, gpus: float) -> Resources | None:
    if isnan(memory_mib) and isnan(gpus):
        return None
    return Resources(
        None if isnan(memory_mib) else memory_mib, None if isnan(gpus) else gpus
    )  # fmt: skip
