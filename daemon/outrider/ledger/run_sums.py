"""Runs of a journal summed up in bins of time, by SQLite itself: no run becomes an object here."""

# ruff: noqa: S608 - words of our own; values are bound.

import time
from collections.abc import Callable
from sqlite3 import Connection
from typing import Final, NamedTuple

MOST_RUNS: Final = 500_000
"""Of the newest runs that are looked at."""
_LOOK_AT_CLOCK_EVERY: Final = 100_000
"""Steps of SQLite's machine: some milliseconds."""

_FIRST: Final = "SELECT id, end_s FROM runs WHERE id > :before ORDER BY id LIMIT 1"
_TAKEN: Final = "FROM runs AS r WHERE id >= :first AND end_s BETWEEN :begin AND :until"
_BIN: Final = "CASE WHEN {at} < :begin THEN -1 ELSE CAST(({at} - :begin) / :step AS INT) END"
_AT: Final = f"SELECT {_BIN} AS bin, count(*), sum({{at}} - :begin) {_TAKEN} GROUP BY bin"
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


class AtBins(NamedTuple):
    """Moments of one kind in one bin.

    Attributes:
        bin: its number; -1: before the first bin.
        n: how many.
        sum_s: of their seconds since the first bin begins.
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
        kept_from_s: when the oldest run ended that was looked at; None: there is no run.
    """

    starts: list[AtBins]
    ends: list[AtBins]
    wait_starts: list[AtBins]
    wait_ends: list[AtBins]
    kept_from_s: float | None


def sum_up(
    connection: Connection, begin_s: float, step_s: float, until_s: float, within_s: float
) -> RunSums:
    """Sum up the newest runs, at most `MOST_RUNS`, that ended from `begin_s` to `until_s`.

    Args:
        connection: to a journal that has the table and its index.
        begin_s: when the first bin begins.
        step_s: length of a bin, seconds.
        until_s: when the last bin ends.
        within_s: seconds this may take.

    Raises:
        sqlite3.Error: it cannot be read, or not in that time (``interrupted``).
    """
    deadline_s = time.monotonic() + within_s
    connection.set_progress_handler(_later_than(deadline_s), _LOOK_AT_CLOCK_EVERY)
    try:
        (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM runs").fetchone()
        first = connection.execute(_FIRST, {"before": last - MOST_RUNS}).fetchone()
        values = {
            "first": 0 if first is None else first[0],
            "begin": begin_s, "step": step_s, "until": until_s,
        }  # fmt: skip

        def moments(at: str) -> list[AtBins]:
            return [AtBins(*row) for row in connection.execute(_AT.format(at=at), values)]

        begun: dict[int, AtBins] = {}
        ended: dict[int, AtBins] = {}
        for begun_bin, ended_bin, n, begun_sum_s, ended_sum_s in connection.execute(_WAITS, values):
            _add(begun, begun_bin, n, begun_sum_s)
            _add(ended, ended_bin, n, ended_sum_s)
        return RunSums(
            moments("start_s"),
            moments("end_s"),
            [begun[bin_] for bin_ in sorted(begun)],
            [ended[bin_] for bin_ in sorted(ended)],
            None if first is None else first[1],
        )
    finally:
        connection.set_progress_handler(None, 0)


def _add(found: dict[int, AtBins], bin_: int, n: int, sum_s: float) -> None:
    before = found.get(bin_, AtBins(bin_, 0, 0.0))
    found[bin_] = AtBins(bin_, before.n + n, before.sum_s + sum_s)


def last_end_s(connection: Connection, job: str) -> float | None:
    """When the last run of a job ended that is kept, or None."""
    found: tuple[float | None] = connection.execute(_LAST_END, {"job": job}).fetchone()
    return found[0]


def _later_than(deadline_s: float) -> Callable[[], int]:
    return lambda: int(time.monotonic() > deadline_s)
