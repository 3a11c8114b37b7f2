"""Follow one log through growth, rotation, truncation, absence and restarts."""

import os
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from outrider.api import InProgress, LogReader, NamedEvent, ReaderOptions, Reading, log_name_of
from outrider_adapters.logtail.identity import (
    OpenFile,
    Place,
    find,
    open_file,
    place_at_start,
    rotated_files,
    status_of,
)
from outrider_adapters.logtail.readers import HEAD_BYTES, Readers
from outrider_adapters.logtail.suspects import COST_A_RESTART, Stretch, Suspects, probe

# -- slices ----------------------------------------------------------------------------------------
# Results of steps along a log.


class Slice(msgspec.Struct):
    """Result of one step along a log.

    Attributes:
        events, rejected, ignored: see `outrider.api.Batch`.
        size: bytes consumed.
        progress: something was read or changed; another step makes sense immediately.
        history: all of it was written before the first start.
        caught_up: nothing readable is left in the file, and it is the newest.
        problem: why the log cannot be read: it does not exist, or is no log; empty: it can.
        may_pass: the problem may be over soon.
        notes: information for the person on call.
        owner: number of the user who owns the file with these events.
    """

    events: list[NamedEvent] = []
    rejected: Counter[str] = msgspec.field(default_factory=Counter)
    ignored: Counter[str] = msgspec.field(default_factory=Counter)
    size: int = 0
    progress: bool = False
    history: bool = False
    caught_up: bool = False
    problem: str = ""
    may_pass: bool = False
    notes: list[str] = []
    owner: int = 0


# -- tail ------------------------------------------------------------------------------------------

SLICE_BYTES: Final = 1 << 18
_MAX_SLICE_BYTES: Final = 1 << 25
END_BYTES: Final = 1 << 20
"""Bytes without a record after which the end of the file, as long, is looked at for one."""
_GARBAGE: Final = "garbage"
"""Rejection reason of bytes that are passed over."""
_REMEMBERED_FILES: Final = 8


