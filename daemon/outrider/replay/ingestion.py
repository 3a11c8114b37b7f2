"""What logs tell of a site: several files, merged by time, through the engine to a report.

There are no policies here and nothing is acted on: it is the accounting alone, on what happened.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import floor, inf
from operator import itemgetter
from typing import Any, Final

from outrider.engine import Engine, EventMerger
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.report import report
from outrider.engine.ingest.machine_registry import inferred_machine
from outrider.engine.ingest.normaliser import Normaliser
from outrider.engine.ingest.set_aside import NotApplicableError
from outrider.engine.state.site import Site
from outrider.model.decisions import Decision
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
from outrider.replay.log_files import LogFile

LATENESS_S: Final = 5.0
"""How much out of order a log may be and still be put in order; later events come as they come."""


class NoDecisionLog:
    """An engine without runners decides nothing; nothing is to be recorded."""

    def decided(self, decision: Decision, /) -> None:
        """No runner, no decision."""

    def ended(
        self, policy: str, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """No runner, no outcome."""


class EventsHash:
    r"""The ``events_sha256`` of events after duplicates were removed, in any order.

    Over sorted lines, so that sources which interleave jobs differently agree::

        {kind}\t{job}\t{whole UTC second, cut off}\t{host}\t{cpus}\t{reason}\n

    in UTF-8; host and cpus are those of a start, reason that of an eviction or removal, and what
    an event has not is empty. Of an event about a machine the host is the machine.
    """

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def add(self, event: NamedEvent) -> None:
        """Count one event."""
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
        """The hash of what was added so far."""
        self._lines.sort()
        digest = hashlib.sha256()
        for line in self._lines:
            digest.update(line)
        return digest.hexdigest()


class _WatchedNormaliser(Normaliser):
    """A normaliser that says which events were no duplicates."""

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
    """Files on their way through the event merger into an engine without runners.

    Args:
        files: read from their beginning; their paths must differ.
        describe: what is known of a machine by its name.
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
        """Read all files to their ends and account for what they tell.

        Args:
            progress: hears of each file that was read, from 0 to 1.
            watch: passes the events on to the engine.

        Raises:
            TraceError: a file cannot be read to its end.
        """
        self.engine.feed(watch(self.events(progress)))
        if self.last_s > -inf:
            self.engine.finish(self.last_s)

    def events(self, progress: Callable[[float], None] | None = None) -> Iterator[Event]:
        """What the files tell, read to their ends, always the one that is furthest behind.

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
        """What `ingest` tells, but for its ``cpu_s``."""
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
    """Its events by the time at which they happened, equal times in the order of the file."""
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
    told = ingestion.report()
    return told | {"cpu_s": time.process_time() - cpu_s}
