"""Rows of the tables of a campus: their columns, and what makes a row right.

Each rule stands twice: over whole columns for speed, and for one row to name its fault.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from outrider.model.errors import nearest
from outrider.virtual.campus import Floats
from outrider.virtual.campus_table import Column, Columns, Fault, Row, TableKind

MACHINES: Final = "machines.csv"
OWNERS: Final = "owners.csv"
JOBS: Final = "jobs.csv"

MACHINE_COLUMNS: Final = (
    Column("machine"),
    Column("cluster"),
    Column("active_w", number=True),
    Column("idle_w", number=True),
    Column("sleep_w", number=True),
)
OWNER_COLUMNS: Final = (
    Column("machine"),
    Column("login_s", number=True),
    Column("logout_s", number=True),
)
JOB_COLUMNS: Final = (
    Column("job"),
    Column("submit_s", number=True),
    Column("run_s", number=True, may_be_empty=True),
    Column("kill_s", number=True, may_be_empty=True),
    Column("user"),
    Column("vo"),
)


def machine_table() -> TableKind:
    """``machines.csv``: each machine once, in a cluster, with watts."""

    def is_sound(columns: Columns) -> bool:
        names = columns["machine"]
        return (
            len(set(names)) == len(names)
            and all(names)
            and all(columns["cluster"])
            and all(_not_negative(columns[name]) for name in ("active_w", "idle_w", "sleep_w"))
        )

    def new_check() -> Callable[[Row], Fault | None]:
        seen: set[str] = set()

        def check(row: Row) -> Fault | None:
            if fault := _fault_of_name(row, "machine", seen):
                return fault
            if not row["cluster"]:
                return Fault("empty name", "cluster", "the name of the machine's cluster")
            if fault := _negative(row, "active_w", "idle_w", "sleep_w"):
                return fault
            seen.add(row["machine"])
            return None

        return check

    return TableKind(MACHINES, MACHINE_COLUMNS, is_sound, new_check)


def owner_table(index: Mapping[str, int]) -> TableKind:
    """``owners.csv``: sessions on machines of `index` that do not end before they begin."""

    def is_sound(columns: Columns) -> bool:
        return (
            _not_negative(columns["login_s"])
            and _not_negative(columns["logout_s"])
            and bool((columns["logout_s"] >= columns["login_s"]).all())
            and index.keys() >= set(columns["machine"])
        )

    def check(row: Row) -> Fault | None:
        if row["machine"] not in index:
            near = nearest(row["machine"], index) if len(index) < 20_000 else "see machines.csv"
            return Fault("unknown machine", "machine", f"a machine of {MACHINES}; {near}")
        if fault := _negative(row, "login_s", "logout_s"):
            return fault
        if row["logout_s"] < row["login_s"]:
            return Fault(
                "log-out before log-in", "logout_s", f"{row['login_s']:.15g} (its login_s) or later"
            )
        return None

    return TableKind(OWNERS, OWNER_COLUMNS, is_sound, lambda: check)


def job_table() -> TableKind:
    """``jobs.csv``: each job once; not killed before it is submitted."""

    def is_sound(columns: Columns) -> bool:
        names, submit_s, kill_s = columns["job"], columns["submit_s"], columns["kill_s"]
        return (
            len(set(names)) == len(names)
            and all(names)
            and _not_negative(submit_s)
            and not bool((columns["run_s"] < 0).any() or np.isinf(columns["run_s"]).any())
            and not bool((kill_s < submit_s).any() or np.isinf(kill_s).any())
        )

    def new_check() -> Callable[[Row], Fault | None]:
        seen: set[str] = set()

        def check(row: Row) -> Fault | None:
            if fault := _fault_of_name(row, "job", seen):
                return fault
            if fault := _negative(row, "submit_s", "run_s"):
                return fault
            if row["kill_s"] < row["submit_s"]:
                return Fault(
                    "killed before submitted", "kill_s",
                    f"{row['submit_s']:.15g} (its submit_s) or later, or nothing for never",
                )  # fmt: skip
            seen.add(row["job"])
            return None

        return check

    return TableKind(JOBS, JOB_COLUMNS, is_sound, new_check)


def _not_negative(values: Floats) -> bool:
    return bool(((values >= 0) & (values < np.inf)).all())


def _fault_of_name(row: Row, column: str, seen: set[str]) -> Fault | None:
    if not row[column]:
        return Fault("empty name", column, f"a name that no other {column} has")
    if row[column] in seen:
        return Fault(f"duplicate {column}", column, f"a name that no {column} above has")
    return None


def _negative(row: Row, *columns: str) -> Fault | None:
    for column in columns:
        if row[column] < 0:
            return Fault("negative", column, "0 or more")
    return None
