"""Several sources, out of order, become one stream; ticks fall between time stamps."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from tests.engine.ingest.streams import Live, any_events, run_of
from tests.suite.examples import examples

thorough = settings(max_examples=examples(150), derandomize=True)
UNIX_S = 1_795_231_020.0


def split(events: list[NamedEvent], seed: int) -> dict[str, list[NamedEvent]]:
    """Assign each subject's events to one source."""
    rng = random.Random(seed)
    whose: dict[str, str] = {}
    out: dict[str, list[NamedEvent]] = {"one": [], "two": []}
    for event in events:
        out[whose.setdefault(event[2], rng.choice(["one", "two"]))].append(event)
    return out


@thorough
@given(events=any_events, seed=st.integers(0, 99))
def test_the_order_of_arrival_within_the_lateness_changes_nothing(
    events: list[NamedEvent], seed: int
) -> None:
    """Two sources, each in its own order of time; they arrive whole, in pieces, either first."""
    parts = {name: sorted(part, key=lambda e: e[0]) for name, part in split(events, seed).items()}
    streams = []
    for first, second, piece in (("one", "two", 99), ("two", "one", 99), ("one", "two", 1)):
        live = Live(["one", "two"])
        for source in (first, second):
            for at in range(0, len(parts[source]), piece):
                live.tell(source, parts[source][at : at + piece])
        for source in (first, second):
            live.seen(source, 100.0)
        streams.append((live.out, live.decision_log.rows))
    assert streams[0] == streams[1] == streams[2]


@thorough
@given(events=any_events, cut=st.integers(0, 40))
def test_a_pause_of_the_watermark_changes_nothing(events: list[NamedEvent], cut: int) -> None:
    told = sorted(events, key=lambda e: e[0])
    whole, halves = Live(), Live()
    whole.tell("log", told)
    whole.seen("log", 100.0)
    halves.tell("log", [e for e in told if e[0] <= cut])
    halves.seen("log", float(cut))
    halves.tell("log", [e for e in told if e[0] > cut])
    halves.seen("log", 100.0)
    assert halves.out == whole.out
    assert halves.decision_log.rows == whole.decision_log.rows


@pytest.mark.parametrize("zero_s", [0.0, UNIX_S])
def test_a_moment_seen_whole_is_decided_at_once(zero_s: float) -> None:
    """A source seen up to a second, that second included, leaves no decision waiting."""
    live = Live()
    live.tell("log", [(zero_s, ev.JOINED, "a1", MachineSpec()),
                      (zero_s + 5.0, ev.SUBMITTED, "1.0", JobSpec())])  # fmt: skip
    live.seen("log", zero_s + 5.0)
    assert [(row[0], row[2]) for row in live.decision_log.rows] == [(zero_s + 5.0, 0)]


def test_decisions_fall_after_all_events_of_a_time_stamp() -> None:
    live = Live()
    live.all_at_once("log", [(0.0, ev.JOINED, "a1", MachineSpec()),
                             (5.0, ev.SUBMITTED, "1.0", JobSpec()),
                             (5.0, ev.SUBMITTED, "1.1", JobSpec()),
                             (6.0, ev.SUBMITTED, "1.2", JobSpec())])  # fmt: skip
    kinds = [(event[0], event[1]) for event in live.out]
    assert kinds[-5:] == [(5.0, ev.SUBMITTED), (5.0, ev.SUBMITTED), (5.0, ev.TICK),
                          (6.0, ev.SUBMITTED), (6.0, ev.TICK)]  # fmt: skip


def test_the_slowest_source_holds_the_watermark() -> None:
    live = Live(["quick", "slow"])
    live.all_at_once("quick", run_of("1.0", "a1", 1.0, 2.0, 3.0))
    assert live.out == []
    live.seen("slow", 2.0)
    assert {event[0] for event in live.out} == {1.0, 2.0}
    assert live.merger.waiting_n() == 1


def test_an_event_later_than_the_watermark_is_applied_and_counted() -> None:
    live = Live()
    live.all_at_once("log", run_of("1.0", "a1", 10.0, 20.0, 30.0))
    live.tell("log", [(15.0, ev.SUBMITTED, "1.1", JobSpec())])
    live.seen("log", 40.0)
    assert live.merger.late == 1
    assert live.accounting.submitted == 2
    assert live.site.now >= 30.0


def test_a_run_that_is_told_late_counts_from_its_own_start_in_the_shares() -> None:
    live = Live()
    live.all_at_once("log", run_of("1.0", "a1", 0.0, 0.0, 100.0))
    late = [(50.0, ev.SUBMITTED, "1.1", JobSpec(vo="bio")), (50.0, ev.STARTED, "1.1", ("a2", 1))]
    live.tell("log", late)
    live.tell("log", [(150.0, ev.COMPLETED, "1.1", None)])
    live.seen("log", 200.0)
    share = live.told()["report"]["fairness"]["share"]
    assert share == pytest.approx({"all": 0.5, "bio": 0.5})


@thorough
@given(events=any_events, cut=st.integers(0, 40))
def test_saving_in_the_middle_and_going_on_changes_nothing(
    events: list[NamedEvent], cut: int
) -> None:
    told = sorted(events, key=lambda e: e[0])
    through = Live()
    through.tell("log", told)
    through.seen("log", float(cut))
    saved = msgspec.msgpack.decode(
        msgspec.msgpack.encode([through.engine.save(), through.merger.save()])
    )
    done = len(through.out)
    decided = len(through.decision_log.rows)
    through.seen("log", 100.0)

    again = Live()
    again.engine.restore(saved[0])
    again.merger.restore(saved[1], revived)
    again.seen("log", 100.0)
    assert again.out == through.out[done:]
    assert again.decision_log.rows == through.decision_log.rows[decided:]
    assert again.merger.counts == through.merger.counts
    assert again.merger.normaliser.save() == through.merger.normaliser.save()


def revived(event: list[Any]) -> NamedEvent:
    """An event as it was before it was plain data."""
    time_s, kind, subject, extra = event
    if kind == ev.SUBMITTED:
        extra = msgspec.convert(extra, JobSpec)
    elif kind == ev.JOINED:
        extra = msgspec.convert(extra, MachineSpec)
    elif kind == ev.STARTED:
        extra = tuple(extra)
    return time_s, kind, subject, extra
