"""The state directory: closed to other users, independent of the umask, and the socket in it.

It contains personal data: which user's jobs ran when, and when owners were logged in. Other users
of the host must not read it.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
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
