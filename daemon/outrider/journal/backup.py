"""Backups of a journal, also of one that a daemon is writing."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import structlog

from outrider.model.errors import LedgerError

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
        log.error("skip_backup", path=str(target), reason=str(error))
        return None
    log.warning("keep_old_journal", path=str(target), schema=version)
    return target


def refuse_same_file(source: Path, target: Path) -> None:
    """Raise `LedgerError` where a backup would overwrite what it is made of."""
    if target.exists() and source.exists() and source.samefile(target):
        raise LedgerError(f"{target}: this is the journal itself; right would be another file")


def sync_path(path: Path) -> None:
    """Make a file, or the names in a folder, safe against a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
