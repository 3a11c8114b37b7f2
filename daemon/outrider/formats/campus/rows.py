"""The tables of a campus: their columns and the rules for valid rows.

Each rule is written twice: for whole columns, for speed, and for one row, to name its fault.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from outrider.formats.campus.campus import LATEST_S
from outrider.formats.campus.placing import Places, amounts_are_valid, fault_of_amounts
from outrider.formats.campus.ranges import beyond, lies_within
from outrider.formats.campus.tables import Column, Columns, Fault, Row, TableKind
from outrider.model.errors import nearest

MACHINES: Final = "machines.csv"
OWNERS: Final = "owners.csv"
JOBS: Final = "jobs.csv"

_SECONDS: Final = "seconds since the start of the trace (no Unix time)"

WATTS: Final = ("active_w", "idle_w", "sleep_w")
MOST_W: Final = 1e6
"""No desktop draws a megawatt; a larger value is an error."""

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
ONLY: Final = Column("only")
ESTIMATE: Final = Column("estimate_s", number=True, empty="none")


def machine_table() -> TableKind:
    """``machines.csv``: unique names, each with a cluster, watts and what it may declare."""

    def is_valid(columns: Columns) -> bool:
        names = columns["machine"]
        return (
            len(set(names)) == len(names)
            and all(names)
            and all(columns["cluster"])
            and all(lies_within(columns[name], MOST_W) for name in WATTS)
            and amounts_are_valid(columns)
        )

    def new_check() -> Callable[[Row], Fault | None]:
        seen: set[str] = set()

        def check(row: Row) -> Fault | None:
            if fault := _fault_of_name(row, "machine", seen):
                return fault
            if not row["cluster"]:
                return Fault("empty name", "cluster", "the name of the machine's cluster")
            if fault := beyond(row, WATTS, MOST_W, "watts") or fault_of_amounts(row):
                return fault
            seen.add(row["machine"])
            return None

        return check

    return TableKind(MACHINES, MACHINE_COLUMNS, is_valid, new_check, MACHINE_AMOUNTS)


def owner_table(index: Mapping[str, int]) -> TableKind:
    """``owners.csv``: sessions of machines in `index`, log-out not before log-in."""

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
    """``jobs.csv``: unique names; not killed before submission; no wider than where it may run.

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
