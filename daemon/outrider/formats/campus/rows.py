"""The tables of a campus: their columns and the rules for valid rows.

Each rule is written twice: for whole columns, for speed, and for one row, to name its fault.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from outrider.formats.campus.campus import LATEST_S, Floats
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
    Column("active_w", number=True, may_be_empty=True),
    Column("idle_w", number=True, may_be_empty=True),
    Column("sleep_w", number=True, may_be_empty=True),
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
    """``machines.csv``: unique names, each with a cluster and watts."""

    def is_valid(columns: Columns) -> bool:
        names = columns["machine"]
        return (
            len(set(names)) == len(names)
            and all(names)
            and all(columns["cluster"])
            and all(_lies_within(columns[name], MOST_W) for name in WATTS)
        )

    def new_check() -> Callable[[Row], Fault | None]:
        seen: set[str] = set()

        def check(row: Row) -> Fault | None:
            if fault := _fault_of_name(row, "machine", seen):
                return fault
            if not row["cluster"]:
                return Fault("empty name", "cluster", "the name of the machine's cluster")
            if fault := _beyond(row, WATTS, MOST_W, "watts"):
                return fault
            seen.add(row["machine"])
            return None

        return check

    return TableKind(MACHINES, MACHINE_COLUMNS, is_valid, new_check)


def owner_table(index: Mapping[str, int]) -> TableKind:
    """``owners.csv``: sessions of machines in `index`, log-out not before log-in."""

    def is_valid(columns: Columns) -> bool:
        return (
            _lies_within(columns["login_s"], LATEST_S)
            and _lies_within(columns["logout_s"], LATEST_S)
            and bool((columns["logout_s"] >= columns["login_s"]).all())  # also refuses a nan
            and index.keys() >= set(columns["machine"])
        )

    def check(row: Row) -> Fault | None:
        if row["machine"] not in index:
            near = nearest(row["machine"], index) if len(index) < 20_000 else "see machines.csv"
            return Fault("unknown machine", "machine", f"a machine of {MACHINES}; {near}")
        if fault := _beyond(row, ("login_s", "logout_s"), LATEST_S, _SECONDS):
            return fault
        if row["logout_s"] < row["login_s"]:
            return Fault(
                "log-out before log-in", "logout_s", f"{row['login_s']:.15g} (its login_s) or later"
            )
        return None

    return TableKind(OWNERS, OWNER_COLUMNS, is_valid, lambda: check)


def job_table() -> TableKind:
    """``jobs.csv``: unique names; not killed before submission."""

    def is_valid(columns: Columns) -> bool:
        names, submit_s, kill_s = columns["job"], columns["submit_s"], columns["kill_s"]
        return (
            len(set(names)) == len(names)
            and all(names)
            and _lies_within(submit_s, LATEST_S)
            and not bool(np.isnan(submit_s).any())  # a "nan" that was written out
            and _lies_within(columns["run_s"], LATEST_S)
            and _lies_within(kill_s, LATEST_S)
            and not bool((kill_s < submit_s).any())
        )

    def new_check() -> Callable[[Row], Fault | None]:
        seen: set[str] = set()

        def check(row: Row) -> Fault | None:
            if fault := _fault_of_name(row, "job", seen):
                return fault
            if fault := _beyond(row, ("submit_s", "run_s", "kill_s"), LATEST_S, _SECONDS):
                return fault
            if row["kill_s"] < row["submit_s"]:
                return Fault(
                    "killed before submitted", "kill_s",
                    f"{row['submit_s']:.15g} (its submit_s) or later, or nothing for never",
                )  # fmt: skip
            seen.add(row["job"])
            return None

        return check

    return TableKind(JOBS, JOB_COLUMNS, is_valid, new_check)


def _lies_within(values: Floats, most: float) -> bool:
    """Whether all values are from 0 to `most`, or nan."""
    return not bool(((values < 0) | (values > most)).any())


def _fault_of_name(row: Row, column: str, seen: set[str]) -> Fault | None:
    if not row[column]:
        return Fault("empty name", column, f"a name that no other {column} has")
    if row[column] in seen:
        return Fault(f"duplicate {column}", column, f"a name that no {column} above has")
    return None


def _beyond(row: Row, columns: Sequence[str], most: float, unit: str) -> Fault | None:
    for column in columns:
        if row[column] < 0:
            return Fault("negative", column, "0 or more")
        if row[column] > most:
            return Fault("too large", column, f"{unit}, at most {most:.0e}")
    return None
