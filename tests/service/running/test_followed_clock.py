"""A daemon whose clock was ahead: the site's time is set back, or waits with a note."""

import time
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from outrider.api import JobSpec, events
from outrider.service.core.core import Core
from outrider.service.daemon import pump
from outrider.service.host.wall_clock import EARLIEST_S, RECORD_AHEAD_S, SITE_AHEAD_S, WallClock
from outrider.service.process.supervisor import Supervisor
from outrider.service.web.endpoints.status import whole_status
from tests.service.running.scripted import batch_of, loaded, running, scripts, until

__all__ = ["scripts"]
YEAR_S = 365 * 86_400.0
AHEAD_S = 10 * YEAR_S


class Clock:
    """The clock of this host, set by a test."""

    ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s


async def submit(daemon: Supervisor, script: list[Any], clock: Clock, job: str) -> None:
    """A job comes while the clock shows what it does, and is counted."""
    before = whole_status(daemon.view)["jobs"]["queued"]
    now_s = clock()
    script.append(batch_of((now_s, events.SUBMITTED, job, JobSpec()), seen_until_s=now_s))
    await until(lambda: whole_status(daemon.view)["jobs"]["queued"] > before)


def is_another(daemon: Supervisor, core: Core) -> bool:
    return daemon.view.core is not core


def ahead_s(daemon: Supervisor) -> float:
    return daemon.view.core.site.now - time.time()


async def test_time_goes_back_with_a_clock_that_is_put_right_and_no_job_is_lost(
    tmp_path: Path, scripts: dict[str, list[Any]]
) -> None:
    state, clock = tmp_path / "state", Clock()
    script = scripts.setdefault("a", [])
    with capture_logs() as lines:
        async with running(loaded(state, "a"), state, clock) as daemon:
            await submit(daemon, script, clock, "before")
            first = daemon.view.core
            clock.ahead_s = AHEAD_S
            await submit(daemon, script, clock, "while it was wrong")
            assert ahead_s(daemon) == pytest.approx(AHEAD_S, abs=60.0)
            clock.ahead_s = 0.0
            await until(lambda: daemon.view.core is not first)
            status = whole_status(daemon.view)
            assert status["notes"] == ["the clock was set back by 87600 h, and the state with it"]
            assert abs(ahead_s(daemon)) < 60.0
            assert status["jobs"]["queued"] == 2
            again = daemon.view.core
            waits = [job.wait_s(again.site.now) or 0.0 for job in again.site.jobs.values()]
            assert max(waits) < 60.0, "the time of the one that came meanwhile was put right, too"
            await submit(daemon, script, clock, "after")
            assert daemon.view.core is again, "once is enough"
    [put_back] = [line for line in lines if line["event"] == "clock_set_back"]
    assert put_back["site_ahead_s"] == pytest.approx(AHEAD_S, abs=60.0)


async def test_a_clock_that_was_put_right_once_is_followed_again(
    tmp_path: Path, scripts: dict[str, list[Any]]
) -> None:
    state, clock = tmp_path / "state", Clock()
    script = scripts.setdefault("a", [])
    async with running(loaded(state, "a"), state, clock) as daemon:
        await submit(daemon, script, clock, "before")
        for again in ("once", "twice"):
            clock.ahead_s = AHEAD_S
            await submit(daemon, script, clock, again)
            clock.ahead_s = 0.0
            await until(partial(is_another, daemon, daemon.view.core))
            assert abs(ahead_s(daemon)) < 60.0
            await submit(daemon, script, clock, f"after {again}")
        assert whole_status(daemon.view)["jobs"]["queued"] == 5


async def test_where_nothing_from_before_is_left_time_stands_still_until_the_clock_is_there(
    tmp_path: Path, scripts: dict[str, list[Any]]
) -> None:
    state, clock = tmp_path / "state", Clock()
    clock.ahead_s = AHEAD_S
    script = scripts.setdefault("a", [])
    async with running(loaded(state, "a"), state, clock) as daemon:
        await submit(daemon, script, clock, "1")
        core = daemon.view.core
        clock.ahead_s = 0.0
        await until(lambda: whole_status(daemon.view)["notes"])
        [note] = whole_status(daemon.view)["notes"]
        assert note == (
            "the site's time is 87600 h ahead of this host's clock and stops until the "
            "clock catches up; set the clock if it is wrong"
        )
        script.append(batch_of((time.time(), events.SUBMITTED, "2", JobSpec())))
        await until(lambda: not script)
        assert daemon.view.core is core
        assert ahead_s(daemon) == pytest.approx(AHEAD_S, abs=60.0)
        clock.ahead_s = AHEAD_S
        await until(lambda: not whole_status(daemon.view)["notes"])
        assert whole_status(daemon.view)["jobs"]["queued"] == 2


async def test_where_the_state_cannot_be_made_anew_the_daemon_goes_on_with_what_it_has(
    tmp_path: Path, scripts: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    state, clock = tmp_path / "state", Clock()
    script = scripts.setdefault("a", [])

    def fail(*asked: Any) -> Any:
        raise MemoryError("no room")

    with capture_logs() as lines:
        async with running(loaded(state, "a"), state, clock) as daemon:
            await submit(daemon, script, clock, "1")
            clock.ahead_s = AHEAD_S
            await submit(daemon, script, clock, "2")
            monkeypatch.setattr(pump, "bring_up", fail)
            clock.ahead_s = 0.0
            await until(lambda: whole_status(daemon.view)["notes"])
            assert "stops until" in whole_status(daemon.view)["notes"][0]
            await submit(daemon, script, clock, "3")
    events_told = [line["event"] for line in lines]
    assert events_told.count("clock_repair_failed") == 1, "it is not tried with every batch"


def test_a_clock_is_believed_a_day_ahead_for_records_and_an_hour_for_the_site() -> None:
    now_s = 1_800_000_000.0
    clock = WallClock(lambda: now_s)
    assert clock.now_s == now_s
    assert clock.limits(0.0) == (EARLIEST_S, now_s + RECORD_AHEAD_S)
    assert clock.limits(now_s + 5e6) == (EARLIEST_S, now_s + 5e6 + RECORD_AHEAD_S)
    latest_s = clock.latest_site_s()
    assert latest_s is not None
    assert SITE_AHEAD_S < latest_s - now_s < SITE_AHEAD_S + 600.0


def test_a_clock_from_before_there_was_an_outrider_is_no_measure_of_others() -> None:
    clock = WallClock(lambda: 1_700_000_000.0)
    assert clock.limits(5e9) == (EARLIEST_S, inf)
    assert clock.latest_site_s() is None
