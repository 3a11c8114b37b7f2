"""Runs of a journal summed up in bins of time, by SQLite itself: no run becomes an object here."""

# ruff: noqa: S608 - words of our own; values are bound.

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from sqlite3 import Connection
from typing import Final, NamedTuple

MOST_RUNS: Final = 500_000
"""Of the newest runs that are looked at."""
_LOOK_AT_CLOCK_EVERY: Final = 100_000
"""Steps of SQLite's machine: some milliseconds."""

_FIRST: Final = "SELECT id, end_s FROM runs WHERE id > :before ORDER BY id LIMIT 1"
_TAKEN: Final = "FROM runs AS r WHERE id >= :first AND end_s BETWEEN :begin AND :until"
_BIN: Final = "CASE WHEN {at} < :begin THEN -1 ELSE CAST(({at} - :begin) / :step AS INT) END"
_AT: Final = (
    f"SELECT {_BIN} AS bin, reason != '' AS is_lost, count(*), sum({{at}} - :begin), sum(cpus), "
    f"sum(cpus * ({{at}} - :begin)) {_TAKEN} GROUP BY bin, is_lost"
)
_BEFORE: Final = "(SELECT max(end_s) FROM runs AS p WHERE p.job = r.job AND p.id < r.id)"
"""When the run before it ended, of the same job; the index ``runs_by_job`` finds it."""
_WAITED: Final = (
    f"(SELECT start_s, coalesce({_BEFORE}, submit_s) AS begun_s "
    "FROM runs AS r WHERE id >= :first AND end_s BETWEEN :begin AND :until LIMIT -1)"
)
"""With a limit that is none, so that SQLite looks for the run before once for each row."""
_WAITS: Final = (
    f"SELECT {_BIN.format(at='begun_s')} AS begun, {_BIN.format(at='start_s')} AS ended, "
    "count(*), sum(begun_s - :begin), sum(start_s - :begin) "
    f"FROM {_WAITED} WHERE begun_s NOTNULL GROUP BY begun, ended"
)
_LAST_END: Final = "SELECT max(end_s) FROM runs WHERE job = :job"
_FIRST_START: Final = "SELECT min(start_s) FROM runs WHERE id >= :first"
_IS_FIRST: Final = "SELECT NOT EXISTS (SELECT 1 FROM runs WHERE id < :first)"


COMPLETED: Final = "completed"
THROWN_AWAY: Final = "thrown_away"
FATES: Final = (COMPLETED, THROWN_AWAY)
"""What became of a run that has ended."""


class AtBins(NamedTuple):
    """Moments of one kind in one bin.

    Attributes:
        bin: its number; -1: before the first bin.
        n: how many, or of how many CPUs.
        sum_s: of their seconds since the first bin begins; each times its CPUs, where those count.
    """

    bin: int
    n: int
    sum_s: float


class RunSums(NamedTuple):
    """All runs that ended since a time, in bins.

    Attributes:
        starts: of runs.
        ends: of runs.
        wait_starts: when the jobs of these runs began to wait for them: at submission, or when
            the run before it ended. Waits whose begin is not known are left out.
        wait_ends: of the same waits.
        cpu_starts: of CPUs, by what became of their runs (`FATES`).
        cpu_ends: of the same CPUs.
        kept_from_s: when the oldest run ended that was looked at; None: there is no run.
    """

    starts: list[AtBins]
    ends: list[AtBins]
    wait_starts: list[AtBins]
    wait_ends: list[AtBins]
    cpu_starts: dict[str, list[AtBins]]
    cpu_ends: dict[str, list[AtBins]]
    kept_from_s: float | None


class RunsReach(NamedTuple):
    """How far back the runs go that are looked at.

    Attributes:
        is_all: no older run is kept.
        start_s: when the first of them started.
        end_s: when the oldest of them ended.
    """

    is_all: bool
    start_s: float
    end_s: float


def reach_of(connection: Connection, within_s: float) -> RunsReach | None:
    """How far back the newest runs go, at most `MOST_RUNS`; None: there is none.

    Args:
        connection: to a journal that has the table.
        within_s: seconds this may take.

    Raises:
        sqlite3.Error: as `sum_up`.
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
) -> RunSums:
    """Sum up the newest runs, at most `MOST_RUNS`, that ended from `begin_s` to `until_s`.

    Args:
        connection: to a journal that has the table and its index.
        begin_s: when the first bin begins.
        step_s: length of a bin, seconds.
        until_s: when the last bin ends.
        within_s: seconds this may take.
        waits: whether waits are summed up, too; it takes the index ``runs_by_job``, and longer.

    Raises:
        sqlite3.Error: it cannot be read, or not in that time (``interrupted``).
    """
    with _within(connection, within_s):
        first = _first(connection)
        values = {
            "first": 0 if first is None else first[0],
            "begin": begin_s, "step": step_s, "until": until_s,
        }  # fmt: skip
        starts, cpu_starts = _moments(connection, "start_s", values)
        ends, cpu_ends = _moments(connection, "end_s", values)
        begun: dict[int, AtBins] = {}
        ended: dict[int, AtBins] = {}
        for begun_bin, ended_bin, n, begun_sum_s, ended_sum_s in (
            connection.execute(_WAITS, values) if waits else ()
        ):
            _add(begun, begun_bin, n, begun_sum_s)
            _add(ended, ended_bin, n, ended_sum_s)
        return RunSums(
            starts,
            ends,
            _in_order(begun),
            _in_order(ended),
            cpu_starts,
            cpu_ends,
            None if first is None else first[1],
        )


def _moments(
    connection: Connection, at: str, values: dict[str, float]
) -> tuple[list[AtBins], dict[str, list[AtBins]]]:
    """All runs by one of their moments, and their CPUs by fate."""
    runs: dict[int, AtBins] = {}
    cpus: dict[str, list[AtBins]] = {fate: [] for fate in FATES}
    for bin_, is_lost, n, sum_s, n_cpus, cpu_sum_s in connection.execute(_AT.format(at=at), values):
        _add(runs, bin_, n, sum_s)
        cpus[FATES[is_lost]].append(AtBins(bin_, n_cpus, cpu_sum_s))
    return _in_order(runs), cpus


def _first(connection: Connection) -> tuple[int, float] | None:
    """Number and end of the oldest run that is looked at."""
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM runs").fetchone()
    found: tuple[int, float] | None
    found = connection.execute(_FIRST, {"before": last - MOST_RUNS}).fetchone()
    return found


def _add(found: dict[int, AtBins], bin_: int, n: int, sum_s: float) -> None:
    before = found.get(bin_, AtBins(bin_, 0, 0.0))
    found[bin_] = AtBins(bin_, before.n + n, before.sum_s + sum_s)


def _in_order(found: dict[int, AtBins]) -> list[AtBins]:
    return [found[bin_] for bin_ in sorted(found)]


def last_end_s(connection: Connection, job: str) -> float | None:
    """When the last run of a job ended that is kept, or None."""
    found: tuple[float | None] = connection.execute(_LAST_END, {"job": job}).fetchone()
    return found[0]


@contextmanager
def _within(connection: Connection, within_s: float) -> Iterator[None]:
    """What takes longer is interrupted."""
    connection.set_progress_handler(_later_than(time.monotonic() + within_s), _LOOK_AT_CLOCK_EVERY)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def _later_than(deadline_s: float) -> Callable[[], int]:
    return lambda: int(time.monotonic() > deadline_s)
