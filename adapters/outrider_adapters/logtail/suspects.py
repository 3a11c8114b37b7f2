"""Records whose reading crashed the daemon: retried alone, then skipped."""

import os
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from outrider.api import InProgress, LogReader
from outrider_adapters.logtail.identity import OpenFile, Place

COST_A_RESTART: Final = "cost_a_restart"
"""Rejection reason of a record that is skipped."""

_MAX_HOLES: Final = 16
_MAX_RECORD_DEATHS: Final = 2
"""Deaths in one record before it is skipped; a single kill may have another cause."""
_MAX_DEATHS: Final = 10
"""Deaths in a stretch of records that are harmless one by one, before it is skipped."""


class Stretch(msgspec.Struct):
    """A range of bytes in one file.

    Attributes:
        path, device, inode: identity of the file.
        start, end: first byte, and byte after the last.
        crc: checksum of the bytes, since a file may be truncated and rewritten.
        alone: it is one record, or the part of it that was tried, and the bytes before it were read
            without a crash.
        blind: the bytes before it must not be read as the end of a file either.
        harmless: end (exclusive) of the part of one record that was tried without a crash; 0: none.
        deaths: how often the process died in it.
    """

    path: str
    device: int
    inode: int
    start: int
    end: int
    crc: int
    alone: bool = False
    blind: bool = False
    harmless: int = 0
    deaths: int = 1


class _Note(msgspec.Struct):
    holes: list[Stretch] = []
    reading: Stretch | None = None


class Suspects:
    """Record of what is being read, and of what the last process died in.

    The first death leaves a *suspect*, some hundred kilobytes. It is tried record by record before
    it is read again (`probe`), so that the second death leaves one record. That record is tried
    alone. After a third death in the same record it is a *hole*: it is skipped, and counted. Holes
    are kept until 16 others have followed, since the cursor behind one may not be saved yet when
    the next ends the process. A reader that raises an exception counts as a death.
    """

    def __init__(self, in_progress: InProgress) -> None:
        self._in_progress = in_progress
        self._holes: list[Stretch] = []
        self._suspect: Stretch | None = None
        try:
            left = msgspec.convert(in_progress.left or {}, _Note)
        except msgspec.ValidationError:  # of another version, or of another kind of adapter
            return
        self._holes = left.holes
        if left.reading is not None:
            self._learn(left.reading)

    def reading(
        self, path: Path, place: Place, start: int, data: bytes
    ) -> AbstractContextManager[None]:
        """Return a context for reading bytes of a file from `start` on."""
        return self._noted(self._stretch(path, place, start, data, None))

    def trying(
        self, path: Path, place: Place, start: int, data: bytes, harmless: int
    ) -> AbstractContextManager[None]:
        """Return a context for trying one record from `start` on; see `Stretch` for `harmless`."""
        return self._noted(self._stretch(path, place, start, data, harmless))

    def _stretch(
        self, path: Path, place: Place, start: int, data: bytes, harmless: int | None
    ) -> Stretch:
        alone, end = harmless is not None, start + len(data)
        stretch = Stretch(
            str(path), place.device, place.inode, start, end, zlib.crc32(data), alone=alone,
            harmless=harmless or 0,
        )  # fmt: skip
        suspect = self._suspect
        if suspect is not None and _is_of(suspect, path, place) and start < suspect.end:
            stretch.deaths += suspect.deaths if suspect.alone == alone else 0
        return stretch

    def nearing(self, hole: Stretch) -> AbstractContextManager[None]:
        """Return a context for reading the bytes before a hole as the end of the file."""
        return self._noted(msgspec.structs.replace(hole, blind=True))

    def forget(self, hole: Stretch) -> None:
        """Forget a hole: the file has other bytes there now."""
        self._holes = [other for other in self._holes if other is not hole]

    @contextmanager
    def _noted(self, stretch: Stretch) -> Iterator[None]:
        self._in_progress.note(msgspec.to_builtins(_Note(self._holes, stretch)))
        try:
            yield
        except Exception:
            self._learn(stretch)
            raise
        finally:
            self._in_progress.note(msgspec.to_builtins(_Note(self._holes)) if self._holes else None)

    def hole_ahead(self, path: Path, place: Place) -> Stretch | None:
        """Return the next record of this file that must not be read; None if there is none."""
        ahead = (h for h in self._holes if _is_of(h, path, place) and h.start >= place.offset)
        return min(ahead, key=lambda hole: hole.start, default=None)

    def suspect_ahead(self, path: Path, place: Place) -> Stretch | None:
        """Return the suspect to try record by record; None if none of it is ahead."""
        suspect = self._suspect
        if suspect is None or not _is_of(suspect, path, place):
            return None
        return suspect if max(suspect.start, place.offset) < suspect.end else None

    def survived(self, end: int) -> None:
        """Record that the suspect was read up to here without a crash."""
        if self._suspect is not None:
            self._suspect.start = max(self._suspect.start, end)

    def _learn(self, stretch: Stretch) -> None:
        if stretch.deaths < (_MAX_RECORD_DEATHS if stretch.alone else _MAX_DEATHS):
            self._suspect = stretch
            return
        self._suspect = None
        self._holes = [h for h in self._holes if (h.path, h.start) != (stretch.path, stretch.start)]
        self._holes = [*self._holes, stretch][-_MAX_HOLES:]


