"""Opening and backup of the SQLite file, with errors that name file, cause and fix."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import structlog

from outrider.journal import schema
from outrider.journal.schema import migrate, version_of
from outrider.model.errors import LedgerError

BUSY_S: Final = 5.0
"""Seconds to wait for another process that holds the write lock."""
WAL_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Size to which the write-ahead log is truncated after a checkpoint."""
_ADVICE: Final = (
    ("is full", "free some space on its file system"),
    ("readonly", "make the file and its directory writable for this user"),
    ("unable to open", "its directory must exist, and be writable where the journal is written"),
    ("disk I/O", "check the system log for disk errors, and limits on file size"),
    ("locked", "another process is writing to it; stop that one"),
    ("not a database", "use a journal of Outrider, or move this file away"),
    ("malformed", "the file is damaged; move it away and start a new one"),
)


@contextmanager
def naming_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn errors of SQLite into a `LedgerError` that names file, cause and fix."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        advice = next((then for sign, then in _ADVICE if sign in str(error)), "")
        raise LedgerError(
            f"{path}: cannot {doing}: {error}" + (f"; {advice}" if advice else "")
        ) from error


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open the file for one writer, in the present schema; create it if missing.

    Raises:
        LedgerError: it cannot be opened, created or migrated.
    """
    with naming_errors(path, "open the journal for writing"):
        connection = sqlite3.connect(
            path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
    try:
        with naming_errors(path, "open the journal for writing"):
            # Pruned rows held people's names: overwrite them, not only unlink them.
            connection.execute("PRAGMA secure_delete = ON")
            version = version_of(connection, path)
            if version == 0:  # so that pruning can make the file smaller
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
            if 0 < version < schema.VERSION:
                back_up_before_migration(connection, path, version)
            migrate(connection, path)
    except LedgerError:
        connection.close()
        raise
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open the file for reading; a process that writes it at the same time is not disturbed.

    Reading a journal needs the small files ``-wal`` and ``-shm`` next to it. Where they are missing
    and cannot be created (a read-only directory), no process writes the journal either, and it is
    read as an immutable file.

    Raises:
        LedgerError: it is missing, damaged, of another version or not a journal.
    """
    if not path.is_file():
        raise LedgerError(f"{path}: no such journal")
    with naming_errors(path, "read the journal"):
        connection = _connect_to_read(path, "mode=ro")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError:
            connection.close()
            log = path.with_name(f"{path.name}-wal")
            if log.exists() and log.stat().st_size:
                raise
            connection = _connect_to_read(path, "mode=ro&immutable=1")
        except sqlite3.DatabaseError:
            connection.close()
            raise
    try:
        with naming_errors(path, "read the journal"):
            version = version_of(connection, path)
        if version < min(schema.READABLE_FROM, schema.VERSION):
            raise LedgerError(
                f"{path}: schema version {version}, this Outrider reads version {schema.VERSION}; "
                "open it once for writing to bring it up to date"
                if version
                else f"{path}: the file contains no journal yet"
            )
    except LedgerError:
        connection.close()
        raise
    return connection


def _connect_to_read(path: Path, options: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(path.absolute()))}?{options}"
    return sqlite3.connect(
        uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
    )


# -- backup ----------------------------------------------------------------------------------------
# Backups of a journal, also while a daemon is writing it.

log = structlog.get_logger()


def write_backup(source: sqlite3.Connection, target: Path) -> None:
    """Copy an open journal as of one moment; the target appears when it is complete.

    Args:
        source: open; it may be read and written during the copy.
        target: replaced if it exists.

    Raises:
        OSError, sqlite3.Error: it could not be written; no new target file is left.
    """
    partial = target.with_name(f"{target.name}.part")
    try:
        partial.unlink(missing_ok=True)
        with closing(sqlite3.connect(partial)) as copy:
            source.backup(copy)  # in one step: in several it restarts after every write
        partial.chmod(0o600)  # it contains when owners used their machines
        sync_path(partial)
        partial.replace(target)
        sync_path(target.parent)
    except (OSError, sqlite3.Error):
        with suppress(OSError):  # the first error is raised
            partial.unlink(missing_ok=True)
        raise


def back_up_before_migration(source: sqlite3.Connection, path: Path, version: int) -> Path | None:
    """Keep a copy of a journal of an older version, before it is migrated.

    Returns:
        Path of the copy; None if it could not be written, which is logged: each step of a migration
        is a transaction, and a full disk must not keep a daemon from starting.
    """
    target = path.with_name(f"before-schema-{version + 1}-{path.name}")
    try:
        write_backup(source, target)
    except (OSError, sqlite3.Error) as error:
        log.error("backup_failed", path=str(target), error=str(error))
        return None
    log.warning("old_journal_kept", path=str(target), schema=version)
    return target


def refuse_same_file(source: Path, target: Path) -> None:
    """Raise `LedgerError` where a backup would overwrite its source."""
    if target.exists() and source.exists() and source.samefile(target):
        raise LedgerError(f"{target}: this is the journal itself; expected another file")


def sync_path(path: Path) -> None:
    """Flush a file, or the names in a folder, so that they survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
