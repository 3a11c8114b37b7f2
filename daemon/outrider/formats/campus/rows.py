"""Tables of a campus: their columns and the rules for valid rows.

Each rule is written twice: for whole columns, for speed, and for one row, to name its fault.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan
from typing import Any, Final

import numpy as np

from outrider.formats.campus.campus import LATEST_S, ONLY_SEPARATOR, Amounts, Campus, Floats, Ints
from outrider.formats.campus.tables import Column, Columns, Fault, Row, TableKind
from outrider.model.errors import nearest
from outrider.model.machines import ClusterSpec

# -- placing ---------------------------------------------------------------------------------------
# Rules for the optional columns: CPUs, memory, GPUs, and the clusters where a job may run.

CPUS: Final = "cpus"
ONLY_NAME: Final = "only"
RESOURCE_COLUMNS: Final = ("memory_mib", "gpus")
MAX_CPUS: Final = 1e6
MAX_AMOUNT: Final = 1e12
"""Maximum of MiB or GPUs; more is an error."""


def amounts_are_valid(columns: Columns) -> bool:
    """Return whether CPUs are whole numbers from 1, and memory and GPUs are not below 0."""
    cpus = columns.get(CPUS)
    if cpus is not None and not lies_within(cpus, MAX_CPUS):
        return False
    if cpus is not None and bool(((cpus < 1) | (cpus % 1 > 0)).any()):
        return False
    return all(
        lies_within(columns[name], MAX_AMOUNT) for name in RESOURCE_COLUMNS if name in columns
    )


def fault_of_amounts(row: Row) -> Fault | None:
    """Return the fault of one row by the rules of `amounts_are_valid`, or None."""
    names = [name for name in RESOURCE_COLUMNS if name in row]
    if CPUS in row:
        if fault := beyond(row, [CPUS], MAX_CPUS, "CPUs"):
            return fault
        if row[CPUS] < 1 or row[CPUS] % 1 > 0:
            return Fault("no number of CPUs", CPUS, "a whole number from 1, or nothing for 1")
    return beyond(row, names, MAX_AMOUNT, "MiB or GPUs")


class Places:
    """Rules for where jobs may run, and whether they are too wide for it.

    Args:
        widest: most CPUs of any machine, by cluster; 0 for a cluster without machines.
    """

    def __init__(self, widest: Mapping[str, int]) -> None:
        self._widest = widest
        self._widest_of_all = max(widest.values(), default=0)

    def are_valid(self, columns: Columns) -> bool:
        """Return whether all jobs name known clusters that have a wide enough machine."""
        cpus, only = columns.get(CPUS), columns.get(ONLY_NAME)
        if only is None:
            return cpus is None or not self._too_wide(float(np.nanmax(cpus, initial=1)), "")
        if self._unknown_in(set(only)) is not None:
            return False
        if cpus is None:
            return True
        most: dict[str, float] = {}
        for names, asked in zip(only, cpus.tolist(), strict=True):
            most[names] = max(most.get(names, 1.0), asked)  # an empty one is nan: at most 1
        return not any(self._too_wide(asked, names) for names, asked in most.items())

    def fault_of(self, row: Row) -> Fault | None:
        """Return the fault of one row by the rules of `are_valid`, or None."""
        only = row.get(ONLY_NAME, "")
        unknown = self._unknown_in({only})
        if unknown is not None:
            near = nearest(unknown, self._widest)
            return Fault(
                "unknown cluster", ONLY_NAME,
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
        """Return whether a job is too wide; where there is no machine at all, none is."""
        return asked > (self._most(only) or asked)


# -- rows ------------------------------------------------------------------------------------------

MACHINES: Final = "machines.csv"
OWNERS: Final = "owners.csv"
JOBS: Final = "jobs.csv"
_SECONDS: Final = "seconds since the start of the trace (no Unix time)"
WATTS: Final = ("active_w", "idle_w", "sleep_w")
MAX_W: Final = 1e6
"""Maximum watts; no desktop draws a megawatt."""
MACHINE_COLUMNS: Final = (
    Column("machine"),
    Column("cluster"),
    Column("active_w", number=True, empty="unknown"),
    Column("idle_w", number=True, empty="unknown"),
    Column("sleep_w", number=True, empty="unknown"),
)
MACHINE_AMOUNTS: Final = (
    Column("cpus", number=True, empty="1"),
    Column("memory_mib", number=True, empty="not declared"),
    Column("gpus", number=True, empty="not declared"),
)
OWNER_COLUMNS: Final = (
    Column("machine"),
    Column("login_s", number=True),
    Column("logout_s", number=True),
)
JOB_COLUMNS: Final = (
    Column("job"),
    Column("submit_s", number=True),
    Column("run_s", number=True, empty="never"),
    Column("kill_s", number=True, empty="never"),
    Column("user"),
    Column("vo"),
)
JOB_AMOUNTS: Final = (
    Column("cpus", number=True, empty="1"),
    Column("memory_mib", number=True, empty="none"),
    Column("gpus", number=True, empty="none"),
)
ONLY: Final = Column(ONLY_NAME)
ESTIMATE: Final = Column("estimate_s", number=True, empty="none")


def machine_table() -> TableKind:
    """Return the rules of ``machines.csv``: unique names, each with a cluster and watts."""

    def is_valid(columns: Columns) -> bool:
        names = columns["machine"]
        return (
            len(set(names)) == len(names)
            and all(names)
            and all(columns["cluster"])
            and all(lies_within(columns[name], MAX_W) for name in WATTS)
            and amounts_are_valid(columns)
        )

    def new_check() -> Callable[[Row], Fault | None]:
        seen: set[str] = set()

        def check(row: Row) -> Fault | None:
            if fault := _fault_of_name(row, "machine", seen):
                return fault
            if not row["cluster"]:
                return Fault("empty name", "cluster", "the name of the machine's cluster")
            if fault := beyond(row, WATTS, MAX_W, "watts") or fault_of_amounts(row):
                return fault
            seen.add(row["machine"])
            return None

        return check

    return TableKind(MACHINES, MACHINE_COLUMNS, is_valid, new_check, MACHINE_AMOUNTS)


def owner_table(index: Mapping[str, int]) -> TableKind:
    """Return the rules of ``owners.csv``: sessions of machines in `index`, in order."""

    def is_valid(columns: Columns) -> bool:
        return (
            lies_within(columns["login_s"], LATEST_S)
            and lies_within(columns["logout_s"], LATEST_S)
            and bool((columns["logout_s"] >= columns["login_s"]).all())  # also refuses a nan
            and index.keys() >= set(columns["machine"])
        )

    def check(row: Row) -> Fault | None:
        if row["machine"] not in index:
            near = nearest(row["machine"], index) if len(index) < 20_000 else "see machines.csv"
            return Fault("unknown machine", "machine", f"a machine of {MACHINES}; {near}")
        if fault := beyond(row, ("login_s", "logout_s"), LATEST_S, _SECONDS):
            return fault
        if row["logout_s"] < row["login_s"]:
            return Fault(
                "log-out before log-in", "logout_s", f"{row['login_s']:.15g} (its login_s) or later"
            )
        return None

    return TableKind(OWNERS, OWNER_COLUMNS, is_valid, lambda: check)


def job_table(widest: Mapping[str, int]) -> TableKind:
    """Return the rules of ``jobs.csv``: names, times, and no job wider than its machines.

    Args:
        widest: most CPUs of any machine, by cluster; 0 for a cluster without machines.
    """
    places = Places(widest)

    def is_valid(columns: Columns) -> bool:
        names, submit_s, kill_s = columns["job"], columns["submit_s"], columns["kill_s"]
        return (
            len(set(names)) == len(names)
            and all(names)
            and lies_within(submit_s, LATEST_S)
            and not bool(np.isnan(submit_s).any())  # a "nan" that was written out
            and lies_within(columns["run_s"], LATEST_S)
            and lies_within(kill_s, LATEST_S)
            and not bool((kill_s < submit_s).any())
            and (ESTIMATE.name not in columns or lies_within(columns[ESTIMATE.name], LATEST_S))
            and amounts_are_valid(columns)
            and places.are_valid(columns)
        )

    def new_check() -> Callable[[Row], Fault | None]:
        seen: set[str] = set()

        def check(row: Row) -> Fault | None:
            if fault := _fault_of_name(row, "job", seen):
                return fault
            times = [n for n in ("submit_s", "run_s", "kill_s", ESTIMATE.name) if n in row]
            if fault := beyond(row, times, LATEST_S, _SECONDS):
                return fault
            if row["kill_s"] < row["submit_s"]:
                return Fault(
                    "killed before submitted", "kill_s",
                    f"{row['submit_s']:.15g} (its submit_s) or later, or nothing for never",
                )  # fmt: skip
            if fault := fault_of_amounts(row) or places.fault_of(row):
                return fault
            seen.add(row["job"])
            return None

        return check

    return TableKind(JOBS, JOB_COLUMNS, is_valid, new_check, (*JOB_AMOUNTS, ONLY, ESTIMATE))


def _fault_of_name(row: Row, column: str, seen: set[str]) -> Fault | None:
    if not row[column]:
        return Fault("empty name", column, f"a name that no other {column} has")
    if row[column] in seen:
        return Fault(f"duplicate {column}", column, f"a name that no {column} above has")
    return None


# -- ranges ----------------------------------------------------------------------------------------
# Checks that numbers lie in a range: for whole columns, and for one row to name its fault.


def lies_within(values: Floats, most: float) -> bool:
    """Return whether all values are from 0 to `most`, or nan."""
    return not bool(((values < 0) | (values > most)).any())


def beyond(row: Row, columns: Sequence[str], most: float, unit: str) -> Fault | None:
    """Return the fault of the first column whose value is not from 0 to `most`; nan is valid."""
    for column in columns:
        if row[column] < 0:
            return Fault("negative", column, "0 or more")
        if row[column] > most:
            return Fault("too large", column, f"{unit}, at most {most:.0e}")
    return None


# -- optional columns ------------------------------------------------------------------------------
# Optional columns of a campus, as they are read and as they are written.
#
# A column without information is the same as none: it is neither kept nor written.

Written = tuple[Column, Sequence[Any]]
"""Column, and its values as they are written."""


def amounts_of(columns: Columns, rows_n: int) -> Amounts | None:
    """Return CPUs, memory and GPUs of machines or jobs; None if nothing is declared."""
    missing = np.full(rows_n, np.nan)
    cpus, memory_mib, gpus = (columns.get(column.name, missing) for column in MACHINE_AMOUNTS)
    amounts = Amounts(np.nan_to_num(cpus, nan=1.0).astype(np.int32), memory_mib, gpus)
    return None if amounts.is_plain else amounts


def widest_by_cluster(
    clusters: Sequence[ClusterSpec], machine_cluster: Ints, capacities: Amounts | None
) -> dict[str, int]:
    """Return the most CPUs of any machine, by cluster; 0 for a cluster without machines."""
    most = np.zeros(len(clusters), dtype=np.int32)
    np.maximum.at(most, machine_cluster, 1 if capacities is None else capacities.cpus)
    return dict(zip((spec.name for spec in clusters), most.tolist(), strict=True))


def only_of(jobs: Columns, clusters: Iterable[str], order: Any) -> list[str] | None:
    """Return the column ``only``, equal sets spelled the same; None if it has no information."""
    given: list[str] = jobs.get(ONLY.name, [])
    if not any(given):
        return None
    spelled = {text: only_text(text.split(ONLY_SEPARATOR), clusters) for text in set(given) if text}
    return reordered([spelled.get(text, "") for text in given], order)


def only_text(names: Iterable[str], clusters: Iterable[str]) -> str:
    """Return clusters as a value of the column ``only``, in the order of `clusters`."""
    wanted = set(names)
    return ONLY_SEPARATOR.join(name for name in clusters if name in wanted)


def estimates_of(jobs: Columns, order: Any) -> Floats | None:
    """Return the column ``estimate_s``; None if it has no information."""
    given: Floats | None = jobs.get(ESTIMATE.name)
    return None if given is None or bool(np.isnan(given).all()) else given[order]


def written_amounts(amounts: Amounts | None, columns: Sequence[Column]) -> list[Written]:
    """Return the columns of CPUs, memory and GPUs that contain information."""
    if amounts is None:
        return []
    cpus, *resources = columns
    written: list[Written] = [(cpus, amounts.cpus.tolist())] if amounts.is_wide else []
    for column, values in zip(resources, (amounts.memory_mib, amounts.gpus), strict=True):
        if not bool(np.isnan(values).all()):
            written.append((column, with_gaps(values)))
    return written


def written_requests(campus: Campus) -> list[Written]:
    """Return the optional columns of ``jobs.csv`` that contain information."""
    written = written_amounts(campus.requests, JOB_AMOUNTS)
    if campus.only is not None:
        written.append((ONLY, campus.only))
    if campus.estimate_s is not None:
        written.append((ESTIMATE, with_gaps(campus.estimate_s)))
    return written


def with_gaps(values: Floats) -> list[float | None]:
    """Return values as they are written: None for nan."""
    return [None if isnan(value) else value for value in values.tolist()]


def reordered(names: list[str], order: Any) -> list[str]:
    """Return names in an order: an index of them, or a full slice."""
    return names if isinstance(order, slice) else [names[place] for place in order]
