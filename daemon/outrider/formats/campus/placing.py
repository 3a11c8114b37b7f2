"""Rules for the optional columns: CPUs, memory, GPUs, and the clusters where a job may run."""

from collections.abc import Mapping
from math import isnan
from typing import Final

import numpy as np

from outrider.formats.campus.campus import ONLY_SEPARATOR
from outrider.formats.campus.ranges import beyond, lies_within
from outrider.formats.campus.tables import Columns, Fault, Row
from outrider.model.errors import nearest

CPUS: Final = "cpus"
ONLY: Final = "only"
BESIDE_CPUS: Final = ("memory_mib", "gpus")
MOST_CPUS: Final = 1e6
MOST: Final = 1e12
"""More MiB or GPUs are an error."""


def amounts_are_valid(columns: Columns) -> bool:
    """Whether CPUs are whole numbers from 1, and memory and GPUs are not below 0."""
    cpus = columns.get(CPUS)
    if cpus is not None and not lies_within(cpus, MOST_CPUS):
        return False
    if cpus is not None and bool(((cpus < 1) | (cpus % 1 > 0)).any()):
        return False
    return all(lies_within(columns[name], MOST) for name in BESIDE_CPUS if name in columns)


def fault_of_amounts(row: Row) -> Fault | None:
    """The same of one row."""
    names = [name for name in BESIDE_CPUS if name in row]
    if CPUS in row:
        if fault := beyond(row, [CPUS], MOST_CPUS, "CPUs"):
            return fault
        if row[CPUS] < 1 or row[CPUS] % 1 > 0:
            return Fault("no number of CPUs", CPUS, "a whole number from 1, or nothing for 1")
    return beyond(row, names, MOST, "MiB or GPUs")


class Places:
    """Where jobs may run, and whether they are too wide for it.

    Args:
        widest: most CPUs of any machine, by cluster; 0 for a cluster without machines.
    """

    def __init__(self, widest: Mapping[str, int]) -> None:
        self._widest = widest
        self._widest_of_all = max(widest.values(), default=0)

    def are_valid(self, columns: Columns) -> bool:
        """Whether every job names known clusters, and none is wider than each of their machines."""
        cpus, only = columns.get(CPUS), columns.get(ONLY)
        if only is None:
            return cpus is None or not self._too_wide(float(np.nanmax(cpus, initial=1)), "")
        if self._unknown_in(set(only)) is not None:
            return False
        if cpus is None:
            return True
        most: dict[str, float] = {}
        for names, asked in zip(only, cpus.tolist(), strict=True):
            most[names] = max(most.get(names, 1.0), asked)  # an empty one is nan: no more than 1
        return not any(self._too_wide(asked, names) for names, asked in most.items())

    def fault_of(self, row: Row) -> Fault | None:
        """The same of one row."""
        only = row.get(ONLY, "")
        unknown = self._unknown_in({only})
        if unknown is not None:
            near = nearest(unknown, self._widest)
            return Fault(
                "unknown cluster", ONLY,
                f"names of clusters joined by {ONLY_SEPARATOR}, or nothing for all of them; {near}",
            )  # fmt: skip
        asked = row.get(CPUS, 1.0)
        if not isnan(asked) and self._too_wide(asked, only):
            where = f"in {only}" if only else "of the campus"
            return Fault(
                "wider than any machine", CPUS,
                f"at most {self._most(only)}, the CPUs of the widest machine {where}",
            )  # fmt: skip
        return None

    def _unknown_in(self, onlys: set[str]) -> str | None:
        for only in sorted(onlys):
            for name in only.split(ONLY_SEPARATOR) if only else ():
                if name not in self._widest:
                    return name
        return None

    def _most(self, only: str) -> int:
        if not only:
            return self._widest_of_all
        return max(self._widest[name] for name in only.split(ONLY_SEPARATOR))

    def _too_wide(self, asked: float, only: str) -> bool:
        """Where there is no machine at all, no job is too wide for it."""
        return asked > (self._most(only) or asked)
