"""Sums of a journal's runs in bins of time, computed by SQLite without an object per run."""

# ruff: noqa: S608 - constants of ours; values are bound.

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from sqlite3 import Connection
from typing import Any, Final, NamedTuple

from outrider.journal.records import encode_json

MAX_RUNS: Final = 500_000
"""Number of the newest runs that are read at most."""
_LOOK_AT_CLOCK_EVERY: Final = 100_000
"""SQLite instructions between two looks at the clock: some milliseconds."""

_FIRST: Final = "SELECT id, end_s FROM runs WHERE id > :before ORDER BY id LIMIT 1"
_TAKEN: Final = "id >= :first AND end_s BETWEEN :begin AND :until"
_BIN: Final = "CASE WHEN {at} < :begin THEN -1 ELSE CAST(({at} - :begin) / :step AS INT) END"
_WATTS: Final = "coalesce(cpus * watts_each * run_s / nullif(end_s - start_s, 0.0), 0.0)"
"""Mean watts of a run from its start to its end: while suspended it drew nothing."""
_RUNS: Final = (
    "WITH table_w AS MATERIALIZED "
    "(SELECT key AS machine, value AS watts_each FROM json_each(:watts)) "
    "SELECT start_s - :begin AS start_s, end_s - :begin AS end_s, reason != '' AS is_lost, cpus, "
    f"cpus * run_s AS cpu_s, watts_each ISNULL AS is_unknown, {_WATTS} AS watts "
    f"FROM runs LEFT JOIN table_w USING (machine) WHERE {_TAKEN} LIMIT -1"
)
"""Runs in the period; the limit of -1 makes SQLite compute each column once per row."""
_OFFSET_BIN: Final = "CASE WHEN {at} < 0.0 THEN -1 ELSE CAST({at} / :step AS INT) END"
_SUMS: Final = (
    f"SELECT {_OFFSET_BIN.format(at='start_s')} AS begun, "
    f"{_OFFSET_BIN.format(at='end_s')} AS ended, is_lost, "
    "count(*), sum(start_s), sum(end_s), sum(cpus), sum(cpus * start_s), sum(cpus * end_s), "
    "sum(watts), sum(watts * start_s), sum(watts * end_s), "
    "sum(cpu_s), sum(iif(is_unknown, 0.0, cpu_s)) "
    f"FROM ({_RUNS}) GROUP BY begun, ended, is_lost"
)
_BEFORE: Final = "(SELECT max(end_s) FROM runs AS p WHERE p.job = r.job AND p.id < r.id)"
"""End of the same job's run before; the index ``runs_by_job`` finds it."""
_WAITED: Final = (
    f"(SELECT start_s, coalesce({_BEFORE}, submit_s) AS begun_s "
    f"FROM runs AS r WHERE {_TAKEN} LIMIT -1)"
)
"""Waits for runs; the limit of -1 makes SQLite search for the run before once per row."""
_WAITS: Final = (
    f"SELECT {_BIN.format(at='begun_s')} AS begun, {_BIN.format(at='start_s')} AS ended, "
    "count(*), sum(begun_s - :begin), sum(start_s - :begin) "
    f"FROM {_WAITED} WHERE begun_s NOTNULL GROUP BY begun, ended"
)
_LAST_END: Final = "SELECT max(end_s) FROM runs WHERE job = :job"
_FIRST_START: Final = "SELECT min(start_s) FROM runs WHERE id >= :first"
_IS_FIRST: Final = "SELECT NOT EXISTS (SELECT 1 FROM runs WHERE id < :first)"


COMPLETED: Final = "completed"
WASTED: Final = "thrown_away"
FATES: Final = (COMPLETED, WASTED)
"""Outcomes of a run that has ended."""


class AtBins(NamedTuple):
    """Count and sum of moments of one kind in one bin.

    Attributes:
        bin: its number; -1: before the first bin.
        n: their number, or the sum of their CPUs or watts.
        sum_s: sum of their seconds since the first bin begins, each times its CPUs or watts.
    """

    bin: int
    n: float
    sum_s: float


class RunSums(NamedTuple):
    """Sums of all runs that ended since a time, in bins.

    Attributes:
        starts: of runs.
        ends: of runs.
        wait_starts: when the jobs of these runs began to wait for them: at submission, or when
            the run before it ended. Waits with an unknown beginning are left out.
        wait_ends: of the same waits.
        cpu_starts: of CPUs, by the outcome of their runs (`FATES`).
        cpu_ends: of the same CPUs.
        watt_starts: of the watts of runs by the table, by outcome.
        watt_ends: of the same watts.
        cpu_s: CPU-seconds of work of the runs.
        cpu_s_with_watts: the part on machines whose watts are known.
        kept_from_s: when the oldest run that was read ended; None: there is no run.
    """

    starts: list[AtBins]
    ends: list[AtBins]
    wait_starts: list[AtBins]
    wait_ends: list[AtBins]
    cpu_starts: dict[str, list[AtBins]]
    cpu_ends: dict[str, list[AtBins]]
    watt_starts: dict[str, list[AtBins]]
    watt_ends: dict[str, list[AtBins]]
    cpu_s: float
    cpu_s_with_watts: float
    kept_from_s: float | None


class RunsReach(NamedTuple):
    """Period that the runs which are read cover.

    Attributes:
        is_all: no older run is kept.
        start_s: when the first of them started.
        end_s: when the oldest of them ended.
    """

    is_all: bool
    start_s: float
    end_s: float


