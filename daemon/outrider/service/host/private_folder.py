"""The state directory: owned by the daemon's user, closed to others; and the socket in it.

It contains personal data: which user's jobs ran when, and when owners were logged in. Other users
of the host must not read it.
"""

import errno
import os
import pwd
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from outrider.model.errors import LedgerError

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_FOLDER: Final = 0o700
_FILE: Final = 0o600
LONGEST_ADDRESS: Final = 107
"""Longest address of a Unix socket that the kernel accepts, in bytes."""


def make_private(folder: Path, patterns: Iterable[str]) -> list[str]:
    """Create a folder if necessary, and close it and our files in it to other users.

    A folder with foreign files keeps its permissions; only our files in it are closed.

    Args:
        folder: the folder.
        patterns: shell patterns of the names of our files.

    Returns:
        Notes for operators: what could not be closed, and the expected permissions.

    Raises:
        OSError: it cannot be created or listed.
    """
    folder.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
    entries = sorted(folder.iterdir())
    ours = {e.name for e in entries if any(fnmatchcase(e.name, each) for each in patterns)}
    notes = [note for entry in entries if entry.name in ours for note in _close(entry)]
    if not folder.stat().st_mode & _OTHERS:
        return notes
    foreign = [entry.name for entry in entries if entry.name not in ours]
    if foreign:
        notes.append(
            f"{folder}: other users can read it, and it contains other files ({foreign[0]!r}); "
            "expected a dedicated state_dir, mode 0700"
        )
        return notes
    return [*notes, *_close(folder.resolve())]


def refuse_strangers(folder: Path, patterns: Iterable[str]) -> None:
    """Refuse a folder that another user can write, or with files of ours that others have made.

    Such files would be believed: a token, the key of pseudonyms, the mode, the journal. A link
    could make root write elsewhere. A folder of the daemon's user that only has files of ours is
    closed to other writers first. A folder that does not exist is not refused.

    Args:
        folder: the folder.
        patterns: shell patterns of the names of our files.

    Raises:
        LedgerError: it is refused; the message has the reason.
        OSError: it cannot be examined.
    """
    try:
        link = folder.lstat()
    except FileNotFoundError:
        return
    status = folder.stat()
    for found in (link, status):
        if found.st_uid not in (0, os.geteuid()):
            raise _not_ours(folder, f"it belongs to {_user(found.st_uid)}")
    ours, foreign = _entries(folder, patterns)
    if status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
        if foreign or status.st_uid != os.geteuid():
            raise _not_ours(folder, "other users can write there")
        folder.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS_WRITE)
        ours, _ = _entries(folder, patterns)
    inside = [each for entry in ours if _is_folder(entry) for each in entry.iterdir()]
    for entry in (*ours, *inside):
        why = _why_not_ours(entry.lstat())
        if why:
            raise _not_ours(entry, why)


def _entries(folder: Path, patterns: Iterable[str]) -> tuple[list[Path], list[Path]]:
    """Return the entries with names of ours, and the others."""
    entries, patterns = sorted(folder.iterdir()), list(patterns)
    ours = [e for e in entries if any(fnmatchcase(e.name, each) for each in patterns)]
    return ours, [entry for entry in entries if entry not in ours]


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)


def _why_not_ours(status: os.stat_result, *uids: int) -> str:
    """Return why a file is not believed; empty if it is."""
    if stat.S_ISLNK(status.st_mode):
        return "it is a link"
    if status.st_uid not in (0, os.geteuid(), *uids):
        return f"it belongs to {_user(status.st_uid)}"
    is_socket = stat.S_ISSOCK(status.st_mode)  # its mode may let others connect
    if status.st_mode & _OTHERS_WRITE and not is_socket:
        return "other users can write it"
    if not (is_socket or stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return "it is not a regular file"
    return ""


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except (KeyError, OSError):
        return f"user {uid}"


def _not_ours(path: Path, why: str) -> LedgerError:
    return LedgerError(
        f"{path}: not used, because {why}; expected a state_dir and files in it that only the "
        f"daemon's user ({_user(os.geteuid())}) or root can write, and no links"
    )


def open_owned(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a file of ours, which is created closed to others if the flags demand it.

    The owner is root, the current user, or the owner of its folder: root reads a service's files.

    Raises:
        OSError: it cannot be opened, is a link, or other users may have written it.
    """
    safe = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags | safe, _FILE)
    try:
        why = _why_not_ours(os.fstat(descriptor), path.parent.stat().st_uid)
        if why:
            raise PermissionError(errno.EPERM, f"not used, because {why}", str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_owned(path: Path) -> bytes:
    """Return the contents of a file of ours. Raises `OSError`, see `open_owned`."""
    with os.fdopen(open_owned(path), "rb") as file:
        return file.read()


def make_private_file(path: Path) -> None:
    """Create an empty file closed to other users, unless it exists. Raises `OSError`."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE))
    except FileExistsError:
        return


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """Yield the address of a Unix socket, valid as long as the context is open.

    A state directory may have a longer path than the kernel accepts. The address then names the
    folder by a descriptor of this process.

    Raises:
        OSError: the path is too long, and its folder cannot be opened.
    """
    if len(os.fsencode(path)) <= LONGEST_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _close(path: Path) -> Iterator[str]:
    """Close a file, or a folder and its files, to other users; yield what failed."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return
        if stat.S_ISDIR(mode):
            for entry in path.iterdir():
                if entry.is_file():
                    yield from _close(entry)
        if mode & _OTHERS:
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
    except OSError as error:
        yield (
            f"{path}: other users may be able to read it: {error.strerror}; expected "
            "the daemon's user as owner, mode 0600 (a folder 0700)"
        )
