"""Whole log files, read in big chunks by the reader that understands them."""

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator
from math import isfinite
from operator import itemgetter
from pathlib import Path
from typing import IO, Final

import msgspec

from outrider.api.reader import LogReader, ReaderOptions, Reading, log_name_of
from outrider.model.errors import OutriderError, PluginError, TraceError
from outrider.model.events import NamedEvent
from outrider.plugins.finding import load_reader, log_readers, recognise

AUTO: Final = "auto"
CHUNK_BYTES: Final = 4 << 20
HEAD_BYTES: Final = 64 * 1024
HALF_RECORD: Final = "incomplete record"
NO_TIME: Final = "time is nan or infinite"
"""Why an event of a faulty reader is rejected: it could not be put in order with the others."""
_GZIP: Final = b"\x1f\x8b"


class ReadCounts(msgspec.Struct):
    """What was in a file, record by record, beside its events."""

    records: int = 0
    lines: int = 0
    ignored: Counter[str] = msgspec.field(default_factory=Counter)
    rejected: Counter[str] = msgspec.field(default_factory=Counter)
    warnings: list[str] = []

    def add(self, reading: Reading) -> None:
        """Count what a reading says of its bytes."""
        self.records += reading.records
        self.lines += reading.lines
        self.ignored.update(reading.ignored)
        self.rejected.update(reading.rejected)
        self.warnings += reading.warnings


class LogFile:
    """One file of a batch system, from its first to its last byte.

    Args:
        path: the file; gzipped or not, its content decides.
        format_name: the reader that understands it, or ``auto``.
        year, timezone, fields, system: see `outrider.api.ReaderOptions`.

    Attributes:
        format_name: the reader that was found; None for an empty file nobody need understand.
        in_order: whether its events come in the order of time (see `outrider.api.LogReader`).
        counts: what `chunks` has seen so far.

    Raises:
        TraceError: it cannot be read, or no reader recognises it.
        PluginError: there is no reader of that name, or it fails while it is made.
    """

    def __init__(
        self,
        path: Path,
        format_name: str = AUTO,
        *,
        year: int | None = None,
        timezone: str | None = None,
        fields: tuple[str, ...] = (),
        system: str | None = None,
    ) -> None:
        self.path = path
        self.counts = ReadCounts()
        try:
            with path.open("rb") as raw:
                self._packed = raw.read(len(_GZIP)) == _GZIP
            modified_s = path.stat().st_mtime
        except OSError as error:
            raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
        options = ReaderOptions(
            year=year, timezone=timezone, modified_s=modified_s, fields=fields,
            system=system, log_name=log_name_of(path.name),
        )  # fmt: skip
        kind = self._recognise() if format_name == AUTO else load_reader(format_name)
        self.format_name = None if kind is None else kind.name
        self._reader = None if kind is None else made(kind, options, path)
        self.in_order = kind is None or kind.in_order

    def chunks(self) -> Iterator[list[NamedEvent]]:
        """The events in the order of the file, some thousands at a time.

        A reader that needs more before it can begin (dates without a year, with a year given)
        gets it: then the file is held in memory. An event whose time is nan or infinite is left
        out and counted as rejected.

        Raises:
            TraceError: the file cannot be read to its end.
            PluginError: the reader fails; says which, and in which line of the file.
        """
        reader = self._reader
        if reader is None:
            return
        rest = b""
        with self._file() as file:
            while True:
                chunk = self._read(file, max(CHUNK_BYTES, len(rest)))
                rest += chunk
                try:
                    reading = reader.read(rest, final=not chunk)
                    events = self._with_times(reading.events)
                    self.counts.add(reading)
                except OutriderError:
                    raise
                except Exception as error:
                    fault = reading_fault(reader, rest, self.path, self.counts.lines, error)
                    raise fault from error
                rest = rest[reading.consumed :]
                yield events
                if not chunk:
                    break
        if rest.strip():
            self.counts.records += 1
            self.counts.rejected[HALF_RECORD] += 1
        self.counts.lines += len(rest.splitlines())

    def _with_times(self, events: list[NamedEvent]) -> list[NamedEvent]:
        """The events that happened at some time; the others are counted as rejected."""
        if all(map(isfinite, map(itemgetter(0), events))):
            return events
        kept = [event for event in events if isfinite(event[0])]
        self.counts.rejected[NO_TIME] += len(events) - len(kept)
        self.counts.warnings.append(f'reader "{self.format_name}" made events without a time')
        return kept

    def _recognise(self) -> type[LogReader] | None:
        with self._file() as file:
            head = self._read(file, HEAD_BYTES)
        if not head.strip():
            return None
        broken: dict[str, str] = {}
        kind = recognise(head, broken)
        if kind is not None:
            return kind
        known = ", ".join(log_readers()) or "none"
        raise TraceError(
            f"{self.path}: no reader recognises it; --format names one, known: {known}"
            + "".join(f"; {text}" for text in broken.values())
        )

    def _file(self) -> IO[bytes]:
        try:
            return gzip.open(self.path) if self._packed else self.path.open("rb")  # type: ignore[return-value]
        except OSError as error:
            raise TraceError(f"{self.path}: cannot be read: {error.strerror}") from error

    def _read(self, file: IO[bytes], size: int) -> bytes:
        try:
            return file.read(size)
        except (OSError, EOFError, zlib.error) as error:
            raise TraceError(f"{self.path}: cannot be read to its end: {error}") from error


# -- reader faults ---------------------------------------------------------------------------------
# What to say of a log reader that fails: which one, in which file and in which line.


def made(kind: type[LogReader], options: ReaderOptions, path: Path) -> LogReader:
    """A reader for one file.

    Raises:
        PluginError: it fails while it is made.
        ConfigurationError: it refuses the options.
    """
    try:
        return kind(options)
    except OutriderError:
        raise
    except Exception as error:
        raise PluginError(
            f'{path}: reader "{kind.name}" fails while it is made: {_named(error)}'
        ) from error


def reading_fault(
    reader: LogReader, data: bytes, path: Path, lines_before: int, error: Exception
) -> PluginError:
    """The error to raise where a reader failed.

    Args:
        reader: it raised, or made events that are none.
        data: what it was fed.
        path: the file that `data` is part of.
        lines_before: lines of the file before `data`.
        error: what was raised.
    """
    line = _failing_line(type(reader), reader.options, data)
    place = f"after line {lines_before}" if line is None else f"line {lines_before + line}"
    return PluginError(
        f'{path}, {place}: reader "{reader.name}" fails: {_named(error)}; right would be to count '
        "a record that it cannot read as rejected"
    )


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _failing_line(kind: type[LogReader], options: ReaderOptions, data: bytes) -> int | None:
    """The first line of `data`, from 1, on which a new reader fails; None: on none."""
    lines = data.splitlines(keepends=True)

    def fails(n: int) -> bool:
        try:
            reading = kind(options).read(b"".join(lines[:n]), final=n == len(lines))
            all(isfinite(event[0]) for event in reading.events)
        except Exception:  # noqa: BLE001 - it is what is looked for
            return True
        return False

    if not fails(len(lines)):
        return None
    sound, failing = 0, len(lines)
    while failing - sound > 1:
        middle = (sound + failing) // 2
        if fails(middle):
            failing = middle
        else:
            sound = middle
    return failing
