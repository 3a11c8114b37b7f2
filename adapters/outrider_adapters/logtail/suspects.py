"""Records during whose reading the daemon died: read once more, alone, and then passed over."""

import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from outrider.api import InProgress
from outrider_adapters.logtail.identity import Place

COST_A_RESTART: Final = "cost_a_restart"
"""The reason under which a record that is passed over is counted as rejected."""

_MOST_HOLES: Final = 16
_RECORD_DEATHS: Final = 2
"""A kill of the process says nothing of the record that it was reading; a second in the same does.
"""
_MOST_DEATHS: Final = 10
"""Of a stretch whose records are harmless one by one: it may be their combination, or kills."""


class Stretch(msgspec.Struct):
    """Bytes of one file.

    Attributes:
        path, device, inode: of the file.
        start, end: first byte, and byte after the last.
        crc: of the bytes, for a file may be truncated and written anew.
        alone: it is one record, or as much of it as was tried, and what stands before it was read
            without harm.
        blind: what stands before it must not be read as the end of a file either.
        harmless: of one record: up to here (exclusive) it was tried without harm; 0: not at all.
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
    """Notes what is being read, and knows what the process before died of.

    The first death leaves a *suspect*, some hundred kilobytes: they are tried record by record
    before they are read again (`probe`), so that the second leaves one record. That is tried alone,
    and after a third death, in that very record, it is a *hole*: it is passed over, and counted.
    Holes stay on note until 16 others have followed, for the cursor behind one may not be on record
    yet when the next ends the process. A reader that raises is taken for a death.
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
        """While bytes of a file from `start` on are being read."""
        return self._noted(self._stretch(path, place, start, data, None))

    def trying(
        self, path: Path, place: Place, start: int, data: bytes, harmless: int
    ) -> AbstractContextManager[None]:
        """While one record from `start` on is tried, of which `harmless` is known (`Stretch`)."""
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
        """While what stands before a hole is read as if the file ended there."""
        return self._noted(msgspec.structs.replace(hole, blind=True))

    def forget(self, hole: Stretch) -> None:
        """The file has other bytes there now."""
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
        """The next record of this file that must not be read; None if there is none."""
        ahead = (h for h in self._holes if _is_of(h, path, place) and h.start >= place.offset)
        return min(ahead, key=lambda hole: hole.start, default=None)

    def suspect_ahead(self, path: Path, place: Place) -> Stretch | None:
        """What must be tried record by record from its start on; None if nothing of it is ahead."""
        suspect = self._suspect
        if suspect is None or not _is_of(suspect, path, place):
            return None
        return suspect if max(suspect.start, place.offset) < suspect.end else None

    def survived(self, end: int) -> None:
        """The suspect was read up to here, and nothing happened."""
        if self._suspect is not None:
            self._suspect.start = max(self._suspect.start, end)

    def _learn(self, stretch: Stretch) -> None:
        if stretch.deaths < (_RECORD_DEATHS if stretch.alone else _MOST_DEATHS):
            self._suspect = stretch
            return
        self._suspect = None
        self._holes = [h for h in self._holes if (h.path, h.start) != (stretch.path, stretch.start)]
        self._holes = [*self._holes, stretch][-_MOST_HOLES:]


def _is_of(stretch: Stretch, path: Path, place: Place) -> bool:
    return (stretch.path, stretch.device, stretch.inode) == (str(path), place.device, place.inode)
