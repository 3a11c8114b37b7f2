"""Whole log files, read in large chunks by the matching reader."""

import gzip
import hashlib
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import floor, inf, isfinite
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from outrider.api.reader import LogReader, ReaderOptions, Reading, log_name_of
from outrider.engine import Engine, EventMerger
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.report import report
from outrider.engine.ingest.machine_registry import inferred_machine
from outrider.engine.ingest.normaliser import Normaliser
from outrider.engine.ingest.set_aside import NotApplicableError
from outrider.engine.state.site import Site
from outrider.model.decisions import Decision
from outrider.model.errors import OutriderError, PluginError, TraceError
from outrider.model.events import (
    EVICTED,
    JOB_KINDS,
    KIND_NAMES,
    REMOVED,
    STARTED,
    Event,
    NamedEvent,
)
from outrider.model.jobs import Job
from outrider.model.localtime import ZoneTime
from outrider.model.machines import MachineSpec
from outrider.plugins.finding import load_reader, log_readers, recognise

AUTO: Final = "auto"
CHUNK_BYTES: Final = 4 << 20
HEAD_BYTES: Final = 64 * 1024
HALF_RECORD: Final = "incomplete record"
NO_TIME: Final = "time is nan or infinite"
"""Reason for rejecting an event of a faulty reader: it cannot be sorted with the others."""
_GZIP: Final = b"\x1f\x8b"


class ReadCounts(msgspec.Struct):
    """Counts of the records of a file, besides its events."""

    records: int = 0
    lines: int = 0
    ignored: Counter[str] = msgspec.field(default_factory=Counter)
    rejected: Counter[str] = msgspec.field(default_factory=Counter)
    warnings: list[str] = []

    def add(self, reading: Reading) -> None:
        """Add the counts of a reading."""
        self.records += reading.records
        self.lines += reading.lines
        self.ignored.update(reading.ignored)
        self.rejected.update(reading.rejected)
        self.warnings += reading.warnings


class LogFile:
    """File of a batch system, read from its first to its last byte.

    Args:
        path: the file; gzipped or not, detected from its content.
        format_name: name of the matching reader, or ``auto``.
        year, timezone, fields, system: see `outrider.api.ReaderOptions`.

    Attributes:
        format_name: the reader that was found; None for an empty file, which needs none.
        in_order: whether its events come in the order of time (see `outrider.api.LogReader`).
        counts: counts of `chunks` so far.

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
        """Yield the events in the order of the file, some thousands at a time.

        A reader that needs more data before it can begin (dates without a year, with a year given)
        gets it: then the file is held in memory. An event whose time is nan or infinite is dropped
        and counted as rejected.

        Raises:
            TraceError: the file cannot be read to its end.
            PluginError: the reader fails; names it and the line of the file.
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
        """Return the events with a valid time; count the others as rejected."""
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
# Error messages for a log reader that fails: its name, the file and the line.


