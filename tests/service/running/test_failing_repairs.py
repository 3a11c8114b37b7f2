"""Failed repairs after an internal error: the state is rebuilt from snapshot and journal."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outrider.api import Batch
from outrider.engine import engine as engine_module
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.realign import realign as realign_state
from outrider.model.events import SUBMITTED, NamedEvent
from outrider.model.jobs import Job, JobSpec
from outrider.service.config.loaded import check_config
from outrider.service.core.core import Core
from outrider.service.host.sdnotify import ServiceManager
from outrider.service.journal.recording import Recording
from outrider.service.journal.restart import bring_up
from outrider.service.process.supervisor import Supervisor
from outrider.service.web.endpoints.status import whole_status
from tests.fixtures.cores import T, core_of, packed, run_of, tell
from tests.service.running.event_log import EventLog

BAD: NamedEvent = (T + 10, SUBMITTED, "bad", JobSpec(user="bad"))


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of user `bad` is counted by halves, and the repair after that fails, too."""
    submitted, realign = Accounting.job_submitted, realign_state
    in_doubt: list[Accounting] = []

    def job_submitted(self: Accounting, job: Job, *more: Any) -> None:
        submitted(self, job, *more)
        if job.spec.user == "bad" or job.number == 6:
            in_doubt.append(self)
            raise KeyError("half way")

    def failing(site: Any, accounting: Accounting, *more: Any) -> None:
        if any(accounting is doubtful for doubtful in in_doubt):
            raise IndexError("nothing to hold on to")
        realign(site, accounting, *more)

    monkeypatch.setattr(Accounting, "job_submitted", job_submitted)
    monkeypatch.setattr(engine_module, "realign", failing)


def journalled(recording: Recording, core: Core, events: list[NamedEvent], until_s: float) -> None:
    """One batch through the core into the journal."""
    batch = Batch(events=events, cursor=1)
    feed = core.take("log", batch, until_s)
    while core.step(feed, 100):
        pass
    entry = core.entry("log", batch)
    assert entry is not None
    asyncio.run(recording.submit(entry))


def test_the_events_after_it_go_on_and_both_failures_are_told(faulty: None) -> None:
    core = core_of("log")
    tell(core, "log", [*run_of("1", T), BAD, *run_of("2", T + 20)], T + 60)
    assert core.accounting.completed == 2
    assert core.unrepaired == [("log", *BAD[:3])]
    assert core.merger.set_aside["fault"] == 1
    (put,) = core.merger.newly_set_aside
    assert "KeyError: 'half way'" in put.detail
    assert "the repair failed: IndexError: nothing to hold on to" in put.detail


def test_a_restart_leaves_out_the_event_after_which_nothing_can_be_repaired(
    faulty: None, tmp_path: Path
) -> None:
    recording = Recording(tmp_path)
    core = core_of("log")
    journalled(recording, core, [*run_of("1", T), BAD, *run_of("2", T + 20)], T + 60)
    asyncio.run(recording.settle())
    again, _, notes = bring_up(lambda: core_of("log"), recording)
    recording.close()
    spared = core_of("log")
    tell(spared, "log", [*run_of("1", T), *run_of("2", T + 20)], T + 60)
    assert not again.unrepaired
    assert notes == []
    assert again.merger.set_aside["fault"] == 1
    assert packed(again.accounting.save()) == packed(spared.accounting.save())
    assert packed(again.site.save()) == packed(spared.site.save())


def test_a_fault_that_nothing_can_be_left_out_for_is_told_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recording = Recording(tmp_path)
    journalled(recording, core_of("log"), run_of("1", T), T + 60)
    asyncio.run(recording.settle())

    def fails(*args: Any) -> None:
        raise IndexError("in a pass")

    monkeypatch.setattr("outrider.engine.engine.PolicyRunner.run_pass", fails)
    monkeypatch.setattr(engine_module, "realign", fails)
    again, _, notes = bring_up(lambda: core_of("log", policies={"fifo": {}}), recording)
    recording.close()
    assert again.accounting.submitted == 1
    assert not again.unrepaired
    assert notes == [
        "the state may be inconsistent: the repair after an internal error failed again"
    ]


def test_a_pass_that_always_fails_does_not_keep_the_daemon_busy_for_ever() -> None:
    core = core_of("log", policies={"fifo": {}})

    def fails(now: float) -> float:
        raise IndexError("in a pass")

    core.runners[0].run_pass = fails  # type: ignore[method-assign]
    feed = core.take("log", Batch([*run_of("1", T), *run_of("2", T + 20)], None), T + 60)
    steps = 0
    while core.step(feed, 100):
        steps += 1
        assert steps < 100
    assert core.accounting.completed == 2
    assert 1 <= core.merger.set_aside["fault"] <= 4


async def wait_for(what: str, holds: Callable[[], bool]) -> None:
    """Wait until something is so, for ten seconds."""
    for _ in range(200):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"not {what} in time")


async def test_a_running_daemon_rebuilds_its_state_and_goes_on(
    faulty: None, tmp_path: Path
) -> None:
    log = EventLog(tmp_path / "EventLog")
    log.run(range(1, 7))
    table = {
        "type": "logtail", "paths": [str(log.path)], "start_at": "beginning", "poll_s": 0.05,
        "settle_s": 0.05,
    }  # fmt: skip
    given = {"state_dir": str(tmp_path / "state"), "adapters": {"log": table}}
    recording = Recording(tmp_path / "state")
    supervisor = Supervisor(check_config(given, "test"), recording, ServiceManager({}))
    view = supervisor.view
    work = asyncio.create_task(supervisor.run())
    try:
        await wait_for("counting", lambda: view.core.accounting.completed == 6)
        broken = view.core
        log.run([7])
        await wait_for("rebuilt", lambda: view.core is not broken)
        assert not work.done()
        log.run([8, 9])
        await wait_for("all counted", lambda: view.core.accounting.completed >= 8)
        status = whole_status(view)
        assert any("the state was rebuilt" in note for note in status["notes"])
        assert status["set_aside"]["fault"] >= 1
        assert status["jobs"]["running"] == 0
        assert status["adapters"][0]["up"]
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await asyncio.to_thread(recording.close)
