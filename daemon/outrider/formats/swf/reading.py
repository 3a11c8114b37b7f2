"""Reader of Standard Workload Format: how the 18 columns of a file become a workload.

- **Processors** of a job are those allocated; where these are missing (-1), those requested.
- A job is **left out** if its run time or its processors are 0 or less, and counted by reason.
  So are partial executions (status 2 to 4) if the log also has the job as a whole.
- Its **class** is ``interactive`` or ``batch`` by a rule of `outrider.formats.job_classes`, from
  what its user declared: request, queue, partition or name. The true run time gives no class,
  unless a paper's proxy requests it by name (`ByTruth`).
- Its **VO** is its group, or another column; VOs and users are named by the log's numbers. A job
  without one belongs to ``all``.
- **Machines**: as many as the header's MaxProcs, with one CPU each; or, if any job uses several,
  one machine with all CPUs, because logs seldom record which processors share a node.
- **Times** are seconds from the log's zero, which UnixStartTime and TimeZoneString of the header
  place on the clock. The first job may come long after it.
"""

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.formats.campus.campus import LATEST_S
from outrider.formats.job_classes import (
    ByTruth,
    ClassRule,
    DeclaredColumns,
    as_classes,
    default_rule,
)
from outrider.formats.swf.table import MISSING, SwfTable, read_table
from outrider.formats.workload import (
    DEFAULT_VO,
    EPOCH,
    Floats,
    Workload,
    one_cpu_machines,
    one_pool,
)
from outrider.model.errors import ConfigurationError, TraceError, nearest
from outrider.model.localtime import time_zone

__all__ = ["VO_COLUMNS", "read_swf"]
VO_COLUMNS: Final = ("group", "user", "queue", "partition")
"""Columns that can be used as a job's VO."""
MAX_MACHINES: Final = 1_000_000
"""Maximum number of one-CPU machines; more means a damaged header."""
_PARTS: Final = (2, 3, 4)


