"""Opening the SQLite file, with errors that name file, cause and remedy."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from outrider.journal import schema
from outrider.journal.backup import back_up_before_migration
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
