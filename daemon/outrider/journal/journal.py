"""Journal: all inputs, decisions and outcomes, in order, in one SQLite file."""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from sqlite3 import Connection
from typing import Final, Self

from outrider.engine.ingest.set_aside import LAST_S
from outrider.journal.connection import (
    naming_errors,
    open_to_read,
    open_to_write,
    refuse_same_file,
    sync_path,
    write_backup,
)
from outrider.journal.reading import JournalReading
from outrider.journal.records import (
    COMMAND_COLUMNS,
    DECISION_COLUMNS,
    INPUT_COLUMNS,
    OUTCOME_COLUMNS,
    RUN_COLUMNS,
    SET_ASIDE_COLUMNS,
    Entry,
    append_entries,
)
from outrider.model.errors import LedgerError

_STEPS: Final = 1_000
"""SQLite instructions between two progress calls: about 30 us, or a third of a vacuum step."""


class Journal(JournalReading):
    """Open journal file, for one writer or for reading.

    What `append` has returned for survives the end of this process at any moment, ``kill -9``
    included: it has been handed to the operating system (WAL, ``synchronous=NORMAL``). When the
        power
    fails or the kernel stops, the last few transactions may be lost, complete ones from the end.
    The adapters' cursors go back with them, so the events come again from their source. `sync`
    makes everything so far durable.

    A connection may move between threads but serves one at a time: give the writer and every reader
    a separate `Journal`.

    Args:
        path: the file; created if missing, unless `read_only`.
        read_only: never change anything; a daemon may be writing at the same time.

    Raises:
        LedgerError: it cannot be opened, belongs to another program or to a newer Outrider.
    """

    def __init__(self, path: Path | str, *, read_only: bool = False) -> None:
        path = Path(path)
        super().__init__(path, (open_to_read if read_only else open_to_write)(path))
        self.read_only = read_only
        self._progress: Callable[[], None] | None = None

    def watch(self, progress: Callable[[], None]) -> None:
        """Call a function periodically while SQLite works, but not while it waits for the disk.

        The function is called in the thread that uses the journal, also after `reopen`.
        """
        self._progress = progress
        self._connection.set_progress_handler(progress, _STEPS)

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
                seqs = append_entries(self._connection, entries, self.last_seq())
                self._connection.execute("COMMIT")
            except (TypeError, ValueError, OverflowError, IndexError) as error:
                raise LedgerError(
                    f"{self.path}: an entry contains what a journal cannot store: {error}"
                ) from error
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        return seqs

    def probe(self) -> None:
        """Query every column, and what each write needs, but no rows.

        Raises:
            LedgerError: a table differs from the schema.
        """
        with naming_errors(self.path, "read the journal"):
            probe_reading(self._connection)

    def probe_writing(self) -> None:
        """Write a row into every table, as the next entry would, and roll back.

        Raises:
            LedgerError: it cannot be written.
        """
        with naming_errors(self.path, "record"):
            probe_writing(self._connection)

    def repair_counter(self) -> bool:
        """Set a counter that is behind to the last row; return whether it was.

        Raises:
            LedgerError: it cannot be read or written.
        """
        with naming_errors(self.path, "read the journal"):
            last = last_numbered(self._connection)
        if last <= self.last_seq():
            return False
        with naming_errors(self.path, "record"):
            self._connection.execute("UPDATE counter SET last_seq = ?", (last,))
        return True

    def prune(
        self,
        before_time_s: float,
        *,
        oldest_snapshot_seq: int,
        latest_time_s: float = LAST_S,
        runs_before_s: float | None = None,
    ) -> int:
        """Delete rows older than a time; return how many.

        The deleted rows are always the front of the sequence: the first row that is not older ends
            it,
        unless its time is impossible. Cursors and meta stay.

        Args:
            before_time_s: event time in seconds.
            oldest_snapshot_seq: `SnapshotStore.oldest_seq`; inputs after it are kept at any age,
                since a restart may have to replay them. 0 keeps every input.
            latest_time_s: rows of a later time have a wrong date, and keep no others.
            runs_before_s: runs that ended, and commands that were given, before this time are
                deleted, too; None: all are kept.

        Raises:
            LedgerError: see `append`; steps done before the failure stay done.
        """
        with naming_errors(self.path, "prune"):
            gone = prune_journal(
                self._connection, before_time_s, oldest_snapshot_seq, latest_time_s
            )
            if runs_before_s is not None:
                gone += prune_runs(self._connection, runs_before_s)
                gone += prune_commands(self._connection, runs_before_s)
            give_back_pages(self._connection)
            return gone

    def keep_within(self, budget_bytes: int, *, oldest_snapshot_seq: int) -> int:
        """Delete the oldest rows while the journal exceeds its budget; return how many.

        Events are deleted before runs. Inputs after the oldest snapshot stay, at any size.

        Args:
            budget_bytes: maximum size of the file, without its log.
            oldest_snapshot_seq: see `prune`.

        Raises:
            LedgerError: see `append`; steps done before the failure stay done.
        """
        with naming_errors(self.path, "prune"):
            return prune_to_size(self._connection, budget_bytes, oldest_snapshot_seq)

    def used_bytes(self) -> int:
        """Return the bytes of the file in use, without its log."""
        with naming_errors(self.path, "measure the journal"):
            return used_bytes(self._connection)

    def back_up(self, target: Path) -> None:
        """Copy the journal as of one moment; it may be written during the copy.

        Raises:
            LedgerError: it could not be written; no new target file is left.
        """
        refuse_same_file(self.path, target)
        with naming_errors(target, "write the backup"):
            write_backup(self._connection, target)

    def sync(self) -> None:
        """Flush the file to disk, so that all recorded rows survive a power failure.

        The log is flushed separately first: a checkpoint does not do it where a long reader (a
            backup)
        keeps it from taking the newest rows.
        """
        with naming_errors(self.path, "flush to disk"):
            log = self.path.with_name(f"{self.path.name}-wal")
            if log.exists():
                sync_path(log)
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def reopen(self) -> None:
        """Reopen the file, after a failure that may have broken the connection.

        Raises:
            LedgerError: it still cannot be opened; the old connection stays as it was.
        """
        fresh = (open_to_read if self.read_only else open_to_write)(self.path)
        self._connection.close()
        self._connection = fresh
        if self._progress is not None:
            self.watch(self._progress)

    def close(self) -> None:
        """Close the file; for a writer, the write-ahead log is merged into it."""
        self._connection.close()


