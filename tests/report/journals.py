"""Small journals with figures that can be counted by hand."""

import datetime as dt
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from outrider.journal import Entry, Journal
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.report.document import document
from outrider.report.windows import Window

MONDAY_S = dt.datetime(2026, 3, 2, tzinfo=dt.UTC).timestamp()
HOUR_S = 3600.0
WEEK_H = 168.0
WEEK = Window(MONDAY_S, MONDAY_S + WEEK_H * HOUR_S)
BEFORE = Window(MONDAY_S - WEEK_H * HOUR_S, MONDAY_S)


def at(hour: float, kind: int, subject: str, extra: Any = None) -> NamedEvent:
    """Return an event some hours after the Monday."""
    return MONDAY_S + hour * HOUR_S, kind, subject, extra


def job(
    name: str, user: str, submit_h: float, starts: Iterable[tuple[float, str, float, str | None]],
    vo: str = "physics", cpus: int = 1,
) -> list[NamedEvent]:  # fmt: skip
    """Return a job and its runs: (start, machine, end, why it was wasted or None), in hours."""
    events = [at(submit_h, ev.SUBMITTED, name, JobSpec(user=user, vo=vo, cpus=cpus))]
    for start_h, machine, end_h, why in starts:
        events.append(at(start_h, ev.STARTED, name, (machine, cpus)))
        kind = ev.COMPLETED if why is None else ev.EVICTED
        events.append(at(end_h, kind, name, why))
    return events


def machine(name: str, hour: float = -20.0, **facts: Any) -> NamedEvent:
    """Return the event of a machine that joins."""
    return at(hour, ev.JOINED, name, MachineSpec(**facts))


def write(path: Path, events: Sequence[NamedEvent], last_h: float) -> Path:
    """Write a journal of these events, sorted, known up to an hour."""
    ordered = sorted(events, key=lambda event: event[0])
    ordered.append(at(last_h, ev.TICK, "", None))
    with Journal(path) as journal:
        journal.append(Entry(inputs=[("pool", event) for event in ordered]))
    return path


def report_of(path: Path, window: Window = WEEK, before: Window = BEFORE, **more: Any) -> Any:
    """Return the report document of a window."""
    return document(path, window, before, dt.UTC, **more)
