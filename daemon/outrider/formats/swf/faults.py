"""Checks for impossible jobs in a Standard Workload Format file: refuse, or leave out and count."""

from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.formats.campus.campus import LATEST_S
from outrider.formats.swf.table import MISSING, SwfTable
from outrider.model.errors import TraceError

_CPUS: Final = "allocated processors"
_LATEST: Final = f"at most {LATEST_S:.0e}"


class _Fault(NamedTuple):
    """A fault and the mask of jobs that have it."""

    where: NDArray[np.bool_]
    reason: str
    column: str
    right: str


def without_faults(
    path: Path, table: SwfTable, cpus_n: int, skipped: Counter[str] | None
) -> SwfTable:
    """The table without impossible jobs.

    Args:
        path: named in errors.
        table: jobs that ran.
        cpus_n: CPUs of the site.
        skipped: None to refuse the first impossible job; otherwise they are left out and counted
            here, each by its first fault.

    Raises:
        TraceError: names line, column, value and what would be right.
    """
    faults = [fault for fault in _faults(table, cpus_n) if fault.where.any()]
    if not faults:
        return table
    if skipped is None:
        fault = min(faults, key=lambda fault: int(fault.where.argmax()))
        row = int(fault.where.argmax())
        raise TraceError(
            f'{path}: line {table.lines[row]}, column "{fault.column}": {fault.reason}: '
            f'"{_value(table, fault.column)[row]:.15g}"; right would be {fault.right}'
        )
    bad = np.zeros(len(table.values), dtype=bool)
    for fault in faults:
        if more := int((fault.where & ~bad).sum()):
            skipped[fault.reason] += more
        bad |= fault.where
    return table.only(~bad)


def _value(table: SwfTable, column: str) -> NDArray[np.float64]:
    return table.processors() if column == _CPUS else table.column(column)


def _faults(table: SwfTable, cpus_n: int) -> list[_Fault]:
    numbers, submit_s = table.column("job number"), table.column("submit time")
    run_s, wait_s, cpus = table.column("run time"), table.column("wait time"), table.processors()
    again = np.ones(len(numbers), dtype=bool)
    again[np.unique(numbers, return_index=True)[1]] = False
    return [
        _Fault((numbers < 0) | (numbers % 1 != 0), "no job number", "job number", "1, 2, ..."),
        _Fault(again, "duplicate job number", "job number", "a number that no line above has"),
        _Fault(submit_s < 0, "negative", "submit time", "0 or more"),
        _Fault(submit_s > LATEST_S, "too large", "submit time",
               f"seconds since the log's own zero (no Unix time), {_LATEST}"),
        _Fault(run_s > LATEST_S, "too large", "run time", f"seconds, {_LATEST}"),
        _Fault((wait_s < 0) & (wait_s != MISSING), "negative", "wait time",
               f"0 or more, {MISSING} where it is not known"),
        _Fault(wait_s > LATEST_S, "too large", "wait time", f"seconds, {_LATEST}"),
        _Fault(cpus % 1 != 0, "not a whole number", _CPUS, "a whole number"),
        _Fault(cpus > cpus_n, "larger than the machine", _CPUS,
               f"at most {cpus_n}, which is what --machines, or else MaxProcs in the header, says"),
    ]  # fmt: skip