class Tail:
    """Follower of one log under one path. Synchronous; a step reads one slice, and may hang.

    Args:
        path: path of the live log.
        readers: the log readers.
        timezone, system: see `ReaderOptions`.
        clock: Unix seconds now.
        settle_s: quiet seconds after which nothing more is expected to explain the last record.
        history: the file's content at the first step is history.
        suspects: records what is being read, and knows what the last process died in.
        rests: the file is closed while nothing is written to it.

    Attributes:
        changes: counter that grows with each step that may change the value of `save`.
    """

    def __init__(
        self,
        path: Path,
        readers: Readers,
        timezone: str | None,
        clock: Callable[[], float],
        settle_s: float,
        history: bool = False,
        system: str | None = None,
        suspects: Suspects | None = None,
        rests: bool = False,
    ) -> None:
        self.path = path
        self._suspects = suspects or Suspects(InProgress())
        self._readers = readers
        self._timezone = timezone
        self._system = system
        self._clock = clock
        self._settle_s = settle_s
        self._file: OpenFile | None = None
        self._place: Place | None = None
        self._reader: LogReader | None = None
        self._saved_reader: tuple[str, Any] | None = None
        self._reader_before: tuple[str, Any] | None = None  # state at the end of the previous file
        self._left: list[list[int]] = []  # device, inode, mtime of files that are finished
        self._seen = (-1, -1)  # size and mtime at the last look
        self._grown_at_s = 0.0
        self._flushed_size = -1
        self._unread = 0
        self._history_until = 0
        self._is_new = history
        self._refused = False  # records were read, and none was understood
        self._understood = False
        self._rests = rests
        self._resting: tuple[tuple[int, ...], Slice] | None = None  # a look at the closed file
        self._barren = 0  # bytes since the last record that was understood
        self._barren_until = END_BYTES
        self.changes = 0

    def save(self) -> dict[str, Any]:
        """Return the position in the log, as JSON types."""
        reader, before = self._save_reader(), self._reader_before
        return {
            "path": str(self.path),
            "place": msgspec.to_builtins(self._place),
            "reader": list(reader) if reader else None,
            "reader_before": list(before) if before else None,
            "left": list(self._left),
            "history_until": self._history_until,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from the value of `save`. Raises `ValueError` or `KeyError` if it does not fit."""
        place = saved["place"]
        self._place = None if place is None else msgspec.convert(place, Place)
        self._saved_reader = tuple(saved["reader"]) if saved["reader"] else None
        self._reader_before = tuple(saved["reader_before"]) if saved["reader_before"] else None
        self._left = [list(entry) for entry in saved["left"]]
        self._history_until = saved["history_until"]
        self._is_new = False
        self._understood = self._place is not None and self._place.offset > 0

    @property
    def writer(self) -> str:
        """Name of the log for `Claims`: its path without what a rotation adds, if users write it.

        Otherwise a batch system does, perhaps a new file a day: all those of a folder and an owner.
        """
        if self._reader is None or self._reader.users_write:
            return str(self.path.with_name(log_name_of(self.path.name) or self.path.name))
        owner = self._file.status().st_uid if self._file else ""
        return f"{self.path.parent}/ {self._reader.name} {owner}"

    @property
    def offset(self) -> int:
        """First byte of the log's file that is not consumed yet."""
        return self._place.offset if self._place else 0

    @property
    def inode(self) -> int | None:
        """Inode of the log's file; None if none was opened yet."""
        return self._place.inode if self._place else None

    @property
    def modified_s(self) -> float:
        """Unix seconds when the log was last seen to change; 0 if it never was."""
        return self._place.modified_ns / 1e9 if self._place else 0.0

    @property
    def in_history(self) -> bool:
        """True if the next slice was written before the first start."""
        return self._is_new or self._history_until > (self._place.offset if self._place else 0)

    def close(self) -> None:
        """Close the open file, if any."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def is_open(self) -> bool:
        """True if a file is open, even a renamed one; a deleted one is closed when read."""
        return self._file is not None

    def mark_history(self, size: int | None = None) -> None:
        """Mark the file's content as history: that of this size, or else the present one.

        Without a size it may hang, so the first step does it.
        """
        before = status_of(self.path) if size is None else None
        self._history_until = size or (before.st_size if before else 0)
        self._is_new = False
        self.changes += 1

    def step(self) -> Slice:
        """Read the next slice of the log, if there is one.

        Raises:
            OSError: the file is there and cannot be read.
        """
        part = Slice()
        if self._resting is not None and _look(status_of(self.path)) == self._resting[0]:
            seen = self._resting[1]
            return Slice(caught_up=seen.caught_up, problem=seen.problem, may_pass=seen.may_pass)
        self._resting = None
        if self._is_new:
            self.mark_history()
        file = self._file or self._open(part)
        if file is None:
            part.problem = f"{self.path} is not there"
            return part
        status = file.status()
        if self._changed(file, status) and not file.holds_its_place():
            self._start_over(part, file)
            return part
        if file.place.offset < status.st_size and self._flushed_size != status.st_size:
            self._read(part, file, status)
            if part.progress:
                return part
        self._check_live_file(part, file, status)
        nothing_read = self._refused or (self._unread and self._flushed_size == status.st_size)
        if nothing_read and not self._understood and self._reader and not part.problem:
            part.may_pass = not self._refused  # the first record may be half written
            part.problem = f"{self.path}: none of its records can be read as {self._reader.name}"
        if self._rests and not part.progress and self._is_quiet(status):
            self._rest(part, status)
        return part

    def _rest(self, part: Slice, status: os.stat_result) -> None:
        """Close a file to which nothing is written; a look at its path shows when to open it."""
        live = status_of(self.path)
        if live is None or _look(live) == _look(status):
            self.close()
            self._resting = _look(live), part

    def _changed(self, file: OpenFile, status: os.stat_result) -> bool:
        look = (status.st_size, status.st_mtime_ns)
        if look == self._seen:
            return False
        self._seen = look
        self.changes += 1
        self._grown_at_s = self._clock()
        file.place.modified_ns = status.st_mtime_ns
        return True

    def _is_quiet(self, status: os.stat_result) -> bool:
        now_s = self._clock()
        self._grown_at_s = min(self._grown_at_s, now_s)  # the clock may have been set back
        return now_s - min(self._grown_at_s, status.st_mtime) >= self._settle_s

    def _read(self, part: Slice, file: OpenFile, status: os.stat_result) -> None:
        """Read on from the place, up to the end of history if that is still ahead."""
        self.changes += 1
        part.history = self.in_history
        end = min(status.st_size, self._history_until) if part.history else status.st_size
        reader = self._reader = self._reader or self._find_reader(file)
        if reader is None:
            part.problem = f"{self.path}: no log reader recognises it"
            part.may_pass = not self._is_quiet(
                status
            )  # a file that is being written may become readable
            return
        hole = self._suspects.hole_ahead(self.path, file.place)
        if hole is not None and hole.start > end:
            hole = None
        end = end if hole is None else hole.start
        gap = file.gap(SLICE_BYTES, end)
        if gap is not None:
            end, hole = gap[0], None
        probe(self._suspects, self.path, file, reader, end)
        limit = SLICE_BYTES
        while True:
            data = file.read(min(limit, end - file.place.offset))
            reading = self._feed(reader, file, data)
            whole = file.place.offset + len(data) >= end
            if reading.consumed or whole or limit >= _MAX_SLICE_BYTES:
                break
            limit *= 2
        if hole is not None and whole and not reading.consumed:
            self._pass_over(reader, part, file, data, hole)
            return
        if gap is not None and whole and not reading.consumed:
            self._pass_gap(reader, part, file, data, gap[1])
            return
        if not reading.consumed and whole and (part.history or self._is_quiet(status)):
            reading = self._feed(reader, file, data, final=True)
            self._flushed_size = end
            if part.history and not reading.consumed:
                self._history_until = 0  # a record that is partly history is news
                part.progress = True
        _take(part, file, reading)
        if not self._understood:
            self._understood = bool(reading.events or reading.ignored)
            self._refused = self._refused or bool(reading.rejected)
        part.notes += [f"{self.path}: {warning}" for warning in reading.warnings]
        self._pass_barren(part, file, reader, reading, end)

    def _pass_gap(
        self, reader: LogReader, part: Slice, file: OpenFile, data: bytes, stop: int
    ) -> None:
        """Continue behind a hole of a sparse file, which holds nothing but zeros."""
        if data:
            _take(part, file, self._feed(reader, file, data, final=True))
        part.progress = True
        part.rejected[_GARBAGE] += 1
        file.advance(stop - file.place.offset)

    def _pass_barren(
        self, part: Slice, file: OpenFile, reader: LogReader, reading: Reading, end: int
    ) -> None:
        """Pass over the rest of a file without a record for long, nor at its end."""
        if reading.events or reading.ignored:
            self._barren, self._barren_until = 0, END_BYTES
            return
        self._barren += reading.consumed
        start = end - END_BYTES
        if self._barren < self._barren_until or file.place.offset >= start:
            return
        data = os.pread(file.descriptor, END_BYTES, start)
        scratch = type(reader)(reader.options)
        with self._suspects.reading(self.path, file.place, start, data):
            found = scratch.read(data, final=True)
        if found.events or found.ignored:
            self._barren_until = 2 * self._barren
            return
        left = end - file.place.offset
        part.rejected[_GARBAGE] += 1
        part.notes.append(
            f"{self.path}: no record in {self._barren >> 20} MiB, nor in its last: "
            f"{left:,} bytes are skipped"
        )
        file.advance(left)

    def _feed(self, reader: LogReader, file: OpenFile, data: bytes, final: bool = False) -> Reading:
        with self._suspects.reading(self.path, file.place, file.place.offset, data):
            return reader.read(data, final)

    def _pass_over(
        self, reader: LogReader, part: Slice, file: OpenFile, data: bytes, hole: Stretch
    ) -> None:
        """Continue behind a record that repeatedly crashed the process."""
        part.progress = True
        place = file.place
        there = os.pread(file.descriptor, hole.end - hole.start, hole.start)
        if zlib.crc32(there) != hole.crc:  # the file was rewritten
            self._suspects.forget(hole)
            return
        if data and not hole.blind:
            with self._suspects.nearing(hole):
                reading = reader.read(data, final=True)
            _take(part, file, reading)
        part.notes.append(
            f"{self.path}: Outrider crashed repeatedly while reading the bytes {hole.start} to "
            f"{hole.end}: they are skipped"
        )
        part.rejected[COST_A_RESTART] += 1
        part.size += hole.end - place.offset
        file.advance(hole.end - place.offset)

    def _check_live_file(self, part: Slice, file: OpenFile, status: os.stat_result) -> None:
        """Check whether a file with nothing left to read is still the live one."""
        self._unread = status.st_size - file.place.offset
        done = self._unread == 0 or self._flushed_size == status.st_size
        live = status_of(self.path)
        if live is None:
            part.problem = f"{self.path} is not there"
            if done and status.st_nlink == 0:
                self.close()  # so that the disk space of a deleted log is freed
        elif file.place.is_same_file(live):
            part.caught_up = done
        elif self._is_quiet(status):
            self.changes += 1
            if self._unread:
                part.rejected["cut_short"] += 1
            left = [status.st_dev, status.st_ino, status.st_mtime_ns]
            if left not in self._left:  # if the next one cannot be opened, this code runs again
                self._left.append(left)
                del self._left[:-_REMEMBERED_FILES]
            part.progress = self._begin(self._successor()) is not None

    def _open(self, part: Slice) -> OpenFile | None:
        """Open the file where the log was left, or the next; None if there is none."""
        if self._place is None:
            return self._begin(self.path)
        before = self._place
        found = find(before, self.path)
        if found is not None:
            if found.place.device == before.device and found.place.inode == before.inode:
                self.changes += 1  # it was closed meanwhile: what was seen of it holds
                self._file, self._place = found, found.place
                return found
            return self._use_file(found)
        successor = self._begin(self._successor())
        if successor is not None and self._unread:
            part.notes.append(f"{self.path}: {self._unread} unread bytes are lost with the file")
            self._unread = 0
        if successor is not None and before.is_same_file(successor.status()):
            part.notes.append(f"{self.path}: truncated; reading it from its beginning")
        return successor

    def _start_over(self, part: Slice, file: OpenFile) -> None:
        """Start over after a truncation or rewrite: the consumed bytes are gone.

        If it was copied before (copytruncate), the copy still has the unread part.
        """
        part.progress = True
        copy = find(file.place, self.path)
        if copy is not None:
            if copy.status().st_size > file.place.offset:
                self.close()
                self._use_file(copy)
                return
            copy.close()
        part.notes.append(f"{self.path}: truncated; reading it from its beginning")
        self._begin_in(file.descriptor)

    def _successor(self) -> Path:
        """Return the log that was begun after the current one: a rotated one, or the live one."""
        if self._place is not None:
            left = [tuple(entry) for entry in self._left]
            for sibling, status in rotated_files(self.path):
                known = (status.st_dev, status.st_ino, status.st_mtime_ns) in left
                older = status.st_mtime_ns < self._place.modified_ns
                if not known and not older and not self._place.is_same_file(status):
                    return sibling
        return self.path

    def _begin(self, path: Path) -> OpenFile | None:
        """Begin another file; return None if it does not exist."""
        descriptor = open_file(path)
        if descriptor is None:
            return None
        self.close()
        return self._begin_in(descriptor)

    def _begin_in(self, descriptor: int) -> OpenFile:
        """Read an open file from its first byte, with a new reader."""
        if self._place is not None:
            self._history_until = 0
        self._reader_before = self._save_reader() or self._reader_before
        self._reader = self._saved_reader = None
        return self._use_file(OpenFile(descriptor, place_at_start(descriptor)))

    def _use_file(self, file: OpenFile) -> OpenFile:
        """Read this file from now on."""
        self.changes += 1
        self._file, self._place = file, file.place
        self._seen = (-1, -1)
        self._flushed_size = -1
        return file

    def _save_reader(self) -> tuple[str, Any] | None:
        """Return the current reader's name and saved state; None if there is none."""
        if self._reader is not None:
            return self._reader.name, self._reader.save()
        return self._saved_reader

    def _find_reader(self, file: OpenFile) -> LogReader | None:
        options = ReaderOptions(
            timezone=self._timezone,
            modified_s=file.status().st_mtime,
            system=self._system,
            log_name=log_name_of(self.path.name),
        )
        if self._saved_reader is not None:
            name, saved = self._saved_reader
            reader = self._readers.reader_named(name, options)
            if reader is not None:
                reader.restore(saved)
                return reader
        reader = self._readers.reader_for(file.head(HEAD_BYTES), options)
        before = self._reader_before
        if reader is not None and before is not None and before[0] == reader.name:
            reader.inherit(before[1])
        return reader


def _take(part: Slice, file: OpenFile, reading: Reading) -> None:
    part.events = reading.events
    part.owner = file.status().st_uid  # of the open file: its path may lead elsewhere by now
    part.rejected.update(reading.rejected)
    part.ignored.update(reading.ignored)
    part.size = reading.consumed
    if reading.consumed:
        part.progress = True
        file.advance(reading.consumed)


def _look(status: os.stat_result | None) -> tuple[int, ...]:
    """Return what shows that a file was written to, or replaced; empty if it is not there."""
    if status is None:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
