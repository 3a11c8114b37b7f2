"""Open and back up the SQLite file, with errors that name file, cause and remedy."""

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
"""How long to wait for another process that holds the write lock."""
WAL_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Size to which the write-ahead log is truncated after a checkpoint."""
_ADVICE: Final = (
    ("is full", "free some space on its file system"),
    ("readonly", "make the file and its directory writable for this user"),
    ("unable to open", "its directory must exist, and be writable where the journal is written"),
    ("disk I/O", "look into the system's log for the disk, and at limits on file size"),
    ("locked", "another process is writing to it; stop that one"),
    ("not a database", "name a journal of Outrider's, or move this file away"),
    ("malformed", "the file is damaged; move it away and begin a new one"),
)


@contextmanager
def naming_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn errors of SQLite into a `LedgerError` that names file, cause and remedy."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        advice = next((then for sign, then in _ADVICE if sign in str(error)), "")
        raise LedgerError(
            f"{path}: cannot {doing}: {error}" + (f"; {advice}" if advice else "")
        ) from error


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open the file, created if missing, in the present schema, for one writer.

    Raises:
        LedgerError: it cannot be opened, made or migrated.
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

    Reading a journal needs the small files ``-wal`` and ``-shm`` beside it. Where they are
    missing and cannot be made (a read-only directory), nobody writes the journal either, and it
    is read as an immutable file.

    Raises:
        LedgerError: it is missing, damaged, of another version or not a journal.
    """
    if not path.is_file():
        raise LedgerError(f"{path}: there is no journal here")
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
                else f"{path}: the file holds no journal yet"
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
# Backups of a journal, also of one that a daemon is writing.

log = structlog.get_logger()


def write_backup(source: sqlite3.Connection, target: Path) -> None:
    """Copy an open journal as it is at one moment; the file takes its name when it is whole.

    Args:
        source: open; it may be read and written meanwhile.
        target: replaced if it is there.

    Raises:
        OSError, sqlite3.Error: it could not be written; there is no such file from this.
    """
    beside = target.with_name(f"{target.name}.part")
    try:
        beside.unlink(missing_ok=True)
        with closing(sqlite3.connect(beside)) as copy:
            source.backup(copy)  # in one piece: in several it begins again after every write
        beside.chmod(0o600)  # it tells when owners sat at their machines
        sync_path(beside)
        beside.replace(target)
        sync_path(target.parent)
    except (OSError, sqlite3.Error):
        with suppress(OSError):  # the first error is raised
            beside.unlink(missing_ok=True)
        raise


def back_up_before_migration(source: sqlite3.Connection, path: Path, version: int) -> Path | None:
    """Keep a journal of an older version beside it, before it is brought up to date.

    Returns:
        Where it is; None if it could not be written, which the log tells: each step of a migration
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
    """Raise `LedgerError` where a backup would overwrite what it is made of."""
    if target.exists() and source.exists() and source.samefile(target):
        raise LedgerError(f"{target}: this is the journal itself; expected another file")


def sync_path(path: Path) -> None:
    """Make a file, or the names in a folder, safe against a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