def made(kind: type[LogReader], options: ReaderOptions, path: Path) -> LogReader:
    """Return a reader for one file.

    Raises:
        PluginError: the reader's constructor fails.
        ConfigurationError: the reader refuses the options.
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
    """Return the error to raise where a reader failed.

    Args:
        reader: it raised, or made invalid events.
        data: its input.
        path: the file that `data` is part of.
        lines_before: number of lines of the file before `data`.
        error: the exception.
    """
    line = _failing_line(type(reader), reader.options, data)
    place = f"after line {lines_before}" if line is None else f"line {lines_before + line}"
    return PluginError(
        f'{path}, {place}: reader "{reader.name}" fails: {_named(error)}; expected to count '
        "a record that it cannot read as rejected"
    )


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _failing_line(kind: type[LogReader], options: ReaderOptions, data: bytes) -> int | None:
    """Return the first line of `data`, from 1, on which a new reader fails; None if none."""
    lines = data.splitlines(keepends=True)

    def fails(n: int) -> bool:
        try:
            reading = kind(options).read(b"".join(lines[:n]), final=n == len(lines))
            all(isfinite(event[0]) for event in reading.events)
        except Exception:  # noqa: BLE001 - the search is for failures
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


# -- ingestion -------------------------------------------------------------------------------------
# Several log files, merged by time, through the engine to a report.
#
# There are no policies here and nothing is changed: it is only the accounting of what happened.

LATENESS_S: Final = 5.0
"""Period in which events of an unsorted log are sorted; later ones keep their order."""


class NoDecisionLog:
    """Decision log of an engine without runners, which makes no decisions."""

    def decided(self, decision: Decision, /) -> None:
        """Do nothing: without runners there is no decision."""

    def ended(
        self, policy: str, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """Do nothing: without runners there is no outcome."""


class EventsHash:
    r"""Hash ``events_sha256`` of events without duplicates, in any order.

    It is over sorted lines, so that sources which interleave jobs differently agree::

        {kind}\t{job}\t{whole UTC second, cut off}\t{host}\t{cpus}\t{reason}\n

    in UTF-8. Host and cpus are those of a start, reason that of an eviction or removal; other
    fields are empty. For an event about a machine the host is the machine.
    """

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def add(self, event: NamedEvent) -> None:
        """Add one event to the hash."""
        time_s, kind, subject, extra = event
        job, host, cpus, reason = (
            (subject, "", "", "") if kind in JOB_KINDS else ("", subject, "", "")
        )
        if kind == STARTED:
            host, cpus = extra[0], str(extra[1])
        elif kind in (EVICTED, REMOVED):
            reason = extra
        line = f"{KIND_NAMES[kind]}\t{job}\t{floor(time_s)}\t{host}\t{cpus}\t{reason}\n"
        self._lines.append(line.encode("utf-8", "backslashreplace"))

    def hexdigest(self) -> str:
        """Return the hash of all events added so far."""
        self._lines.sort()
        digest = hashlib.sha256()
        for line in self._lines:
            digest.update(line)
        return digest.hexdigest()


class _WatchedNormaliser(Normaliser):
    """Normaliser that reports which events were not duplicates."""

    def __init__(
        self, describe: Callable[[str], MachineSpec], news: Callable[[NamedEvent], None]
    ) -> None:
        super().__init__(describe)
        self._news = news

    def translate(self, event: NamedEvent) -> list[Event] | None:
        try:
            steps = super().translate(event)
        except NotApplicableError:
            self._news(event)
            raise
        if steps is not None:
            time_s, kind, subject, extra = event
            own = self.name_at(time_s, subject) if kind in JOB_KINDS else subject
            self._news((time_s, kind, own, extra))
        return steps


class Ingestion:
    """Pipeline of log files through the event merger into an engine without runners.

    Args:
        files: read from their beginning; their paths must differ.
        describe: returns what is known of a machine by its name.
    """

    def __init__(
        self,
        files: Sequence[LogFile],
        describe: Callable[[str], MachineSpec] = inferred_machine,
    ) -> None:
        self._files = {f"{n}": file for n, file in enumerate(files)}
        self.first_s = inf
        self.last_s = -inf
        self.hash = EventsHash()
        self.merger = EventMerger(self._files, describe)
        self.merger.normaliser = _WatchedNormaliser(describe, self._count)
        utc = ZoneTime("UTC")
        self.site = Site(utc, [])
        self.accounting = Accounting(utc, exact=True)
        self.engine = Engine(self.site, self.accounting, [], self.merger, NoDecisionLog())

    def _count(self, event: NamedEvent) -> None:
        self.first_s = min(self.first_s, event[0])
        self.last_s = max(self.last_s, event[0])
        self.hash.add(event)

    def run(
        self,
        progress: Callable[[float], None] | None = None,
        watch: Callable[[Iterable[Event]], Iterable[Event]] = iter,
    ) -> None:
        """Read all files to their ends and account for their events.

        Args:
            progress: called after each file with the ratio that was read, from 0 to 1.
            watch: passes the events to the engine.

        Raises:
            TraceError: a file cannot be read to its end.
        """
        self.engine.feed(watch(self.events(progress)))
        if self.last_s > -inf:
            self.engine.finish(self.last_s)

    def events(self, progress: Callable[[float], None] | None = None) -> Iterator[Event]:
        """Yield the events of all files, reading from the file that is furthest behind.

        Raises:
            TraceError: a file cannot be read to its end.
        """
        seen_s = dict.fromkeys(self._files, -inf)
        chunks = {label: _in_order(file) for label, file in self._files.items()}
        while chunks:
            label = min(chunks, key=seen_s.__getitem__)
            events = next(chunks[label], None)
            if events is None:
                del chunks[label]
                seen_s[label] = inf
                if progress is not None:
                    progress(1 - len(chunks) / len(self._files))
            else:
                self.merger.arrive(label, events)
                newest_s = max((event[0] for event in events), default=-inf)
                seen_s[label] = max(seen_s[label], newest_s - LATENESS_S)
            yield from self.merger.seen(label, seen_s[label])
            self.merger.newly_set_aside.clear()  # only counted here

    def report(self) -> dict[str, Any]:
        """Return the result of `ingest`, without its ``cpu_s``."""
        counts: Counter[str] = Counter()
        for by_kind in self.merger.counts.values():
            counts += by_kind
        read = [file.counts for file in self._files.values()]
        formats = sorted({file.format_name for file in self._files.values() if file.format_name})
        measured = report(self.site, self.accounting)
        kept = ("jobs", "wait_s", "goodput_s", "badput_s", "work_s", "starts", "evictions")
        return {
            "files": [str(file.path) for file in self._files.values()],
            "format": ",".join(formats) or None,
            "records": sum(each.records for each in read),
            "lines": sum(each.lines for each in read),
            "events": {name: counts[name] for name in KIND_NAMES if counts[name]},
            "duplicates": sum(self.merger.duplicates.values()),
            "ignored": dict(sum((each.ignored for each in read), Counter())),
            "rejected": dict(sum((each.rejected for each in read), Counter())),
            "machines": len(self.merger.normaliser.machine_names),
            **{name: measured[name] for name in kept},
            "span_s": max(0.0, self.last_s - self.first_s),
            "late": self.merger.late,
            "repairs": dict(self.merger.normaliser.repairs),
            "set_aside": {why: n for why, n in self.merger.set_aside.items() if n},
            "warnings": [
                f"{file.path}: {warning}"
                for file in self._files.values()
                for warning in dict.fromkeys(file.counts.warnings)
            ],
            "events_sha256": self.hash.hexdigest(),
        }


def _in_order(file: LogFile) -> Iterator[list[NamedEvent]]:
    """Yield the events in the order of time, equal times in the order of the file."""
    if file.in_order:
        return file.chunks()
    events = [event for chunk in file.chunks() for event in chunk]
    events.sort(key=itemgetter(0))
    return iter([events])


def ingest(
    files: Sequence[LogFile], progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """Read logs and report what happened: counts, waits, work.

    Raises:
        TraceError: a file cannot be read to its end.
    """
    cpu_s = time.process_time()
    ingestion = Ingestion(files)
    ingestion.run(progress)
    result = ingestion.report()
    return result | {"cpu_s": time.process_time() - cpu_s}
