"""``twin.json`` in the state directory: the twin's last result, with the policies it is about."""

import os
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.service.host.private_folder import open_owned
from outrider.twin.answer_file import Finite, TwinAnswer

TWIN_NAME: Final = "twin.json"
_MAX_BYTES: Final = 16 << 20
"""Largest size of a valid file."""


class Present(Struct, frozen=True):
    """Load and waste of the last two weeks on record, of the runs that ended in them.

    Attributes:
        until_s: end of the two weeks, Unix seconds.
        load_cpus: CPUs in use on average.
        waste_share: ratio of their CPU time that was wasted; None: nothing ran.
    """

    until_s: Finite
    load_cpus: Finite
    waste_share: Finite | None


class TwinFile(Struct, frozen=True, kw_only=True):
    """The contents of the file.

    Attributes:
        asked_s: when the run that gave the result began, Unix seconds; None: none ended yet.
        took_s: duration of that run.
        answer: the result; None with `asked_s`.
        candidates: the policies it is about, with their settings.
        longest_deferral_s: most seconds for which these deferred a job; None: no limit; unset:
            unknown.
        next_weeks: length of the forecast window.
        failures: number of consecutive runs, up to now, that failed.
        asking_since_s: when the current run began; None: none is in progress.
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
    """A file that was not written by Outrider, or is damaged."""


def read(folder: Path) -> TwinFile | None:
    """Read the twin's file in a state directory; None: there is none.

    Raises:
        TwinFileError: it cannot be read; the message names the cause and what is expected.
    """
    plain = read_plain(folder)
    try:
        return None if plain is None else msgspec.convert(plain, TwinFile)
    except msgspec.ValidationError as error:
        raise _unreadable(folder / TWIN_NAME, error) from error


def read_plain(folder: Path) -> dict[str, Any] | None:
    """Read the file as plain data, with the fields that only `outrider twin` uses.

    Raises as `read`.
    """
    path = folder / TWIN_NAME
    try:
        text = read_at_most(path, _MAX_BYTES)
        if text is None:
            return None
        plain: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise _unreadable(path, error) from error
    return plain


def write_plain(folder: Path, plain: dict[str, Any]) -> None:
    """Replace the file atomically. Raises `OSError`."""
    write_whole(folder / TWIN_NAME, msgspec.json.encode(plain) + b"\n")


def _unreadable(path: Path, error: Exception) -> TwinFileError:
    return TwinFileError(
        f"{path}: cannot be read: {error}; expected a file written by `outrider run-twin`; its "
        "next run replaces this one"
    )


# -- whole file ------------------------------------------------------------------------------------
# Files in the state directory that the twin process writes and the daemon reads.

Stamp = tuple[int, int, int]


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file atomically; only its owner may read it.

    Raises:
        OSError: it cannot be written, as on a full disk; the old file stays.
    """
    part = path.with_name(f"{path.name}.part")
    descriptor = open_owned(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def read_at_most(path: Path, max_bytes: int) -> bytes | None:
    """Read a whole file; None: there is none.

    Raises:
        OSError: it cannot be read.
        ValueError: it is longer than allowed, and so not written by Outrider.
    """
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except FileNotFoundError:
        return None
    if len(content) > max_bytes:
        raise ValueError(f"it is longer than {max_bytes:,} bytes")
    return content


def stamp_of(path: Path) -> Stamp | None:
    """Return a stamp that changes whenever a file is replaced; None: there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
