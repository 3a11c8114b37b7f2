"""Reading Standard Workload Format: how the 18 columns of a file become a workload.

- **Processors** of a job are those allocated; where these are missing (-1), those requested.
- A job is **left out** if its run time or its processors are 0 or less, and counted by reason.
  So are partial executions (status 2 to 4) if the log also has the job as a whole.
- Its **class** is ``interactive`` if it ran strictly less than `INTERACTIVE_BELOW_S`, else
  ``batch``: the format has no class.
- Its **VO** is its group, or another column; VOs and users are named by the log's numbers. A job
  without one belongs to ``all``.
- **Machines**: as many as the header's MaxProcs, with one CPU each; or, if any job uses several,
  one machine with all CPUs, because logs seldom say which processors share a node.
- **Times** are seconds from the log's zero, which UnixStartTime and TimeZoneString of the header
  place on the clock. The first job may come long after it.
"""

from collections import Counter
from pathlib import Path
from typing import Final

import numpy as np

from outrider.formats.swf.faults import without_faults
from outrider.formats.swf.header import processors_in, start_in
from outrider.formats.swf.table import MISSING, SwfTable, read_table
from outrider.formats.workload import (
    DEFAULT_VO,
    INTERACTIVE_BELOW_S,
    Floats,
    Workload,
    classes_of,
    one_cpu_machines,
    one_pool,
)
from outrider.model.errors import ConfigurationError, TraceError, nearest

__all__ = ["INTERACTIVE_BELOW_S", "VO_COLUMNS", "read_swf"]

VO_COLUMNS: Final = ("group", "user", "queue", "partition")
"""Columns that can be used as a job's VO."""

MOST_MACHINES: Final = 1_000_000
"""Most one-CPU machines: each takes memory, and a larger number means a damaged header."""

_PARTS: Final = (2, 3, 4)


def read_swf(
    path: Path,
    *,
    machines: int | None = None,
    interactive_below_s: float = INTERACTIVE_BELOW_S,
    vo: str = "group",
    skip_bad: bool = False,
) -> Workload:
    """Read a Standard Workload Format file, ``.swf`` or ``.swf.gz``.

    Args:
        path: the file.
        machines: one-CPU machines, or CPUs of the pool; None: the header's MaxProcs.
        interactive_below_s: jobs that ran strictly shorter are interactive, seconds.
        vo: the column to use as a job's VO, one of `VO_COLUMNS`.
        skip_bad: leave out damaged lines and count them, instead of refusing the first.

    Returns:
        The workload, jobs sorted by submission and, at equal times, in file order. Estimates are
        the true run times until `estimates.estimated` replaces them.

    Raises:
        TraceError: names file, line, column, value and what would be right.
        ConfigurationError: `vo` is none of `VO_COLUMNS`.
    """
    if vo not in VO_COLUMNS:
        raise ConfigurationError(f'VO by "{vo}": no such column; {nearest(vo, VO_COLUMNS)}')
    skipped: Counter[str] = Counter()
    bad = skipped if skip_bad else None
    table = _jobs_that_ran(read_table(path, bad), skipped)
    cpus_n = processors_in(table.header, path) if machines is None else machines
    table = without_faults(path, table, cpus_n, bad)
    if not len(table.values):
        reasons = ", ".join(f"{n} {reason}" for reason, n in skipped.items())
        raise TraceError(f"{path}: no job that ran; left out: {reasons}")
    notes = _out_of_order(table)
    order = np.argsort(table.column("submit time"), kind="stable")
    table = table._replace(values=table.values[order], lines=table.lines[order])
    run_s, cpus = table.column("run time").copy(), table.processors().astype(np.int64)
    parallel = bool((cpus > 1).any())
    if not parallel and cpus_n > MOST_MACHINES:
        raise TraceError(
            f"{path}: {cpus_n} machines, which is what --machines, or else MaxProcs in the header, "
            f"says; right would be at most {MOST_MACHINES}"
        )
    machine_names, specs = one_pool(cpus_n) if parallel else one_cpu_machines(cpus_n)
    return Workload(
        name=path.name,
        job_names=_names(table.column("job number"), ""),
        submit_s=table.column("submit time").copy(),
        run_s=run_s,
        cpus=cpus,
        requested_s=_known(table.column("requested time"), above=0.0),
        wait_s=_known(table.column("wait time"), above=MISSING),
        estimate_s=run_s.copy(),
        user=_names(table.column("user"), ""),
        vo=_names(table.column(vo), DEFAULT_VO),
        job_class=classes_of(run_s, interactive_below_s),
        machine_names=machine_names,
        machines=specs,
        start=start_in(table.header, path),
        skipped=dict(skipped),
        notes=notes,
    )


# -- which lines are jobs -----------------------------------------------------------------------


def _jobs_that_ran(table: SwfTable, skipped: Counter[str]) -> SwfTable:
    numbers = table.column("job number")
    part = np.isin(table.column("status"), _PARTS)
    part &= np.isin(numbers, numbers[~part])
    never = ~part & (table.column("run time") <= 0)
    nowhere = ~part & ~never & (table.processors() <= 0)
    for mask, reason in (
        (part, "part of another line's job"),
        (never, "run time <= 0"),
        (nowhere, "processors <= 0"),
    ):
        if mask.any():
            skipped[reason] += int(mask.sum())
    return table.only(~(part | never | nowhere))


def _out_of_order(table: SwfTable) -> tuple[str, ...]:
    back = np.flatnonzero(np.diff(table.column("submit time")) < 0)
    if not back.size:
        return ()
    line = table.lines[back[0] + 1]
    note = f"{back.size} submissions come before that of the line above, the first in line {line}: "
    return (note + "jobs are sorted by submission, those of equal time stay as in the file",)


# -- what columns mean --------------------------------------------------------------------------


def _known(values: Floats, above: float) -> Floats:
    """The values, nan for those not above `above`."""
    return np.where(values > above, values, np.nan)


def _names(values: Floats, missing: str) -> list[str]:
    """Numbers as names; `missing` for those below 0."""
    distinct, place = np.unique(values, return_inverse=True)
    names = [missing if value < 0 else f"{value:.15g}" for value in distinct.tolist()]
    return [names[number] for number in place.tolist()]
