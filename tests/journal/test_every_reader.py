"""Readers of a journal get the same events: one reader, one rule for begin and end."""

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

from outrider.engine import Engine
from outrider.engine.state.site import Site
from outrider.forecast.followed_site import FollowedSite
from outrider.journal import Entry, Journal
from outrider.journal.journal_events import JournalEvents, initial_meta, last_moment_s
from outrider.model import events as ev
from outrider.model.events import Event, NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.localtime import ZoneTime
from outrider.model.machines import MachineSpec
from outrider.plugins.finding import make_policy
from outrider.replay.record_sources import record_of_ledger
from outrider.replay.site_record import SiteRecord
from outrider.report.past import read_past
from outrider.report.windows import Window
from outrider.twin.observed import observe
from outrider.twin.off_policy.journal import DecisionsOnRecord, recorded_starts
from outrider_lab.training import JournalDemonstration

T: Final = 1_600_000_000.0
MACHINES: Final = 40
INPUTS: Final[list[NamedEvent]] = [
    (T, ev.SUBMITTED, "early", JobSpec(cpus=2)),
    (T + 5, ev.STARTED, "early", ("m3", 2)),
    (T + 30, ev.TICK, "pool", None),
    (T + 60, ev.OWNER_CAME, "m1", None),
    (T + 20, ev.TICK, "pool", None),  # a watermark that went back
    (T + 80, ev.OWNER_WENT, "m1", None),
    (T + 90, ev.COMPLETED, "early", None),
    (T + 95, ev.SUBMITTED, "late", JobSpec(cpus=1)),
    (T + 100, ev.TICK, "pool", None),
]
AFTER_THE_END: Final[list[NamedEvent]] = [(T + 110, ev.STARTED, "late", ("m7", 1))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of a site whose machines, except one, existed at the daemon's first look."""
    stood: list[NamedEvent] = [
        (T - 1e6, ev.JOINED, f"m{n}", MachineSpec(cpus=4)) for n in range(MACHINES)
    ]
    stood += [(T - 1e6, ev.USABLE, f"m{n}", None) for n in range(MACHINES)]
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.append(Entry(meta=initial_meta(stood)))
        journal.append(Entry(inputs=[("pool", event) for event in INPUTS]))
    return tmp_path / "journal.sqlite"


def report(path: Path) -> None:
    read_past(path, [Window(T, T + 100)])


def off_policy(path: Path) -> None:
    nothing = DecisionsOnRecord({}, frozenset())
    recorded_starts(path, Site(ZoneTime("UTC"), []), [], nothing, random.Random(1))


def training(path: Path) -> None:
    JournalDemonstration(path).shadow(make_policy("fifo", {}, 0, "here")).show()


def forecast(path: Path) -> None:
    for _ in FollowedSite(path).catch_up():
        pass


READERS: Final[dict[str, Callable[[Path], object]]] = {
    "the report": report,
    "the twin": observe,
    "a campus made of it": record_of_ledger,
    "the check off policy": off_policy,
    "training": training,
    "expected starts": forecast,
}


def given_to(
    read: Callable[[Path], object], path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Event]:
    """All that its engine, or its record where it has none, is fed; without ticks."""
    given: list[Event] = []
    feed, take_all = Engine.feed, SiteRecord.take_all

    def noted(events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            given.append(event)
            yield event

    monkeypatch.setattr(Engine, "feed", lambda self, events: feed(self, noted(events)))
    monkeypatch.setattr(SiteRecord, "take_all", lambda self, events: take_all(self, noted(events)))
    read(path)
    return [event for event in given if event[1] != ev.TICK]


@pytest.mark.parametrize("name", READERS)
def test_every_reader_is_given_the_machines_of_the_first_look_and_then_what_happened(
    name: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = given_to(READERS[name], path, monkeypatch)
    kinds = [ev.KIND_NAMES[kind] for _, kind, _, _ in given]
    assert kinds.count("joined") == MACHINES
    assert kinds[: 2 * MACHINES] == ["joined"] * MACHINES + ["usable"] * MACHINES
    assert kinds[2 * MACHINES :] == [
        "submitted", "started", "owner_came", "owner_went", "completed", "submitted",
    ]  # fmt: skip
    with Journal(path, read_only=True) as journal:
        events = [e for e in JournalEvents().all_of(journal) if e[1] != ev.TICK]
    assert given == events


@pytest.mark.parametrize("name", sorted(READERS.keys() - {"expected starts"}))
def test_what_waits_for_a_watermark_where_the_record_ends_is_given(
    name: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal(path) as journal:
        journal.append(Entry(inputs=[("pool", event) for event in AFTER_THE_END]))
    time_s, kind, _, (machine, cpus) = given_to(READERS[name], path, monkeypatch)[-1]
    assert (time_s, ev.KIND_NAMES[kind], machine, cpus) == (T + 110, "started", 7, 1)


def test_expected_starts_go_on_with_it_when_the_daemon_has_seen_so_far(path: Path) -> None:
    site = FollowedSite(path)
    assert list(site.catch_up())[-1] == T + 100
    with Journal(path) as journal:
        journal.append(Entry(inputs=[("pool", event) for event in AFTER_THE_END]))
    assert list(site.catch_up()) == []
    with Journal(path) as journal:
        journal.append(Entry(inputs=[("pool", (T + 120, ev.TICK, "pool", None))]))
    assert list(site.catch_up()) == [T + 120]
    assert [started_s for _, started_s in site.started] == [T + 5, T + 110]


def test_reading_on_gives_what_reading_at_once_gives(path: Path) -> None:
    with Journal(path, read_only=True) as journal:
        at_once, bit_by_bit = list(JournalEvents().all_of(journal)), JournalEvents()
        given: list[Event] = []
        for until_seq in (*range(1, len(INPUTS)), float("inf")):
            for _, events in bit_by_bit.read(journal, until_seq):
                given += events
    assert [*given, *bit_by_bit.rest()] == at_once


def test_the_last_moment_is_that_of_the_last_watermark_not_of_an_event_with_a_wrong_date(
    path: Path,
) -> None:
    with Journal(path) as journal:
        assert last_moment_s(journal) == T + 100
        journal.append(Entry(inputs=[("pool", event) for event in AFTER_THE_END]))
        assert last_moment_s(journal) == T + 100