# -- probes ----------------------------------------------------------------------------------------
# Checks that a journal is as its schema says, made before it is used.

_NUMBERED: Final = ("inputs", "decisions", "outcomes", "set_aside")
_COLUMNS: Final = {
    "inputs": INPUT_COLUMNS,
    "decisions": DECISION_COLUMNS,
    "outcomes": OUTCOME_COLUMNS,
    "set_aside": SET_ASIDE_COLUMNS,
    "runs": f"id, {RUN_COLUMNS}, crc",
    "commands": f"id, {COMMAND_COLUMNS}, crc",
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
    "INSERT INTO commands VALUES (NULL, 0, 0, '', NULL, '', '', '', '', '', '', 0)",
    "UPDATE cursors SET seq = seq + 1",
    "UPDATE meta SET crc = 0",
    "UPDATE counter SET last_seq = last_seq + 1",
)
"""Statements that are always rolled back."""


def probe_reading(connection: Connection) -> None:
    """Query every column, and what each write needs, but no rows."""
    for table, columns in _COLUMNS.items():
        connection.execute(f"SELECT {columns} FROM {table} WHERE 0").fetchall()
    counters = "SELECT last_seq + pruned_seq + pruned_inputs_seq + open_crc FROM counter"
    connection.execute(counters).fetchall()[0]
    connection.execute("SELECT max(seq) FROM decisions").fetchall()


