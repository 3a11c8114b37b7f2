"""Queries that read a journal."""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from sqlite3 import Connection
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from outrider.engine.ingest.set_aside import FIRST_S, LAST_S
from outrider.journal.checksums import row_crc
from outrider.journal.connection import naming_errors
from outrider.journal.job_lookup import ENDED_JOBS, JobEnd, about, find_jobs, last_end
from outrider.journal.records import (
    COMMAND_COLUMNS,
    DECISION_COLUMNS,
    INPUT_COLUMNS,
    OUTCOME_COLUMNS,
    RUN_COLUMNS,
    SET_ASIDE_COLUMNS,
    CommandRecord,
    OutcomeRecord,
    Row,
    RunRecord,
    SetAsideRecord,
    decision_from,
    decode_extra,
    decode_json,
    outcome_from,
)
from outrider.journal.run_sums import RunsReach, RunSums, last_end_s, reach_of, sum_up
from outrider.journal.schema import MACHINE_EVENTS
from outrider.model.decisions import DecisionRow
from outrider.model.errors import LedgerError
from outrider.model.events import KIND_NUMBERS, TICK, NamedEvent

# -- queries ---------------------------------------------------------------------------------------
# Access to a journal by SQL, common to all queries.

PAGE_ROWS: Final = 4096
"""Rows read together: a long read must not keep a transaction open, or the log would grow."""


class JournalQueries:
    """Base of the queries of a journal.

    Every method raises `LedgerError`, which names the file, if rows cannot be read.

    Args:
        path: of the file, for messages.
        connection: to it.
    """

    def __init__(self, path: Path, connection: Connection) -> None:
        self.path = path
        self._connection = connection

    def _has(self, name: str) -> bool:
        """Return whether a table or an index exists; journals of older versions lack some."""
        return bool(self._fetch("SELECT 1 FROM sqlite_master WHERE name = :name", {"name": name}))

    def _pages(
        self,
        table: str,
        columns: str,
        after: int,
        limit: int | None = None,
        where: str = "1",
        values: dict[str, Any] | None = None,
    ) -> Iterator[Row]:
        left = limit
        query = (
            f"SELECT {columns} FROM {table} WHERE seq > :after AND {where} "
            "ORDER BY seq LIMIT :limit"
        )
        while left is None or left > 0:
            wanted = PAGE_ROWS if left is None else min(PAGE_ROWS, left)
            rows = self._fetch(query, {**(values or {}), "after": after, "limit": wanted})
            yield from rows
            if len(rows) < wanted:
                return
            after = rows[-1][0]
            left = None if left is None else left - wanted

    def _fetch(self, query: str, values: dict[str, Any] | None = None) -> list[Row]:
        with naming_errors(self.path, "read the journal"):
            return self._connection.execute(query, values or {}).fetchall()


# -- run reading -----------------------------------------------------------------------------------
# Queries about runs: single ones, and sums of many.

_RUNS: Final = f"SELECT id, {RUN_COLUMNS} FROM runs WHERE id > :after ORDER BY id LIMIT :limit"
_RUNS_OF_JOB: Final = (
    f"SELECT {RUN_COLUMNS} FROM runs WHERE job = :job ORDER BY id DESC LIMIT :limit"
)
NO_WATTS: Final[Mapping[str, float]] = MappingProxyType({})
_RUNS_ON: Final = (
    f"SELECT {RUN_COLUMNS} FROM runs WHERE machine = :machine ORDER BY id DESC LIMIT :limit"
)
_EVENTS_OF: Final = (
    f"SELECT time_s, kind FROM inputs WHERE subject = :machine AND {MACHINE_EVENTS} "
    "ORDER BY seq DESC LIMIT :limit"
)


