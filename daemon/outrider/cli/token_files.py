"""Making a token's file: closed to other users before the token is in it."""

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

from outrider.model.errors import ConfigurationError

_MODE: Final = 0o600
_TOKEN_BYTES: Final = 32


def make_token(path: Path, *, replace: bool) -> str:
    """Write a random token into a file of mode 0600, which is there whole or not at all.

    The file belongs to the owner of its folder, so that root may make it for a daemon.

    Args:
        path: the file; its folder has to be there.
        replace: whether to replace a token that is there.

    Returns:
        What was done, as a sentence.

    Raises:
        ConfigurationError: it cannot be written; the message names the file and the cause.
    """
    is_there = path.exists() or path.is_symlink()
    if is_there and not replace:
        closed = _close(path)
        return f"{path}: there is a token already; it stays (--new replaces it){closed}."
    beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _MODE)
        try:
            with os.fdopen(file, "w", encoding="ascii") as text:
                text.write(secrets.token_hex(_TOKEN_BYTES) + "\n")
                text.flush()
                os.fchmod(text.fileno(), _MODE)
                owned_by = _give_to_owner_of(path.parent, text.fileno())
                os.fsync(text.fileno())
            beside.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        raise ConfigurationError(
            f"{path}: the token cannot be written: {error.strerror}; right would be a folder that "
            "is there and that you may write, or root"
        ) from error
    done = "replaced the token" if is_there else "made a token"
    return f"{path}: {done}, mode 0600{owned_by}."


def _give_to_owner_of(folder: Path, file: int) -> str:
    owner = folder.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return ""
    os.fchown(file, owner.st_uid, owner.st_gid)
    return f", owned by user {owner.st_uid} as its folder is"


def _close(path: Path) -> str:
    """Close a file to other users, if it is open to them; what was done, as half a sentence."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if not os.fstat(file).st_mode & 0o077:
                return ""
            os.fchmod(file, _MODE)
        finally:
            os.close(file)
    except OSError as error:
        raise ConfigurationError(
            f"{path}: cannot be closed to other users: {error.strerror}; right would be a file of "
            "your own, mode 0600"
        ) from error
    return "; other users could read it: it has mode 0600 now"
