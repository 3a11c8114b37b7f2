"""The state directory closed to other users, whoever made it and with whichever umask.

It tells whose jobs ran when and when owners sat at their machines. That is nobody else's business,
not even on a host with other users.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_FOLDER: Final = 0o700
_FILE: Final = 0o600


def make_private(folder: Path, patterns: Iterable[str]) -> list[str]:
    """Make a folder if it is not there, and close it and our files in it to other users.

    A folder in which others keep files, too, stays as open as it is; ours in it are closed.

    Args:
        folder: the folder.
        patterns: of the names of what we keep there, as for a shell.

    Returns:
        Notes for the operator: what could not be closed, and what would be right.

    Raises:
        OSError: it cannot be made, or not be looked into.
    """
    folder.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
    entries = sorted(folder.iterdir())
    ours = {e.name for e in entries if any(fnmatchcase(e.name, each) for each in patterns)}
    notes = [note for entry in entries if entry.name in ours for note in _close(entry)]
    if not folder.stat().st_mode & _OTHERS:
        return notes
    strangers = [entry.name for entry in entries if entry.name not in ours]
    if strangers:
        notes.append(
            f"{folder}: other users can look into it, and it is not ours alone ({strangers[0]!r} "
            "is there, too); expected a state_dir of its own, mode 0700"
        )
        return notes
    return [*notes, *_close(folder.resolve())]


def make_private_file(path: Path) -> None:
    """Make an empty file that is closed to other users, unless it is there. Raises `OSError`."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE))
    except FileExistsError:
        return


def _close(path: Path) -> Iterator[str]:
    """Close a file, or a folder and what is in it, to other users; yields what failed."""
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
            f"{path}: other users may be able to read it: {error.strerror}; expected that "
            "the daemon's user owns it, mode 0600 (a folder 0700)"
        )