def read_swf(
    path: Path,
    *,
    machines: int | None = None,
    class_by: ClassRule | None = None,
    vo: str = "group",
    group_vos_below: float = 0.0,
    skip_bad: bool = False,
) -> Workload:
    """Read a Standard Workload Format file, ``.swf`` or ``.swf.gz``.

    Args:
        path: the file.
        machines: one-CPU machines, or CPUs of the pool; None: the header's MaxProcs.
        class_by: what makes a job interactive; None: `job_classes.default_rule`.
        vo: the column to use as a job's VO, one of `VO_COLUMNS`.
        group_vos_below: VOs that request less than this share of all CPU-seconds are merged into
            `OTHER`.
        skip_bad: leave out damaged lines and count them, instead of refusing the first.

    Returns:
        The workload, jobs sorted by submission and, at equal times, in file order. Estimates are
        what users requested until `estimates.estimated` replaces them.

    Raises:
        TraceError: names file, line, column, value and what is expected.
        ConfigurationError: `vo` is none of `VO_COLUMNS`, or `class_by` names a queue, a
            partition or users that the file has not.
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
    classes, class_source = _classes(table, class_by, path)
    run_s, cpus = table.column("run time").copy(), table.processors().astype(np.int64)
    parallel = bool((cpus > 1).any())
    if not parallel and cpus_n > MAX_MACHINES:
        raise TraceError(
            f"{path}: {cpus_n} machines, by --machines, or else MaxProcs in the header"
            f"; expected at most {MAX_MACHINES}"
        )
    machine_names, specs = one_pool(cpus_n) if parallel else one_cpu_machines(cpus_n)
    return Workload(
        name=path.name,
        job_names=_names(table.column("job number"), ""),
        submit_s=table.column("submit time").copy(),
        run_s=run_s,
        cpus=cpus,
        requested_s=_requested_s(table),
        wait_s=_known(table.column("wait time"), above=MISSING),
        estimate_s=_requested_s(table),
        user=_names(table.column("user"), ""),
        vo=_vos(table, vo, group_vos_below),
        vo_column=vo,
        group_vos_below=group_vos_below,
        job_class=classes,
        class_source=class_source,
        estimate_source="requested",
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


def _classes(table: SwfTable, class_by: ClassRule | None, path: Path) -> tuple[list[str], str]:
    """Return the classes (jobs,), and where they come from. Raises `ConfigurationError`."""
    declared = DeclaredColumns(
        requested_s=_requested_s(table),
        queue=_names(table.column("queue"), ""),
        partition=_names(table.column("partition"), ""),
        user=_names(table.column("user"), ""),
        queue_names=table.queues,
        partition_names=table.partitions,
    )
    rule = default_rule(declared) if class_by is None else class_by
    if isinstance(rule, ByTruth):  # a paper's proxy: the one rule that uses run times
        return as_classes(rule.interactive_by_run_time(table.column("run time"))), rule.source
    try:
        return as_classes(rule.interactive(declared)), rule.source
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _vos(table: SwfTable, column: str, group_below: float) -> list[str]:
    """Return the VOs (jobs,), the small ones grouped."""
    vo = _names(table.column(column), DEFAULT_VO)
    if not group_below:
        return vo
    return grouped(vo, asked_work(_requested_s(table), table.processors()), group_below)


def _requested_s(table: SwfTable) -> Floats:
    return _known(table.column("requested time"), above=0.0)


def _known(values: Floats, above: float) -> Floats:
    """Return the values, nan for those not above `above`."""
    return np.where(values > above, values, np.nan)


def _names(values: Floats, missing: str) -> list[str]:
    """Return numbers as names; `missing` for those below 0."""
    distinct, place = np.unique(values, return_inverse=True)
    names = [missing if value < 0 else f"{value:.15g}" for value in distinct.tolist()]
    return [names[number] for number in place.tolist()]


# -- faults ----------------------------------------------------------------------------------------
# Checks for impossible jobs in a Standard Workload Format file: refuse, or leave out and count.

_CPUS: Final = "allocated processors"
_LATEST: Final = f"at most {LATEST_S:.0e}"


class _Fault(NamedTuple):
    """Fault and the mask of the jobs that have it."""

    where: NDArray[np.bool_]
    reason: str
    column: str
    right: str


def without_faults(
    path: Path, table: SwfTable, cpus_n: int, skipped: Counter[str] | None
) -> SwfTable:
    """Return the table without impossible jobs.

    Args:
        path: named in errors.
        table: jobs that ran.
        cpus_n: CPUs of the site.
        skipped: None to refuse the first impossible job; otherwise they are left out and counted
            here, each by its first fault.

    Raises:
        TraceError: names line, column, value and what is expected.
    """
    faults = [fault for fault in _faults(table, cpus_n) if fault.where.any()]
    if not faults:
        return table
    if skipped is None:
        fault = min(faults, key=lambda fault: int(fault.where.argmax()))
        row = int(fault.where.argmax())
        raise TraceError(
            f'{path}: line {table.lines[row]}, column "{fault.column}": {fault.reason}: '
            f'"{_value(table, fault.column)[row]:.15g}"; expected {fault.right}'
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
               f"at most {cpus_n}, by --machines, or else MaxProcs in the header"),
    ]  # fmt: skip


# -- header ----------------------------------------------------------------------------------------
# Machine size and clock from the header of a Standard Workload Format file.


def processors_in(header: Mapping[str, str], path: Path) -> int:
    """Return MaxProcs: the number of processors of the machine.

    Raises:
        TraceError: the field is missing or not a number.
    """
    digits = header.get("MaxProcs", "").split()
    if not digits:
        nodes = header.get("MaxNodes", "").split()
        known = f" (its MaxNodes says {nodes[0]} nodes)" if nodes else ""
        raise TraceError(f"{path}: the header has no MaxProcs{known}; expected --machines N")
    if not digits[0].isdecimal() or int(digits[0]) < 1:
        raise TraceError(
            f'{path}: header field MaxProcs: "{header["MaxProcs"]}"; expected a number of '
            "processors, at least 1, or --machines N"
        )
    return int(digits[0])


def start_in(header: Mapping[str, str], path: Path) -> dt.datetime:
    """Return the local wall clock at second 0 of the log; 1970 without UnixStartTime.

    The zone is TimeZoneString; if that is missing or unknown to this system, TimeZone (seconds
    east of Greenwich); otherwise UTC.

    Raises:
        TraceError: UnixStartTime is not a time.
    """
    text = header.get("UnixStartTime", "0")
    try:
        zero = dt.datetime.fromtimestamp(float(text.split()[0]), dt.UTC)
    except (ValueError, IndexError, OverflowError, OSError) as error:
        raise TraceError(
            f'{path}: header field UnixStartTime: "{text}"; expected seconds since 1970'
        ) from error
    if zero <= EPOCH.replace(tzinfo=dt.UTC):
        return EPOCH
    return zero.astimezone(_zone(header)).replace(tzinfo=None)


def _zone(header: Mapping[str, str]) -> dt.tzinfo:
    try:
        return time_zone(header["TimeZoneString"].split()[0])
    except (KeyError, IndexError, ConfigurationError):
        pass
    try:
        return dt.timezone(dt.timedelta(seconds=float(header["TimeZone"].split()[0])))
    except (KeyError, ValueError, IndexError, OverflowError):
        return dt.UTC


# -- vo groups -------------------------------------------------------------------------------------
# Grouping of small VOs into one, so that fairness over a hundred of them is meaningful.

OTHER: Final = "other"
"""VO that replaces all those below the share."""


def grouped(vo: list[str], asked_cpu_s: Floats, below_ratio: float) -> list[str]:
    """Return the VOs, with those below a share of all requested work merged into one.

    Args:
        vo: (jobs,) names.
        asked_cpu_s: (jobs,) CPU-seconds that users requested (`asked_work`). The CPU-seconds used
            would reveal to policies, by the name of the VO, what no one could know in advance.
        below_ratio: VOs with strictly less of the sum become `OTHER`; 0: none do.

    >>> grouped(["a", "b", "c"], np.array([8.0, 1.0, 1.0]), 0.2)
    ['a', 'other', 'other']
    """
    names, of_job = np.unique(np.array(vo, dtype=object).astype(str), return_inverse=True)
    asked = np.bincount(of_job, weights=asked_cpu_s, minlength=len(names))
    small = set(names[asked < below_ratio * asked.sum()].tolist())
    return [OTHER if name in small else name for name in vo]


def asked_work(requested_s: Floats, cpus: Floats) -> Floats:
    """Return the requested CPU-seconds (jobs,); a job without a request counts as the mean.

    Args:
        requested_s: (jobs,) seconds; nan: nothing was requested.
        cpus: (jobs,) CPUs.
    """
    known = ~np.isnan(requested_s)
    typical_s = float(requested_s[known].mean()) if known.any() else 1.0
    work: Floats = np.where(known, requested_s, typical_s) * cpus
    return work