class RunReading(JournalQueries):
    """Queries about runs, machines' runs and how jobs left; errors as `JournalQueries`."""

    def runs(self, after: int = 0) -> Iterator[tuple[int, RunRecord]]:
        """Yield runs after a number, with their numbers, in the order in which they ended."""
        while rows := self._fetch(_RUNS, {"after": after, "limit": PAGE_ROWS}):
            for row in rows:
                yield row[0], RunRecord(*row[1:])
            after = rows[-1][0]

    def runs_of(self, job: str, limit: int) -> list[RunRecord]:
        """Return the last runs of a job, at most `limit`, the oldest first."""
        if not self._has("runs"):
            return []
        rows = self._fetch(_RUNS_OF_JOB, {"job": job, "limit": limit})
        return [RunRecord(*row) for row in reversed(rows)]

    def runs_on(self, machine: str, limit: int) -> list[RunRecord] | None:
        """Return the last ended runs on a machine, at most `limit`, the newest first.

        None: the journal is of a version that has no index by machine.
        """
        if not self._has("runs_by_machine"):
            return None
        rows = self._fetch(_RUNS_ON, {"machine": machine, "limit": limit})
        return [RunRecord(*row) for row in rows]

    def events_of_machine(self, machine: str, limit: int) -> list[tuple[float, str]] | None:
        """Return time and kind of the last events of a machine, at most `limit`, oldest first.

        Only kinds of `MACHINE_EVENTS`. None: as for `runs_on`.
        """
        if not self._has("events_by_machine"):
            return None
        return self._fetch(_EVENTS_OF, {"machine": machine, "limit": limit})[::-1]

    def run_sums(
        self,
        begin_s: float,
        step_s: float,
        until_s: float,
        within_s: float,
        waits: bool = True,
        watts: Mapping[str, float] = NO_WATTS,
    ) -> RunSums | None:
        """Return runs that ended since a time, in bins; None in a journal older than runs.

        Args:
            begin_s: when the first bin begins.
            step_s: length of a bin, seconds.
            until_s: when the last bin ends.
            within_s: seconds this may take; longer is a `LedgerError`.
            waits: whether waits are summed up, too.
            watts: of one busy CPU, by machine.
        """
        if not self._has("runs_by_job" if waits else "runs"):
            return None
        with naming_errors(self.path, "sum up the runs of the journal"):
            return sum_up(self._connection, begin_s, step_s, until_s, within_s, waits, watts)

    def runs_reach(self, within_s: float) -> RunsReach | None:
        """Return how far back the runs that `run_sums` reads go; None if there is none.

        Args:
            within_s: seconds this may take; longer is a `LedgerError`.
        """
        if not self._has("runs"):
            return None
        with naming_errors(self.path, "sum up the runs of the journal"):
            return reach_of(self._connection, within_s)

    def last_end_of_run(self, job: str) -> float | None:
        """Return when the last run of a job ended; None: no run of it is kept."""
        with naming_errors(self.path, "read the journal"):
            return last_end_s(self._connection, job)

    def first_run_end_s(self) -> float | None:
        """Return when the oldest run ended that is kept; None: there is none."""
        if not self._has("runs"):
            return None
        rows = self._fetch("SELECT end_s FROM runs ORDER BY id LIMIT 1")
        return rows[0][0] if rows else None

    def end_of(self, job: str) -> JobEnd | None:
        """Return how a job left; None where that is not known."""
        return last_end(self._fetch, job) if self._has("ends_by_job") else None

    def runs_and_end_of(self, job: str, limit: int) -> tuple[list[RunRecord], JobEnd | None]:
        """Return the last runs of a job, at most `limit`, the oldest first, and how it left.

        The end is read first: it is written with or after the job's last run, so a journal that
        grows between the two reads never shows a job that left without the run it had.
        """
        end = self.end_of(job)
        return self.runs_of(job, limit), end


# -- reading ---------------------------------------------------------------------------------------

_COMMANDS: Final = (
    f"SELECT id, {COMMAND_COLUMNS} FROM commands WHERE id > :after ORDER BY id LIMIT :limit"
)


