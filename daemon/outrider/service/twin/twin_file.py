"""``twin.json`` in the state directory: what the twin last answered, and about which policies."""

import os
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.twin.answer_file import Finite, TwinAnswer

TWIN_NAME: Final = "twin.json"
_MOST_BYTES: Final = 16 << 20
"""A file that is longer is none of ours."""


class Present(Struct, frozen=True):
    """Load and waste of the last two weeks on record, of the runs that ended in them.

    Attributes:
        until_s: where they end, Unix seconds.
        load_cpus: CPUs at work in the mean.
        waste_share: the part of their CPU time that was thrown away; None: nothing ran.
    """

    until_s: Finite
    load_cpus: Finite
    waste_share: Finite | None


class TwinFile(Struct, frozen=True, kw_only=True):
    """What stands in the file.

    Attributes:
        asked_s: when the asking began that gave the answer, Unix seconds; None: none ended yet.
        took_s: for how long it went on.
        answer: it; None with `asked_s`.
        candidates: the policies it is about, with their settings.
        longest_deferral_s: for how long these kept a job in the queue at most; None: no bound;
            unset: not told.
        next_weeks: length of the window that was forecast.
        failures: how many askings in a row, up to now, could not be done at all.
        asking_since_s: when the asking began that goes on; None: none does.
        present: load and waste now; None: not known.
    """

    asked_s: Finite | None = None
    took_s: Finite | None = None
    answer: TwinAnswer | None = None
    candidates: dict[str, dict[str, Any]] = {}
    longest_deferral_s: Finite | UnsetType | None = UNSET
    next_weeks: Finite | None = None
    failures: Annotated[int, Meta(ge=0)] = 0
    asking_since_s: Finite | None = None
    present: Present | None = None


class TwinFileError(Exception):
    """What stands there was not written by Outrider, or is damaged."""


def read(folder: Path) -> TwinFile | None:
    """What stands in the file of a state directory; None: there is none.

    Raises:
        TwinFileError: it cannot be read; the message says why, and what would be right.
    """
    plain = read_plain(folder)
    try:
        return None if plain is None else msgspec.convert(plain, TwinFile)
    except msgspec.ValidationError as error:
        raise _unreadable(folder / TWIN_NAME, error) from error


def read_plain(folder: Path) -> dict[str, Any] | None:
    """The same as plain data, with fields that only `outrider twin` knows. Raises as `read`."""
    path = folder / TWIN_NAME
    try:
        text = read_at_most(path, _MOST_BYTES)
        if text is None:
            return None
        plain: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise _unreadable(path, error) from error
    return plain


def write_plain(folder: Path, plain: dict[str, Any]) -> None:
    """Put it in the place of what stood there: whole, or not at all. Raises `OSError`."""
    write_whole(folder / TWIN_NAME, msgspec.json.encode(plain) + b"\n")


def _unreadable(path: Path, error: Exception) -> TwinFileError:
    return TwinFileError(
        f"{path}: cannot be read: {error}; expected what `outrider run-twin` writes: the "
        "next asking writes it anew"
    )


# -- whole file ------------------------------------------------------------------------------------
# Files in the state directory that the process beside the daemon writes and the daemon reads.

Stamp = tuple[int, int, int]


def write_whole(path: Path, content: bytes) -> None:
    """Put it in the place of what stood there: whole, or not at all; for its owner alone.

    Raises:
        OSError: it cannot be written, as on a full disk; what stood there stays.
    """
    part = path.with_name(f"{path.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def read_at_most(path: Path, most_bytes: int) -> bytes | None:
    """What stands in a file; None: there is none.

    Raises:
        OSError: it cannot be read.
        ValueError: it is longer, and so none of ours.
    """
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except FileNotFoundError:
        return None
    if len(content) > most_bytes:
        raise ValueError(f"it is longer than {most_bytes:,} bytes")
    return content


def stamp_of(path: Path) -> Stamp | None:
    """By which it is seen that a file is another one than before; None: there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
