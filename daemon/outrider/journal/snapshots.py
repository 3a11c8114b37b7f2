"""Snapshots of the state of site and policies at a sequence number of the journal."""

import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from outrider.journal.connection import naming_errors
from outrider.model.errors import LedgerError

MAGIC: Final = b"OUTRIDER"
FORMAT_VERSION: Final = 1
MIN_LEAP_S: Final = 7_200.0
LEAP_KEPT_S: Final = 7 * 86_400.0
_LEAPS_KEPT: Final = 3

_HEADER: Final = struct.Struct(">8sIQ32s")
"""Header of a file: magic, format version, sequence number, SHA-256 of all but the magic."""


class Snapshot(NamedTuple):
    """State of site and policies, and the journal's sequence number to which it belongs."""

    seq: int
    state: Any


class Leap(NamedTuple):
    """Jump of the clock between two snapshots, by their dates.

    Attributes:
        before, after: the files.
        before_s: date of the first, Unix seconds.
    """

    before: Path
    after: Path
    before_s: float


class SnapshotStore:
    """Folder of snapshots; each is written to a temporary file and renamed, so none is partial.

    A snapshot is flushed to disk before `save` returns; the journal is not (see `Journal`). Call
    `Journal.sync` first, and pass the journal's last number to `load_latest`.

    Args:
        folder: created if missing.
        keep: how many snapshots to keep; more than one, so that there is one to fall back to.

    Attributes:
        notes: for the operator: snapshots that could not be used, and why.
        leap_s: seconds between the dates of two successive snapshots above which the clock must
            have jumped, or nothing ran.
    """

    def __init__(self, folder: Path | str, keep: int = 3) -> None:
        if keep < 1:
            raise ValueError(f"keep = {keep}: at least one snapshot must be kept")
        self.folder = Path(folder)
        self.keep = keep
        self.notes: list[str] = []
        self.leap_s = MIN_LEAP_S

    def save(self, seq: int, state: Any, time_s: float | None = None) -> Path:
        """Write a snapshot: encode it with `packed`, then `write` it."""
        return self.write(seq, self.packed(seq, state), time_s)

    def packed(self, seq: int, state: Any) -> bytes:
        """Return a snapshot in the form of its file.

        Args:
            seq: everything up to this sequence number is in the state, nothing after it.
            state: plain data, as msgspec writes it as MessagePack: tuples come back as lists,
                records as dicts; integers have at most 64 bits.

        Raises:
            LedgerError: the state cannot be encoded.
        """
        try:
            body = msgspec.msgpack.encode(state)
        except (TypeError, ValueError, OverflowError) as error:
            raise LedgerError(f"{self.folder}: the state cannot be saved: {error}") from error
        header = _HEADER.pack(MAGIC, FORMAT_VERSION, seq, _checksum(FORMAT_VERSION, seq, body))
        return header + body

    def write(self, seq: int, packed: bytes, time_s: float | None = None) -> Path:
        """Write a packed snapshot, then remove those beyond `keep`.

        Snapshots of a later sequence number are removed too: they belong to another history
        (`load_latest` skipped them). Those on both sides of a clock jump stay for a week (`leaps`):
        if the clock was wrong, the state is rebuilt from before it.

        Args:
            seq: its sequence number.
            packed: what `packed` returned.
            time_s: Unix seconds now, the date of the file; None: the system's date.

        Raises:
            LedgerError: it could not be written; the older snapshots are untouched.
        """
        path = self.folder / f"snapshot-{seq:020d}.bin"
        with naming_errors(path, "write the snapshot"):
            self.folder.mkdir(parents=True, exist_ok=True)
            _write_and_swap(path, packed)
            if time_s is not None:
                os.utime(path, (time_s, time_s))
            self._remove_surplus(path)
        return path

    def load_latest(self, not_after: int | None = None) -> Snapshot | None:
        """Return the newest valid snapshot, or None; `notes` lists those that were skipped.

        Args:
            not_after: the journal's last sequence number. A snapshot beyond it has seen what
                the journal lost in a power failure, and would see it twice.
        """
        return next(self.newest_first(not_after), None)

    def newest_first(self, not_after: int | None = None) -> Iterator[Snapshot]:
        """Yield the valid snapshots, read one by one; `notes` lists those that were skipped.

        Args:
            not_after: see `load_latest`.
        """
        for path in reversed(self.paths()):
            try:
                snapshot = read_snapshot(path)
            except LedgerError as error:
                self.notes.append(f"{error}; falling back to the snapshot before")
                continue
            if not_after is None or snapshot.seq <= not_after:
                yield snapshot
                continue
            self.notes.append(
                f"{path}: is at {snapshot.seq}, the journal ends at {not_after}; "
                "falling back to the snapshot before"
            )

    def paths(self) -> list[Path]:
        """Return the snapshot files, oldest first."""
        return sorted(self.folder.glob("snapshot-*.bin"))

    def oldest_seq(self) -> int:
        """Return the number of the oldest kept snapshot; 0 without one (`Journal.prune`)."""
        return min((_seq_of(path) for path in self.paths()), default=0)

    def leaps(self) -> list[Leap]:
        """Return the last few clock jumps within a week before the newest snapshot."""
        dated = self._dated()
        return [
            Leap(before, after, before_s)
            for (before, before_s), (after, after_s) in pairwise(dated)
            if after_s - before_s > self.leap_s and 0.0 <= dated[-1][1] - after_s < LEAP_KEPT_S
        ][-_LEAPS_KEPT:]

    def dated_until(self, time_s: float) -> bool:
        """Return whether there is a snapshot written at or before a time."""
        return any(at_s <= time_s for _, at_s in self._dated())

    def _dated(self) -> list[tuple[Path, float]]:
        """Return the snapshot files with their dates, oldest first."""
        dated = []
        for path in self.paths():
            with suppress(FileNotFoundError):  # another thread removes those beyond `keep`
                dated.append((path, path.stat().st_mtime))
        return dated

    def _remove_surplus(self, newest: Path) -> None:
        paths = self.paths()
        place = paths.index(newest)
        at_leaps = {path for leap in self.leaps() for path in (leap.before, leap.after)}
        surplus = [p for p in paths[: max(0, place + 1 - self.keep)] if p not in at_leaps]
        for path in surplus + paths[place + 1 :]:
            path.unlink(missing_ok=True)


