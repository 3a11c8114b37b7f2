"""Retention of the journal, the interval of snapshots, and the lag of the event loop."""

import asyncio
import time
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from outrider.engine.ingest.set_aside import LAST_S
from outrider.service.host.wall_clock import RECORD_AHEAD_S, WallClock
from outrider.service.process import supervisor
from outrider.service.process.supervisor import feed_watchdog, keep_journal, prune, watch_loop

NOW_S = 1_800_000_000.0
DAY_S = 86_400.0


class Kept:
    """A fake daemon state that records the calls to it."""

    def __init__(self, clock: WallClock | None = None, leaps: tuple[float, ...] = ()) -> None:
        self.site_clock = clock
        self.core = SimpleNamespace(site=SimpleNamespace(now=NOW_S))
        config = {
            "retention_days": 2.0, "runs_retention_days": 5.0, "snapshot_every_s": 0.02,
            "journal_max_bytes": 77,
        }  # fmt: skip
        self.loaded = SimpleNamespace(config=SimpleNamespace(**config))
        self.lock = asyncio.Lock()
        self.done: list[tuple[Any, ...]] = []
        self.fails = 0
        self.recording = self.retention = self
        self.fed = 0
        self.snapshots = SimpleNamespace(
            leaps=lambda: [SimpleNamespace(before_s=before_s) for before_s in leaps]
        )

    async def prune(self, *times: float) -> None:
        self.done.append(("prune", *times))

    async def keep_within(self, most: int) -> None:
        self.done.append(("keep_within", most))

    async def snapshot(self) -> bool:
        assert self.lock.locked()
        self.done.append(("snapshot",))
        self.fails -= 1
        return self.fails < 0


async def pruned(state: Any) -> tuple[float, ...]:
    """Relative to now: before when rows go, until when they are believed, before when runs go."""
    await prune(state)
    [(_, before_s, latest_s, runs_before_s)] = state.done
    return before_s - NOW_S, latest_s - NOW_S, runs_before_s - NOW_S


async def test_rows_and_runs_go_once_they_are_older_than_is_asked_for() -> None:
    ahead = WallClock(lambda: NOW_S)
    assert await pruned(Kept(ahead)) == (-2 * DAY_S, RECORD_AHEAD_S, -5 * DAY_S)
    assert await pruned(Kept()) == (-2 * DAY_S, LAST_S - NOW_S, -5 * DAY_S)


async def test_for_a_week_after_a_leap_of_the_clock_that_is_counted_from_before_it() -> None:
    clock = WallClock(lambda: NOW_S)
    leapt = Kept(clock, (NOW_S - 30 * DAY_S, NOW_S - DAY_S))
    assert (await pruned(leapt))[::2] == (-32 * DAY_S, -35 * DAY_S)
    back = Kept(clock, (NOW_S + 30 * DAY_S,))
    assert (await pruned(back))[::2] == (-2 * DAY_S, -5 * DAY_S)
    simulated = Kept(None, (NOW_S - 30 * DAY_S,))
    assert (await pruned(simulated))[::2] == (-2 * DAY_S, -5 * DAY_S)


async def for_a_while(state: Kept, rounds: int) -> list[str]:
    """Return the calls of `keep_journal` until it has checked its budget so many times."""
    made: Any = state
    keeping = asyncio.create_task(keep_journal(made))
    async with asyncio.timeout(20):
        while sum(what == "keep_within" for what, *_ in state.done) < rounds:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    keeping.cancel()
    return [what for what, *_ in state.done]


async def test_a_snapshot_is_written_again_and_again_and_old_rows_go_a_few_times_a_day() -> None:
    done = await for_a_while(state := Kept(), 3)
    assert done == ["snapshot", "prune", *["keep_within", "snapshot"] * 2, "keep_within"]
    assert ("keep_within", 77) in state.done


async def test_one_that_failed_is_tried_again_soon_however_seldom_they_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_SNAPSHOT_S", 0.01)
    state = Kept()
    state.loaded.config.snapshot_every_s = 3_600.0
    state.fails = 2
    done = await for_a_while(state, 3)
    assert done.count("snapshot") == 3
    await asyncio.sleep(0.05)
    assert [what for what, *_ in state.done].count("snapshot") == 3, "now it has an hour"


async def test_after_a_restart_that_fed_much_a_snapshot_is_written_at_once() -> None:
    for fed, written in ((5_000, 0), (5_001, 1)):
        state: Any = Kept()
        state.loaded.config.snapshot_every_s = 3_600.0
        state.fed = fed
        keeping = asyncio.create_task(keep_journal(state))
        await asyncio.sleep(0.05)
        async with asyncio.timeout(20):
            while len(state.done) < written:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        keeping.cancel()
        assert [what for what, *_ in state.done][:1] == ["snapshot"] * written, fed


async def test_the_loop_is_as_late_as_it_was_at_its_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_LAG_EVERY_S", 0.02)
    view: Any = SimpleNamespace(loop_lag_s=0.0)
    watching = asyncio.create_task(watch_loop(view))
    await asyncio.sleep(0.03)
    time.sleep(0.2)  # noqa: ASYNC251 - what holds up the loop
    async with asyncio.timeout(20):
        while view.loop_lag_s < 0.1:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    worst = view.loop_lag_s
    await asyncio.sleep(0.1)
    watching.cancel()
    assert worst <= view.loop_lag_s < inf


async def test_the_watchdog_is_fed_at_once_and_then_as_often_as_is_asked_for() -> None:
    fed: list[float] = []
    service: Any = SimpleNamespace(alive=lambda: fed.append(time.monotonic()))
    feeding = asyncio.create_task(feed_watchdog(service, 0.02))
    async with asyncio.timeout(20):
        while len(fed) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    feeding.cancel()
    assert fed[2] - fed[0] >= 0.04
