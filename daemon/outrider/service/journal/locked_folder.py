"""The state directory, which one daemon at a time may use."""

import fcntl
from pathlib import Path
from typing import Final, TextIO

from outrider.model.errors import LedgerError
from outrider.service.config.state_folder import JOURNAL_NAME, TOKEN_NAME
from outrider.service.core.pseudonyms import KEY_NAME
from outrider.service.host.private_folder import make_private, make_private_file

SNAPSHOTS_NAME: Final = "snapshots"
_LOCK_NAME: Final = "lock"
_OURS: Final = (
    f"{JOURNAL_NAME}*", SNAPSHOTS_NAME, KEY_NAME, TOKEN_NAME, _LOCK_NAME, "in-progress-*.json",
    "mode-limit.*", "undo.sqlite*", "twin.*", "starts.json*",
    f"before-schema-*-{JOURNAL_NAME}*", f"damaged-*-{JOURNAL_NAME}*",
)  # fmt: skip
"""Patterns of the names that the daemon gives files in its state directory."""


def open_locked(folder: Path) -> tuple[list[str], TextIO]:
    """Make the folder, close it to other users, and lock it until the file returned is closed.

    Returns:
        notes for the operator, one sentence each, and the lock's file.

    Raises:
        LedgerError: it cannot be written, or another daemon uses it.
    """
    try:
        notes = make_private(folder, _OURS)
        make_private_file(folder / JOURNAL_NAME)
        make_private_file(folder / _LOCK_NAME)
        file = (folder / _LOCK_NAME).open("w", encoding="ascii")
    except OSError as error:
        raise LedgerError(
            f"{folder}: cannot be written: {error.strerror}; right would be a folder that the "
            "daemon owns (state_dir)"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise LedgerError(f"{folder}: another Outrider uses this state directory") from error
    return notes, file


def is_in_use(folder: Path) -> bool:
    """Whether a daemon runs with this state directory, as far as we may know."""
    try:
        with (folder / _LOCK_NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # there is no such folder, or it is not open to us
    return False
