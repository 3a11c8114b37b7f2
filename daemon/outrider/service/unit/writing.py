"""Writing files of the service: again and again, but never over what somebody else has changed."""

import hashlib
import os
from pathlib import Path
from typing import Final, NamedTuple

_MARK: Final = "# Made by `outrider install-service`, which writes beside it once it was changed: "
_BESIDE: Final = ".new"
_MODE: Final = 0o644


class UnitFile(NamedTuple):
    """A file of the service.

    Attributes:
        path: where it belongs.
        text: what it says; empty: it is not needed, and goes if it is ours.
    """

    path: Path
    text: str


class Written(NamedTuple):
    """What became of a file.

    Attributes:
        path: where it is, or would be.
        did: ``written``, ``replaced``, ``unchanged``, ``beside``, ``removed`` or ``kept``.
        why: of ``beside`` and ``kept``.
    """

    path: Path
    did: str
    why: str = ""


def marked(text: str) -> str:
    """A text with a first line from which it can be told whether somebody changed it."""
    return f"{_MARK}{_digest(text)}\n{text}"


def is_ours(text: str) -> bool:
    """Whether a file is as it was written here."""
    first, _, rest = text.partition("\n")
    return first.startswith(_MARK) and first.removeprefix(_MARK) == _digest(rest)


def write(file: UnitFile, root: Path, *, dry_run: bool = False) -> Written | None:
    """Write a file below a root, or beside the one that somebody changed; None: there is none.

    Raises:
        OSError: it cannot be read or written.
    """
    path = root / file.path.relative_to("/")
    there = path.read_text(encoding="utf-8", errors="replace") if path.exists() else None
    if not file.text:
        return _remove(path, there, dry_run=dry_run)
    text = marked(file.text)
    if there is None:
        _put(path, text, dry_run=dry_run)
        return Written(path, "written")
    if there == text:
        return Written(path, "unchanged")
    if is_ours(there) or there == file.text:
        _put(path, text, dry_run=dry_run)
        return Written(path, "replaced")
    beside = path.with_name(path.name + _BESIDE)
    _put(beside, text, dry_run=dry_run)
    return Written(beside, "beside", f"{path} is not as this command writes it, and stays")


def _remove(path: Path, there: str | None, *, dry_run: bool) -> Written | None:
    if there is None:
        return None
    if not is_ours(there):
        return Written(path, "kept", "not needed any more, but somebody changed it")
    if not dry_run:
        path.unlink()
    return Written(path, "removed")


def _put(path: Path, text: str, *, dry_run: bool) -> None:
    if dry_run:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.chmod(_MODE)
    os.replace(part, path)  # noqa: PTH105 - the same


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
