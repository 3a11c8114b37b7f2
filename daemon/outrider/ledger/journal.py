"""The journal: all inputs, decisions and outcomes, in order, in one SQLite file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self

from outrider.engine.ingest.set_aside import LAST_S
from outrider.ledger.appending import append_entries
from outrider.ledger.backup import refuse_same_file, sync_path, write_backup
from outrider.ledger.connection import naming_errors, open_to_read, open_to_write
from outrider.ledger.probes import last_numbered, probe_reading, probe_writing
from outrider.ledger.reading import JournalReading
from outrider.ledger.records import Entry
from outrider.ledger.retention import (
    give_back_pages,
    prune_commands,
    prune_journal,
    prune_runs,
    prune_to_size,
    used_bytes,
)
from outrider.model.errors import LedgerError

_STEPS: Final = 1_000
"""Instructions of SQLite between two calls of who watches: some 30 us, or a third of the pages that
are given back at a time."""


class Journal(JournalReading):
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
        path = Path(path)
        super().__init__(path, (open_to_read if read_only else open_to_write)(path))
        self.read_only = read_only
        self._progress: Callable[[], None] | None = None

    def watch(self, progress: Callable[[], None]) -> None:
        """Call this again and again while SQLite works, and not while it waits for the disk.

        It is called in the thread that uses the journal, also after `reopen`.
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
                    f"{self.path}: an entry holds what a journal cannot: {error}"
                ) from error
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        return seqs

    def probe(self) -> None:
        """Ask for every column, and for what each write needs, but for no rows.

        Raises:
            LedgerError: a table is not as the schema has it.
        """
        with naming_errors(self.path, "read the journal"):
            probe_reading(self._connection)

    def probe_writing(self) -> None:
        """Write a row into every table, as the next entry would, and take it back.

        Raises:
            LedgerError: it cannot be written.
        """
        with naming_errors(self.path, "record"):
            probe_writing(self._connection)

    def mend_counter(self) -> bool:
        """Let the counter go on after the last row, should it be behind it; whether it was.

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

        What goes is always a front piece of the sequence: the first row that is not older ends
        it, unless its time is beyond all that can be. Cursors and meta stay.

        Args:
            before_time_s: event time in seconds.
            oldest_snapshot_seq: `SnapshotStore.oldest_seq`; inputs after it are kept whatever
                their age, since a restart may have to feed them again. 0 keeps every input.
            latest_time_s: rows of a later time are dated wrongly, and keep nothing.
            runs_before_s: runs that ended, and commands that were given, before this time go,
                too; None: all are kept.

        Raises:
            LedgerError: as `append`; pieces done before the failure stay done.
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