def reach_of(connection: Connection, within_s: float) -> RunsReach | None:
    """Return how far back the newest `MAX_RUNS` runs go; None if there is none.

    Args:
        connection: to a journal that has the table.
        within_s: seconds this may take.

    Raises:
        sqlite3.Error: see `sum_up`.
    """
    with _within(connection, within_s):
        first = _first(connection)
        if first is None:
            return None
        number, end_s = first
        values = {"first": number}
        (is_all,) = connection.execute(_IS_FIRST, values).fetchone()
        (start_s,) = connection.execute(_FIRST_START, values).fetchone()
        return RunsReach(bool(is_all), start_s, end_s)


def sum_up(
    connection: Connection,
    begin_s: float,
    step_s: float,
    until_s: float,
    within_s: float,
    waits: bool,
    watts: Mapping[str, float],
) -> RunSums:
    """Sum up the newest runs, at most `MAX_RUNS`, that ended from `begin_s` to `until_s`.

    Args:
        connection: to a journal that has the table and its index.
        begin_s: when the first bin begins.
        step_s: length of a bin, seconds.
        until_s: when the last bin ends.
        within_s: seconds this may take.
        waits: whether waits are summed up, too; that needs the index ``runs_by_job``, and more
            time.
        watts: of one busy CPU, by machine; on other machines they are unknown, and count as 0.

    Raises:
        sqlite3.Error: it cannot be read, or not in that time (``interrupted``).
    """
    with _within(connection, within_s):
        first = _first(connection)
        values = {
            "first": 0 if first is None else first[0],
            "begin": begin_s, "step": step_s, "until": until_s, "watts": encode_json(dict(watts)),
        }  # fmt: skip
        runs = _runs(connection, values)
        begun: dict[int, AtBins] = {}
        ended: dict[int, AtBins] = {}
        for begun_bin, ended_bin, n, begun_sum_s, ended_sum_s in (
            connection.execute(_WAITS, values) if waits else ()
        ):
            _add(begun, begun_bin, n, begun_sum_s)
            _add(ended, ended_bin, n, ended_sum_s)
        first_end_s = None if first is None else first[1]
        return runs._replace(
            wait_starts=_in_order(begun), wait_ends=_in_order(ended), kept_from_s=first_end_s
        )


def _runs(connection: Connection, values: dict[str, Any]) -> RunSums:
    """Return the sums without the waits."""
    starts, ends = _ByFate(), _ByFate()
    cpu_starts, cpu_ends = _ByFate(), _ByFate()
    watt_starts, watt_ends = _ByFate(), _ByFate()
    all_s = known_s = 0.0
    for row in connection.execute(_SUMS, values):
        begun, ended, is_lost, n, start_s, end_s, cpus, cpu_start_s, cpu_end_s = row[:9]
        watts, watt_start_s, watt_end_s, cpu_s, cpu_s_with_watts = row[9:]
        fate = FATES[is_lost]
        starts.add(fate, begun, n, start_s)
        ends.add(fate, ended, n, end_s)
        cpu_starts.add(fate, begun, cpus, cpu_start_s)
        cpu_ends.add(fate, ended, cpus, cpu_end_s)
        watt_starts.add(fate, begun, watts, watt_start_s)
        watt_ends.add(fate, ended, watts, watt_end_s)
        all_s, known_s = all_s + cpu_s, known_s + cpu_s_with_watts
    return RunSums(
        starts.together(),
        ends.together(),
        [],
        [],
        cpu_starts.apart(),
        cpu_ends.apart(),
        watt_starts.apart(),
        watt_ends.apart(),
        all_s,
        known_s,
        None,
    )


class _ByFate:
    """Sums of moments by the outcome of their runs."""

    def __init__(self) -> None:
        self._found: dict[str, dict[int, AtBins]] = {fate: {} for fate in FATES}

    def add(self, fate: str, bin_: int, n: float, sum_s: float) -> None:
        _add(self._found[fate], bin_, n, sum_s)

    def apart(self) -> dict[str, list[AtBins]]:
        return {fate: _in_order(found) for fate, found in self._found.items()}

    def together(self) -> list[AtBins]:
        all_: dict[int, AtBins] = {}
        for found in self._found.values():
            for one in found.values():
                _add(all_, *one)
        return _in_order(all_)


def _first(connection: Connection) -> tuple[int, float] | None:
    """Return number and end of the oldest run that is read."""
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM runs").fetchone()
    found: tuple[int, float] | None
    found = connection.execute(_FIRST, {"before": last - MAX_RUNS}).fetchone()
    return found


def _add(found: dict[int, AtBins], bin_: int, n: float, sum_s: float) -> None:
    before = found.get(bin_, AtBins(bin_, 0, 0.0))
    found[bin_] = AtBins(bin_, before.n + n, before.sum_s + sum_s)


def _in_order(found: dict[int, AtBins]) -> list[AtBins]:
    return [found[bin_] for bin_ in sorted(found)]


def last_end_s(connection: Connection, job: str) -> float | None:
    """Return when the last stored run of a job ended, or None."""
    found: tuple[float | None] = connection.execute(_LAST_END, {"job": job}).fetchone()
    return found[0]


@contextmanager
def _within(connection: Connection, within_s: float) -> Iterator[None]:
    """Interrupt the query if it takes longer."""
    connection.set_progress_handler(_later_than(time.monotonic() + within_s), _LOOK_AT_CLOCK_EVERY)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def _later_than(deadline_s: float) -> Callable[[], int]:
    return lambda: int(time.monotonic() > deadline_s)
