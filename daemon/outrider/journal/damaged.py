"""Opening a journal that may be damaged so that nothing can be written to it any more."""

import time
from pathlib import Path
from typing import Final

import structlog

from outrider.journal.connection import naming_errors
from outrider.journal.journal import Journal
from outrider.journal.schema import APPLICATION_ID
from outrider.model.errors import LedgerError

_OWNER_AT: Final = 68
"""Where a file of SQLite's has the number of the application it belongs to, in four bytes."""
_SIGNS: Final = (
    "malformed", "not a database", "unsupported file format", "no such table", "no such column",
    "already exists", "duplicate column", "Could not decode", "file is encrypted", "constraint",
    "corrupt",
)  # fmt: skip
"""What SQLite says of damage. A disk that is full, read-only or unreadable is another matter."""

log = structlog.get_logger()


def open_or_begin_anew(path: Path) -> tuple[Journal, str | None]:
    """The journal, open for writing. A damaged one that cannot be is put aside, and begun anew.

    Returns:
        The journal, and what to tell the operator where it was mended or put aside.

    Raises:
        LedgerError: it cannot be opened for another reason: it is no journal of ours, one of a
            newer release, or the disk does not let us.
    """
    try:
        return _opened(path)
    except (LedgerError, IndexError, TypeError, ValueError) as error:
        if not (_is_ours(path) and _is_damage(error)):
            raise
        aside = _put_aside(path)
        note = (
            f"the journal was damaged and could not be opened ({error}); it was put aside as "
            f"{aside}, and another was begun: what was learned is learned anew from the sources"
        )
        log.critical("begin_new_journal", path=str(path), aside=str(aside), reason=str(error))
        return Journal(path), note


def _opened(path: Path) -> tuple[Journal, str | None]:
    """The journal, after a look at what every write needs, and what was mended."""
    journal = Journal(path)
    note = None
    try:
        journal.probe()
        if journal.mend_counter():
            note = f"{path}: its counter was behind its last row, and was set to it"
            log.error("mend_counter", path=str(path))
        _probe_writing(journal)
    except BaseException:
        journal.close()
        raise
    return journal, note


def _probe_writing(journal: Journal) -> None:
    """Raise `LedgerError` where damage would keep rows from being written; a full disk may be."""
    try:
        journal.probe_writing()
    except LedgerError as error:
        if _is_damage(error):
            raise
        log.error("fail_writing", reason=str(error))


def _is_ours(path: Path) -> bool:
    """Whether the header says so, whatever else is damaged."""
    with naming_errors(path, "read the journal"), path.open("rb") as file:
        header = file.read(_OWNER_AT + 4)
    return header[_OWNER_AT:] == APPLICATION_ID.to_bytes(4, "big")


def _is_damage(error: Exception) -> bool:
    return not isinstance(error, LedgerError) or any(sign in str(error) for sign in _SIGNS)


def _put_aside(path: Path) -> Path:
    """Rename the journal and what belongs to it; returns its new name."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = path.with_name(f"damaged-{stamp}-{path.name}")
    with naming_errors(path, "put the damaged journal aside"):
        for ending in ("", "-wal", "-shm"):
            part = path.with_name(path.name + ending)
            if part.exists():
                part.rename(aside.with_name(aside.name + ending))
    return aside