def probe_writing(connection: Connection) -> None:
    """Write a row into every table, as the next entry would, and roll back."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _PROBES:
            connection.execute(statement)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def last_numbered(connection: Connection) -> int:
    """Return the greatest sequence number of any row; 0 if there is none."""
    newest = " UNION ALL ".join(f"SELECT max(seq) AS seq FROM {table}" for table in _NUMBERED)
    query = f"SELECT coalesce(max(seq), 0) FROM ({newest})"
    return int(connection.execute(query).fetchall()[0][0])


# -- retention -------------------------------------------------------------------------------------
# Pruning of old rows of the journal, but of none that a restart needs.

PIECE: Final = 20_000
"""Sequence numbers per transaction; readers and the writer can work in between."""
_SMALL_PIECE: Final = PIECE // 10
"""Sequence numbers per transaction when space is needed: not many more than necessary."""

# Rows with a wrong date, from a garbled record or a clock, must not keep all behind them.
_KEPT_FROM: Final = """SELECT min(seq) FROM (
    SELECT min(seq) AS seq FROM inputs WHERE time_s BETWEEN :before AND :latest
    UNION ALL SELECT min(seq) FROM decisions WHERE time_s BETWEEN :before AND :latest
    UNION ALL SELECT min(seq) FROM outcomes WHERE time_s BETWEEN :before AND :latest)"""
_NOT_FED_AGAIN: Final = ("decisions", "outcomes", "set_aside")
MAX_COMMANDS: Final = 100_000
"""Maximum number of commands kept: some 30 MB."""
_PAGES: Final = 2_000
"""Free pages returned to the file system per step: 8 MB."""
_ROOM_RATIO: Final = 0.95
"""Part of the budget down to which rows are deleted, so that not every batch deletes some."""


def prune_journal(
    connection: sqlite3.Connection,
    before_time_s: float,
    oldest_snapshot_seq: int,
    latest_time_s: float = LAST_S,
) -> int:
    """Delete the rows before the first one that is not older than a time.

    Args:
        connection: open for writing.
        before_time_s: event time in seconds; rows from then on are kept.
        oldest_snapshot_seq: inputs after this sequence number are kept.
        latest_time_s: rows of a later time have a wrong date, and keep no others.

    Returns:
        Rows deleted.

    Raises:
        sqlite3.Error: steps done before the failure stay done.
    """
    counters = "SELECT last_seq, pruned_inputs_seq, pruned_seq FROM counter"
    last_seq, pruned_inputs_seq, pruned_seq = connection.execute(counters).fetchone()
    times = {"before": before_time_s, "latest": latest_time_s}
    first_kept = connection.execute(_KEPT_FROM, times).fetchone()[0]
    until = last_seq if first_kept is None else first_kept - 1
    inputs_until = min(until, oldest_snapshot_seq)
    gone = 0
    for start in range(min(pruned_inputs_seq, pruned_seq), until, PIECE):
        end = min(start + PIECE, until)
        pruned_inputs_seq = max(pruned_inputs_seq, min(end, inputs_until))
        pruned_seq = max(pruned_seq, end)
        gone += _prune_piece(connection, pruned_inputs_seq, pruned_seq)
    return gone


def prune_runs(connection: sqlite3.Connection, before_time_s: float) -> int:
    """Delete the runs before the first one that ended after a time; return how many.

    Raises:
        sqlite3.Error: steps done before the failure stay done.
    """
    query = "SELECT id FROM runs WHERE end_s >= ? ORDER BY id LIMIT 1"
    kept = connection.execute(query, (before_time_s,)).fetchone()
    if kept is None:
        kept = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM runs").fetchone()
    return _delete_runs(connection, kept[0], most=None)


def prune_commands(connection: sqlite3.Connection, before_time_s: float) -> int:
    """Delete the commands given before a time, or beyond the maximum; return how many.

    A script may command every second: at most `MAX_COMMANDS` are kept.

    Raises:
        sqlite3.Error: none is deleted.
    """
    gone = connection.execute(
        "DELETE FROM commands WHERE at_s < ? OR id <= (SELECT max(id) FROM commands) - ?",
        (before_time_s, MAX_COMMANDS),
    )
    return gone.rowcount


def prune_to_size(
    connection: sqlite3.Connection, budget_bytes: int, oldest_snapshot_seq: int
) -> int:
    """Delete the oldest rows while the used size exceeds a budget; return how many.

    Args:
        connection: open for writing.
        budget_bytes: maximum size in use.
        oldest_snapshot_seq: inputs after this sequence number are kept.

    Returns:
        Rows deleted.

    Raises:
        sqlite3.Error: steps done before the failure stay done.
    """
    if used_bytes(connection) <= budget_bytes:
        return 0
    counters = "SELECT last_seq, pruned_inputs_seq, pruned_seq FROM counter"
    last_seq, inputs_until, until = connection.execute(counters).fetchone()
    gone = 0
    while used_bytes(connection) > budget_bytes * _ROOM_RATIO:
        start = min(until, inputs_until if inputs_until < oldest_snapshot_seq else until)
        if start < last_seq:
            end = min(start + _SMALL_PIECE, last_seq)
            inputs_until = max(inputs_until, min(end, oldest_snapshot_seq))
            until = max(until, end)
            gone += _prune_piece(connection, inputs_until, until)
        elif runs := _delete_runs(connection, None, most=_SMALL_PIECE):
            gone += runs
        else:
            break
    give_back_pages(connection)
    return gone


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of the pages in use."""
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def give_back_pages(connection: sqlite3.Connection) -> None:
    """Shrink the file by its free pages. A journal from before schema 4 keeps them for reuse."""
    free = int(connection.execute("PRAGMA freelist_count").fetchone()[0])
    for _ in range(0, free, _PAGES):
        # it returns an empty row for each page, and `execute` would stop at the first
        connection.executescript(f"PRAGMA incremental_vacuum({_PAGES})")


def _delete_runs(connection: sqlite3.Connection, before_id: int | None, most: int | None) -> int:
    """Delete the first runs, in steps; return how many."""
    gone = 0
    while most is None or gone < most:
        done = connection.execute(
            "DELETE FROM runs WHERE id IN "
            "(SELECT id FROM runs WHERE :id IS NULL OR id < :id ORDER BY id LIMIT :most)",
            {"id": before_id, "most": PIECE if most is None else most},
        ).rowcount
        gone += done
        if done == 0:
            break
    return gone


def _prune_piece(connection: sqlite3.Connection, inputs_until: int, until: int) -> int:
    connection.execute("BEGIN IMMEDIATE")
    try:
        gone = 0
        ends = {"inputs": inputs_until} | dict.fromkeys(_NOT_FED_AGAIN, until)
        for table, end in ends.items():
            gone += connection.execute(f"DELETE FROM {table} WHERE seq <= ?", (end,)).rowcount
        connection.execute(
            "UPDATE counter SET pruned_inputs_seq = ?, pruned_seq = ?", (inputs_until, until)
        )
        connection.execute("DELETE FROM checksums WHERE last_seq <= ?", (inputs_until,))
        connection.execute("COMMIT")
        return gone
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
