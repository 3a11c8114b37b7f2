"""The journal: all inputs, decisions and outcomes, in order, in one SQLite file."""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from outrider.engine.ingest.set_aside import LAST_S
from outrider.ledger.backup import refuse_same_file, sync_path, write_backup
from outrider.ledger.checksums import row_crc, sum_up
from outrider.ledger.connection import naming_errors, open_to_read, open_to_write
from outrider.ledger.extras import decode_extra, decode_json, encode_json
from outrider.ledger.job_lookup import find_jobs
from outrider.ledger.records import (
    DECISION_COLUMNS,
    INPUT_COLUMNS,
    OUTCOME_COLUMNS,
    RUN_COLUMNS,
    SET_ASIDE_COLUMNS,
    Entry,
    OutcomeRecord,
    Row,
    RunRecord,
    SetAsideRecord,
    decision_from,
    decision_rows,
    input_rows,
    outcome_from,
    outcome_rows,
    set_aside_rows,
)
from outrider.ledger.retention import (
    give_back_pages,
    prune_journal,
    prune_runs,
    prune_to_size,
    used_bytes,
)
from outrider.ledger.salvage import check_types, readable_inputs
from outrider.model.decisions import DecisionRow
from outrider.model.errors import LedgerError
from outrider.model.events import KIND_NUMBERS, NamedEvent

PAGE_ROWS: Final = 4096
"""Rows read at a time: a long read must not hold a transaction open, or the log would grow."""

_INSERT_INPUT: Final = f"INSERT INTO inputs ({INPUT_COLUMNS}) VALUES ({', '.join('?' * 6)})"
INSERT_DECISION: Final = (
    f"INSERT INTO decisions ({DECISION_COLUMNS}) VALUES ({', '.join('?' * 15)})"
)
_INSERT_OUTCOME: Final = f"INSERT INTO outcomes ({OUTCOME_COLUMNS}) VALUES ({', '.join('?' * 10)})"

_INSERT_SET_ASIDE: Final = (
    f"INSERT INTO set_aside ({SET_ASIDE_COLUMNS}) VALUES ({', '.join('?' * 8)})"
)
_PUT_CURSOR: Final = "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?, ?)"
_INSERT_RUN: Final = f"INSERT INTO runs ({RUN_COLUMNS}, crc) VALUES ({', '.join('?' * 11)})"
_RUNS: Final = f"SELECT id, {RUN_COLUMNS} FROM runs WHERE id > :after ORDER BY id LIMIT :limit"

_NUMBERED: Final = ("inputs", "decisions", "outcomes", "set_aside")
_COLUMNS: Final = {
    "inputs": INPUT_COLUMNS,
    "decisions": DECISION_COLUMNS,
    "outcomes": OUTCOME_COLUMNS,
    "set_aside": SET_ASIDE_COLUMNS,
    "runs": f"id, {RUN_COLUMNS}, crc",
    "cursors": "adapter, cursor, seq, crc",
    "meta": "key, value, crc",
    "checksums": "last_seq, first_seq, crc",
    "counter": "only, last_seq, pruned_inputs_seq, pruned_seq, open_first_seq, open_crc",
}

_AN_EMPTY_DECISION: Final = (
    "SELECT last_seq + 1, 0, '', '[]', '', NULL, 0, '', '', '', NULL, NULL, '', NULL, NULL "
    "FROM counter"
)
_PROBES: Final = (
    "INSERT INTO inputs SELECT last_seq + 1, '', 0, '', '', NULL FROM counter",
    f"INSERT INTO decisions ({DECISION_COLUMNS}) {_AN_EMPTY_DECISION}",
    "INSERT INTO outcomes SELECT last_seq + 1, 0, '', NULL, '', '', 0, '', NULL, 0 FROM counter",
    "INSERT INTO set_aside SELECT last_seq + 1, '', 0, '', '', NULL, '', '' FROM counter",
    "INSERT INTO checksums SELECT last_seq + 1, 0, 0 FROM counter",
    "INSERT INTO runs VALUES (NULL, '', '', '', '', 0, NULL, 0, 0, 0, '', 0)",
    "UPDATE cursors SET seq = seq + 1",
    "UPDATE meta SET crc = 0",
    "UPDATE counter SET last_seq = last_seq + 1",
)
"""None of these stays."""