def _is_of(stretch: Stretch, path: Path, place: Place) -> bool:
    return (stretch.path, stretch.device, stretch.inode) == (str(path), place.device, place.inode)


# -- probing ---------------------------------------------------------------------------------------
# Retry record by record what the last process died in, to find the one record at fault.

_MAX_CUTS: Final = 4_096
"""Maximum number of trials in one suspect; each is recorded in a file first."""
_LONG_BYTES: Final = 4_096
_GROWTH_DIVISOR: Final = 8
"""A longer record grows by this fraction, not by a line: else the cost is quadratic."""
_FINE_PIECES: Final = 64
"""Pieces of a fraction that are tried separately after a crash in it.

Bytes behind the record in the same piece, some hundred, are lost with it.
"""


def probe(suspects: Suspects, path: Path, file: OpenFile, reader: LogReader, end: int) -> None:
    """Try the suspect of a file, if one is ahead, with a scratch reader; discard the result.

    What is read grows from the beginning of a record, so that all of it costs some times what
    reading it once does.

    Args:
        suspects: knows what the process died in, and records what is tried.
        path: path of the log.
        file: the file, at the position of the reader.
        reader: reader of the log; only its state is used.
        end: end of the range to read now.
    """
    suspect = suspects.suspect_ahead(path, file.place)
    if suspect is None:
        return
    start, stop = max(suspect.start, file.place.offset), min(suspect.end, end)
    if start >= stop:
        return
    data = os.pread(file.descriptor, stop - start, start)
    scratch = type(reader)(reader.options)
    scratch.restore(reader.save())
    min_step = max(1, len(data) // _MAX_CUTS)
    if suspect.harmless > start:
        min_step = max(1, (stop - suspect.harmless) // _FINE_PIECES)
    record, cut = 0, max(0, suspect.harmless - start)
    while cut < len(data):
        harmless, grown = cut, cut - record
        step = max(
            min_step,
            grown // _GROWTH_DIVISOR if grown > _LONG_BYTES and not suspect.harmless else 1,
        )
        cut = data.find(b"\n", cut + step - 1) + 1 or len(data)
        piece = data[record:cut]
        with suspects.trying(path, file.place, start + record, piece, start + harmless):
            # a final read holds nothing back: what it leaves is the beginning of a record
            record += scratch.read(piece, final=True).consumed
        suspects.survived(start + record)
    suspects.survived(stop)