def read_snapshot(path: Path) -> Snapshot:
    """Read and check one snapshot file.

    Raises:
        LedgerError: it is missing, damaged, cut short or of a newer format.
    """
    with naming_errors(path, "read the snapshot"):
        data = path.read_bytes()
    if len(data) < _HEADER.size:
        raise LedgerError(
            f"{path}: damaged snapshot: {len(data)} bytes, the header alone has {_HEADER.size}"
        )
    magic, version, seq, checksum = _HEADER.unpack_from(data)
    body = memoryview(data)[_HEADER.size :]
    if magic != MAGIC:
        raise LedgerError(f"{path}: not a snapshot: begins with {magic!r}, not {MAGIC!r}")
    if version > FORMAT_VERSION:
        raise LedgerError(
            f"{path}: snapshot format {version} is newer than this Outrider's {FORMAT_VERSION}"
        )
    if _checksum(version, seq, body) != checksum:
        raise LedgerError(f"{path}: damaged snapshot: its checksum does not match")
    try:
        return Snapshot(seq, msgspec.msgpack.decode(body))
    except msgspec.DecodeError as error:
        raise LedgerError(f"{path}: damaged snapshot: {error}") from error


def _checksum(version: int, seq: int, body: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(struct.pack(">IQ", version, seq))
    digest.update(body)
    return digest.digest()


def _seq_of(path: Path) -> int:
    digits = path.stem.removeprefix("snapshot-")
    return int(digits) if digits.isdigit() else 0


def _write_and_swap(path: Path, data: bytes) -> None:
    partial = path.with_suffix(".part")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        with suppress(OSError):  # the first error is raised
            partial.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name must survive a power failure too
    finally:
        os.close(folder)