_OF_JOB: Final = """seq IN (
    SELECT seq FROM decisions WHERE job = :job
    UNION SELECT seq FROM decisions WHERE jobs IS NOT NULL AND instr(jobs, :quoted)
      AND EXISTS (SELECT 1 FROM json_each(jobs) WHERE value = :job))"""


class Journal:
    """One journal file, open for one writer or for reading.

    What `append` has returned for survives the end of this process at any moment, ``kill -9``
    included: it has been handed to the operating system (WAL, ``synchronous=NORMAL``). When the
    power fails or the kernel stops, the last few transactions may be lost, whole ones and from
    the end; the adapters' cursors go back with them, so the events come again from their source.
    `sync` makes sure of everything so far.

    A connection may move between threads but serves one at a time: give the writer and every
    reader a `Journal` of their own.

    Args:
        path: the file; created if missing, unless `read_only`.
        read_only: never change anything; a daemon may be writing meanwhile.

    Raises:
        LedgerError: it cannot be opened, belongs to another program or to a newer Outrider.
    """

    def __init__(self, path: Path | str, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self._connection = (open_to_read if read_only else open_to_write)(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def append(self, entry: Entry) -> int:
        """Record one entry in one transaction; return the last sequence number.

        Raises:
            LedgerError: nothing of it was recorded; the message names path and cause.
        """
        return self.append_all([entry])[0]

    def append_all(self, entries: Sequence[Entry]) -> list[int]:
        """Record several entries, in order, in one transaction.

        Returns:
            For each entry the last sequence number given out when it was recorded.

        Raises:
            LedgerError: nothing of any was recorded; the message names path and cause.
        """
        with naming_errors(self.path, "record"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                seqs = self._write(entries)
                self._connection.execute("COMMIT")
            except (TypeError, ValueError, OverflowError, IndexError) as error:
                raise LedgerError(
                    f"{self.path}: an entry holds what a journal cannot: {error}"
                ) from error
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        return seqs

    def _write(self, entries: Iterable[Entry]) -> list[int]:
        seqs = []
        write = self._connection
        before = seq = self.last_seq()
        for entry in entries:
            if entry.inputs:
                write.executemany(_INSERT_INPUT, input_rows(entry, seq))
                seq += len(entry.inputs)
            if entry.decisions:
                write.executemany(INSERT_DECISION, decision_rows(entry.decisions, seq))
                seq += len(entry.decisions)
            if entry.outcomes:
                write.executemany(_INSERT_OUTCOME, outcome_rows(entry.outcomes, seq))
                seq += len(entry.outcomes)
            if entry.set_aside:
                write.executemany(_INSERT_SET_ASIDE, set_aside_rows(entry.set_aside, seq))
                seq += len(entry.set_aside)
            for adapter, cursor in entry.cursors.items():
                position = (adapter, encode_json(cursor), seq)
                write.execute(_PUT_CURSOR, (*position, row_crc(position)))
            for key, value in entry.meta.items():
                fact = (key, encode_json(value))
                write.execute(
                    "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (*fact, row_crc(fact))
                )
            if entry.runs:
                write.executemany(_INSERT_RUN, map(_run_row, entry.runs))
            seqs.append(seq)
        sum_up(write, before, seq)
        write.execute("UPDATE counter SET last_seq = ?", (seq,))
        return seqs

    def inputs_after(
        self, seq: int, left_out: list[str] | None = None
    ) -> Iterator[tuple[int, str, NamedEvent]]:
        """Every input after a sequence number, as (its number, adapter, event), in order.

        Args:
            seq: only later ones.
            left_out: gets a sentence for each row that cannot be read, and the others follow.

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
        """Decisions after a sequence number with their numbers, in order.

        Args:
            after: only later ones.
            limit: greatest number of decisions; None: all.
            job: only those about this job, alone or among alike jobs.
        """
        where, values = _about(job)
        for row in self._pages("decisions", DECISION_COLUMNS, after, limit, where, values):
            yield decision_from(row)

    def latest_decisions(self, limit: int, job: str | None = None) -> list[tuple[int, DecisionRow]]:
        """The last decisions (about one job, or all) with their numbers, the newest first."""
        where, values = _about(job)
        query = (
            f"SELECT {DECISION_COLUMNS} FROM decisions WHERE {where} ORDER BY seq DESC LIMIT :limit"
        )
        return [decision_from(row) for row in self._fetch(query, values | {"limit": limit})]

    def jobs_meant(self, short: str, limit: int = 20) -> list[str]:
        """Names of jobs with decisions that a short form can mean, at most `limit`."""
        return find_jobs(self._fetch, short, limit)

    def outcomes(self, after: int = 0) -> Iterator[tuple[int, OutcomeRecord]]:
        """Outcomes after a sequence number with their numbers, in order."""
        for row in self._pages("outcomes", OUTCOME_COLUMNS, after=after):
            yield outcome_from(row)

    def latest_set_aside(self, limit: int) -> list[tuple[int, SetAsideRecord]]:
        """The last events that were set aside with their numbers, the newest first."""
        query = f"SELECT {SET_ASIDE_COLUMNS} FROM set_aside ORDER BY seq DESC LIMIT :limit"
        rows = self._fetch(query, {"limit": limit})
        return [(row[0], SetAsideRecord(*row[1:])) for row in rows]

    def set_aside_after(self, seq: int, reason: str) -> Iterator[tuple[int, SetAsideRecord]]:
        """Events set aside for a reason, after a sequence number, with their numbers, in order."""
        where, values = "reason = :reason", {"reason": reason}
        for row in self._pages("set_aside", SET_ASIDE_COLUMNS, seq, None, where, values):
            yield row[0], SetAsideRecord(*row[1:])

    def runs(self, after: int = 0) -> Iterator[tuple[int, RunRecord]]:
        """Runs after one of these numbers, with their numbers, in the order in which they ended."""
        while rows := self._fetch(_RUNS, {"after": after, "limit": PAGE_ROWS}):
            for row in rows:
                yield row[0], RunRecord(*row[1:])
            after = rows[-1][0]

    def probe(self) -> None:
        """Ask for every column, and for what each write needs, but for no rows.

        Raises:
            LedgerError: a table is not as the schema has it.
        """
        for table, columns in _COLUMNS.items():
            self._fetch(f"SELECT {columns} FROM {table} WHERE 0")
        self._fetch("SELECT last_seq + pruned_seq + pruned_inputs_seq + open_crc FROM counter")[0]
        self.last_decision_seq()

    def mend_counter(self) -> bool:
        """Let the counter go on after the last row, should it be behind it; whether it was.

        Raises:
            LedgerError: it cannot be read or written.
        """
        newest = " UNION ALL ".join(f"SELECT max(seq) AS seq FROM {table}" for table in _NUMBERED)
        last = self._fetch(f"SELECT coalesce(max(seq), 0) FROM ({newest})")[0][0]
        if last <= self.last_seq():
            return False
        with naming_errors(self.path, "record"):
            self._connection.execute("UPDATE counter SET last_seq = ?", (last,))
        return True

    def probe_writing(self) -> None:
        """Write a row into every table, as the next entry would, and take it back.

        Raises:
            LedgerError: it cannot be written.
        """
        with naming_errors(self.path, "record"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                for statement in _PROBES:
                    self._connection.execute(statement)
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def last_seq(self) -> int:
        """The last sequence number given out; 0 in a new journal. Outlives pruning."""
        return int(self._fetch("SELECT last_seq FROM counter")[0][0])

    def last_decision_seq(self) -> int:
        """The sequence number of the last decision that is kept, or 0."""
        return int(self._fetch("SELECT coalesce(max(seq), 0) FROM decisions")[0][0])

    def pruned_seq(self) -> int:
        """Decisions and outcomes up to this sequence number were pruned; 0: none yet."""
        return int(self._fetch("SELECT pruned_seq FROM counter")[0][0])

    def pruned_inputs_seq(self) -> int:
        """Inputs up to this sequence number were pruned; 0: none yet."""
        return int(self._fetch("SELECT pruned_inputs_seq FROM counter")[0][0])

    def cursor(self, adapter: str) -> Any:
        """The cursor from which an adapter resumes, or None if there is none.

        Raises:
            LedgerError: it cannot be read, or is not what was written.
        """
        rows = self._fetch("SELECT * FROM cursors WHERE adapter = :a", {"a": adapter})
        if not rows:
            return None
        name, cursor, seq, *crc = rows[0]
        if crc not in ([], [None], [row_crc((name, cursor, seq))]):
            raise LedgerError(f"{self.path}: the cursor of {adapter} is not what was written")
        try:
            return decode_json(cursor)
        except (TypeError, ValueError) as error:
            raise LedgerError(
                f"{self.path}: the cursor of {adapter} is no JSON: {error}"
            ) from error

    def meta(self, key: str, default: Any = None) -> Any:
        """The value that an entry recorded under this name, or the default."""
        rows = self._fetch("SELECT value FROM meta WHERE key = :key", {"key": key})
        return decode_json(rows[0][0]) if rows else default

    def prune(
        self,
        before_time_s: float,
        *,
        oldest_snapshot_seq: int,
        latest_time_s: float = LAST_S,
        runs_before_s: float | None = None,
    ) -> int:
        """Delete rows older than a time; return how many.

        What goes is always a front piece of the sequence: the first row that is not older ends
        it, unless its time is beyond all that can be. Cursors and meta stay.

        Args:
            before_time_s: event time in seconds.
            oldest_snapshot_seq: `SnapshotStore.oldest_seq`; inputs after it are kept whatever
                their age, since a restart may have to feed them again. 0 keeps every input.
            latest_time_s: rows of a later time are dated wrongly, and keep nothing.
            runs_before_s: runs that ended before this time go, too; None: all are kept.

        Raises:
            LedgerError: as `append`; pieces done before the failure stay done.
        """
        with naming_errors(self.path, "prune"):
            gone = prune_journal(
                self._connection, before_time_s, oldest_snapshot_seq, latest_time_s
            )
            if runs_before_s is not None:
                gone += prune_runs(self._connection, runs_before_s)
            give_back_pages(self._connection)
            return gone

    def keep_within(self, budget_bytes: int, *, oldest_snapshot_seq: int) -> int:
        """Delete the oldest rows while the journal takes more than its budget; return how many.

        Events go before runs. Inputs after the oldest snapshot stay, whatever they take.

        Args:
            budget_bytes: what the file may take, without its log.
            oldest_snapshot_seq: as for `prune`.

        Raises:
            LedgerError: as `append`; pieces done before the failure stay done.
        """
        with naming_errors(self.path, "prune"):
            return prune_to_size(self._connection, budget_bytes, oldest_snapshot_seq)

    def used_bytes(self) -> int:
        """Bytes of the file that hold something; without its log."""
        with naming_errors(self.path, "measure the journal"):
            return used_bytes(self._connection)

    def back_up(self, target: Path) -> None:
        """Copy the journal as it is at one moment, while it may be written.

        Raises:
            LedgerError: it could not be written; there is no such file from this.
        """
        refuse_same_file(self.path, target)
        with naming_errors(target, "write the backup"):
            write_backup(self._connection, target)

    def sync(self) -> None:
        """Flush the file to disk, so that all recorded rows survive a power failure.

        The log is flushed by itself first: a checkpoint does not do it where a long reader (a
        backup) keeps it from taking the newest rows.
        """
        with naming_errors(self.path, "flush to disk"):
            log = self.path.with_name(f"{self.path.name}-wal")
            if log.exists():
                sync_path(log)
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def size_bytes(self) -> int:
        """Bytes on disk: the file and its log."""
        log = self.path.with_name(f"{self.path.name}-wal")
        with naming_errors(self.path, "measure the journal"):
            return sum(part.stat().st_size for part in (self.path, log) if part.exists())

    def reopen(self) -> None:
        """Reopen the file, after a failure that may have broken the connection.

        Raises:
            LedgerError: it still cannot be opened; the old connection stays as it was.
        """
        fresh = (open_to_read if self.read_only else open_to_write)(self.path)
        self._connection.close()
        self._connection = fresh

    def close(self) -> None:
        """Close the file; for a writer, the write-ahead log is merged into it."""
        self._connection.close()

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


def _run_row(run: RunRecord) -> Row:
    # as the columns give them back: an integer in a column of real numbers would be another value
    values = (
        run.job, run.vo, run.job_class, run.machine, run.cpus,
        None if run.submit_s is None else float(run.submit_s),
        float(run.start_s), float(run.end_s), float(run.run_s), run.reason,
    )  # fmt: skip
    return (*values, row_crc(values))


def _about(job: str | None) -> tuple[str, dict[str, Any]]:
    if job is None:
        return "1", {}
    return _OF_JOB, {"job": job, "quoted": encode_json(job)}
