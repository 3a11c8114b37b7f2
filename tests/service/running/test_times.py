"""Clocks that step, events that come late, and two sources that disagree about the time."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from outrider.api import Batch
from outrider.model.events import TICK, NamedEvent
from outrider.plugins.finding import load_adapter
from outrider.service.daemon.sources import seen_until
from outrider.service.journal.restart import replay_inputs
from outrider.service.views.status import status
from tests.fixtures.cores import T, core_of, packed, run_of, tell
from tests.service.running.event_log import EventLog

HOUR_S = 3_600.0


def test_events_out_of_order_within_the_lateness_are_sorted() -> None:
    sorted_, shuffled = core_of("log"), core_of("log")
    events = run_of("1", T) + run_of("2", T + 0.5)
    tell(sorted_, "log", sorted(events, key=lambda event: event[0]), T + 10)
    tell(shuffled, "log", [events[n] for n in (4, 0, 5, 1)], T - 1)
    tell(shuffled, "log", [events[n] for n in (3, 2)], T + 10)
    assert status(shuffled, {}) == status(sorted_, {})
    assert shuffled.merger.late == 0
    assert shuffled.accounting.completed == 2


def test_a_later_event_is_applied_and_counted_as_late() -> None:
    core = core_of("log")
    tell(core, "log", run_of("1", T), T + 60)
    tell(core, "log", run_of("2", T - 30), T + 61)
    shown = status(core, {})
    assert shown["late"] == 3
    assert shown["jobs"]["completed"] == 2
    assert shown["wait_s"]["all"]["mean"] == 1.0
    assert core.site.now >= T + 2


def test_two_sources_wait_for_each_other_and_for_nobody_who_is_away() -> None:
    core = core_of("a", "b")
    tell(core, "a", run_of("1", T), T + 60)
    assert core.accounting.completed == 0  # b may still report an earlier event
    tell(core, "b", run_of("2", T - 20), T + 30)
    assert core.accounting.completed == 2
    assert core.merger.late == 0
    tell(core, "a", run_of("3", T + 50), T + 120)
    assert core.accounting.completed == 2
    core.merger.excuse("b")
    tell(core, "a", [], T + 121)
    assert core.accounting.completed == 3
    tell(core, "b", run_of("4", T + 60), T + 122)
    assert core.accounting.completed == 4


def test_what_was_taken_in_can_be_fed_again_from_its_inputs_alone() -> None:
    """The watermark in the journal is of all sources: also where they are others by then."""
    core = core_of("a", "b")
    inputs: list[tuple[str, NamedEvent]] = []
    for n in range(20):
        for label, ahead_s in (("a", 0.0), ("b", 7.0)):
            batch = Batch(events=run_of(f"{label}{n}", T + 10 * n + ahead_s), cursor=n)
            stream = core.take(label, batch, T + 10 * n + ahead_s)
            while core.step(stream, 100):
                pass
            entry = core.entry(label, batch)
            assert entry is not None
            inputs += entry.inputs
    assert TICK in {event[1] for _, event in inputs}
    again = core_of("a")
    replay_inputs(again, ((n, label, event) for n, (label, event) in enumerate(inputs)))
    assert packed(again.engine.save()) == packed(core.engine.save())


class SteppedClock:
    """A Unix clock that is set forward and back."""

    def __init__(self) -> None:
        self.now_s = T

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("steps", [(HOUR_S, -HOUR_S), (-HOUR_S, HOUR_S)])
async def test_a_clock_that_steps_an_hour_forth_and_back_loses_nothing(
    steps: tuple[float, float], tmp_path: Path
) -> None:
    clock = SteppedClock()
    log = EventLog(tmp_path / "EventLog")
    plugin: Any = load_adapter("logtail")
    settings = plugin.settings_type(
        paths=(str(log.path),), start_at="beginning", poll_s=0.05, settle_s=0.0
    )
    adapter = plugin("log", settings, clock, heartbeat_s=0.05)
    core = core_of("log")
    job = 0
    decided: list[int] = []

    async def live_on(batches: Any, seconds: int) -> None:
        """Let so many seconds pass, with a job in each, and read them."""
        nonlocal job
        for _ in range(seconds):
            job += 1
            clock.now_s += 1.0
            log.at(clock.now_s)
            log.run([job])
        clock.now_s += 6.0
        while True:
            batch = await asyncio.wait_for(anext(batches), 5.0)
            stream = core.take("log", batch, seen_until(adapter, batch, clock()))
            while core.step(stream, 100):
                pass
            core.entry("log", batch)
            if batch.seen_until_s == clock.now_s:
                break
        decided.append(core.runners[0].decisions)

    async with adapter:
        batches = adapter.batches(None)
        await live_on(batches, 20)
        for step_s in steps:
            clock.now_s += step_s
            await live_on(batches, 20)
        await batches.aclose()
    shown = status(core, {})
    assert shown["jobs"]["completed"] == 60
    assert shown["adapters"][0]["events"] == dict(log.counts)
    # while the clock is behind what was seen before it, all is late; nothing is lost by that
    assert shown["late"] == 60
    assert decided == sorted(set(decided))
    assert all(waits.total < HOUR_S for waits in core.accounting.waits.values())