class JournalReading(RunReading):
    """All queries that a journal supports; errors as `JournalQueries`."""

    def inputs_after(
        self, seq: int, left_out: list[str] | None = None
    ) -> Iterator[tuple[int, str, NamedEvent]]:
        """Yield every input after a sequence number, as (its number, adapter, event), in order.

        Args:
            seq: only later ones.
            left_out: receives a sentence for each row that cannot be read, and is skipped.

        Raises:
            LedgerError: a row cannot be read, and `left_out` is None; or too many cannot.
        """
        if left_out is None:
            rows = self._pages("inputs", INPUT_COLUMNS, after=seq)
        else:
            rows = readable_inputs(self._fetch, seq, self.last_seq(), left_out)
        for row in rows:
            number, adapter, time_s, kind_name, subject, text = row
            try:
                kind = KIND_NUMBERS[kind_name]
                extra = None if text is None else decode_extra(kind, text)
                if left_out is not None:
                    check_types(adapter, time_s, kind, subject)
            except (KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
                why = (
                    f"{self.path}: input {number}: cannot read kind {kind_name!r} with extra "
                    f"{text!r}: {error}"
                )
                if left_out is None:
                    raise LedgerError(why) from error
                left_out.append(why)
                continue
            yield number, adapter, (time_s, kind, subject, extra)

    def decisions(
        self, after: int = 0, limit: int | None = None, job: str | None = None
    ) -> Iterator[tuple[int, DecisionRow]]:
        """Yield the decisions after a sequence number with their numbers, in order.

        Args:
            after: only later ones.
            limit: greatest number of decisions; None: all.
            job: only those about this job, alone or among alike jobs.
        """
        where, values = about(job)
        for row in self._pages("decisions", DECISION_COLUMNS, after, limit, where, values):
            yield decision_from(row)

    def latest_decisions(self, limit: int, job: str | None = None) -> list[tuple[int, DecisionRow]]:
        """Return the last decisions (about one job, or all) with their numbers, newest first."""
        where, values = about(job)
        query = (
            f"SELECT {DECISION_COLUMNS} FROM decisions WHERE {where} ORDER BY seq DESC LIMIT :limit"
        )
        return [decision_from(row) for row in self._fetch(query, values | {"limit": limit})]

    def jobs_meant(self, short: str, limit: int = 20) -> list[str]:
        """Return names of jobs with decisions, runs or an end that a short form can mean."""
        tables = ["decisions"]
        tables += ["runs"] if self._has("runs") else []
        tables += [ENDED_JOBS] if self._has("ends_by_job") else []
        found = (name for table in tables for name in find_jobs(self._fetch, table, short, limit))
        return list(dict.fromkeys(found))[:limit]

    def outcomes(self, after: int = 0) -> Iterator[tuple[int, OutcomeRecord]]:
        """Yield the outcomes after a sequence number with their numbers, in order."""
        for row in self._pages("outcomes", OUTCOME_COLUMNS, after=after):
            yield outcome_from(row)

    def latest_set_aside(self, limit: int) -> list[tuple[int, SetAsideRecord]]:
        """Return the last rejected events with their numbers, the newest first."""
        query = f"SELECT {SET_ASIDE_COLUMNS} FROM set_aside ORDER BY seq DESC LIMIT :limit"
        rows = self._fetch(query, {"limit": limit})
        return [(row[0], SetAsideRecord(*row[1:])) for row in rows]

    def set_aside_after(self, seq: int, reason: str) -> Iterator[tuple[int, SetAsideRecord]]:
        """Yield the events rejected for a reason, after a number, with their numbers, in order."""
        where, values = "reason = :reason", {"reason": reason}
        for row in self._pages("set_aside", SET_ASIDE_COLUMNS, seq, None, where, values):
            yield row[0], SetAsideRecord(*row[1:])

    def commands(self) -> Iterator[tuple[int, CommandRecord]]:
        """Yield every stored command, with the sequence number before it, in order."""
        after, there = 0, self._has("commands")
        while there and (rows := self._fetch(_COMMANDS, {"after": after, "limit": PAGE_ROWS})):
            for row in rows:
                yield row[1], CommandRecord(*row[2:])
            after = rows[-1][0]

    def latest_commands(self, limit: int) -> list[tuple[int, CommandRecord]]:
        """Return the last commands, each with the sequence number before it, newest first."""
        if not self._has("commands"):
            return []
        query = f"SELECT {COMMAND_COLUMNS} FROM commands ORDER BY id DESC LIMIT :limit"
        return [(row[0], CommandRecord(*row[1:])) for row in self._fetch(query, {"limit": limit})]

    def last_seq(self) -> int:
        """Return the last sequence number given out; 0 in a new journal. Survives pruning."""
        return int(self._fetch("SELECT last_seq FROM counter")[0][0])

    def last_decision_seq(self) -> int:
        """Return the sequence number of the last decision that is kept, or 0."""
        return int(self._fetch("SELECT coalesce(max(seq), 0) FROM decisions")[0][0])

    def pruned_seq(self) -> int:
        """Return the number up to which decisions and outcomes were pruned; 0: none yet."""
        return int(self._fetch("SELECT pruned_seq FROM counter")[0][0])

    def pruned_inputs_seq(self) -> int:
        """Return the number up to which inputs were pruned; 0: none yet."""
        return int(self._fetch("SELECT pruned_inputs_seq FROM counter")[0][0])

    def cursor(self, adapter: str) -> Any:
        """Return the cursor from which an adapter resumes, or None if there is none.

        Raises:
            LedgerError: it cannot be read, or differs from what was written.
        """
        rows = self._fetch("SELECT * FROM cursors WHERE adapter = :a", {"a": adapter})
        if not rows:
            return None
        name, cursor, seq, *crc = rows[0]
        if crc not in ([], [None], [row_crc((name, cursor, seq))]):
            raise LedgerError(f"{self.path}: the cursor of {adapter} differs from what was written")
        try:
            return decode_json(cursor)
        except (TypeError, ValueError) as error:
            raise LedgerError(
                f"{self.path}: the cursor of {adapter} is not valid JSON: {error}"
            ) from error

    def meta(self, key: str, default: Any = None) -> Any:
        """Return the value that was recorded under a name, or the default."""
        rows = self._fetch("SELECT value FROM meta WHERE key = :key", {"key": key})
        return decode_json(rows[0][0]) if rows else default


# -- salvage ---------------------------------------------------------------------------------------
# Reading of a damaged journal, skipping the rows that cannot be read.

Fetch: TypeAlias = Callable[[str, dict[str, Any]], list[Row]]

_PAGE_ROWS: Final = 4096
_MAX_FAILURES: Final = 20_000
"""Reads that may fail: some hundred damaged pages, a few seconds. Then the file is given up."""

_FROM: Final = (
    f"SELECT {INPUT_COLUMNS} FROM inputs WHERE seq > :after AND seq <= :until ORDER BY seq "
    "LIMIT :limit"
)


def readable_inputs(fetch: Fetch, after: int, last: int, left_out: list[str]) -> Iterator[Row]:
    """Yield the inputs after a sequence number that can be read, in order.

    Args:
        fetch: runs a query on the journal; raises `LedgerError`.
        after: only later ones.
        last: the journal's last sequence number.
        left_out: receives a sentence for each range that cannot be read.

    Raises:
        LedgerError: too many reads failed.
    """
    failures = 0
    while after < last:
        pieces = [(after, last)]
        while pieces:
            begin, until = pieces.pop()
            try:
                rows = fetch(_FROM, {"after": begin, "until": until, "limit": _PAGE_ROWS})
            except LedgerError as error:
                failures += 1
                if failures > _MAX_FAILURES:
                    raise
                if until - begin == 1:
                    left_out.append(f"input {until}: {error}")
                    continue
                middle = min(begin + _PAGE_ROWS, (begin + until) // 2)
                pieces += [(middle, until), (begin, middle)]
                continue
            yield from rows
            if len(rows) == _PAGE_ROWS:
                pieces.append((rows[-1][0], until))
        after = last


def check_types(adapter: object, time_s: object, kind: int, subject: object) -> None:
    """Raise `TypeError` or `ValueError` where a value cannot have come from a source."""
    if not (isinstance(adapter, str) and isinstance(subject, str)):
        raise TypeError(f"adapter {adapter!r}, subject {subject!r}: expected text")
    if not isinstance(time_s, int | float):
        raise TypeError(f"time {time_s!r}: expected a number")
    if kind == TICK and not FIRST_S <= time_s <= LAST_S:
        raise ValueError(f"impossible clock time {time_s!r}")
