"""Broken guards: the daemon falls back to shadow and stays there until `promote`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from outrider.acting import gate
from outrider.api import DecisionRow
from outrider.journal import CommandRecord
from outrider.model.errors import ConfigurationError, LedgerError
from outrider.service.core.mode_limit import BY_GUARD, LIMIT_NAME, keep_limit, limit_of
from outrider.service.host.sdnotify import ServiceManager
from outrider.service.journal.recording import Recording
from outrider.service.modes import guard_watch
from outrider.service.process import supervisor as supervisor_module
from outrider.service.process.supervisor import Supervisor
from outrider.service.web.endpoints.status import whole_status
from tests.service.running.desk import Book
from tests.service.running.test_levers import desk, loaded_in

__all__ = ["desk"]
WHY = "a guard broke: error ratio 1 is above its bound 0.5"


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two refusals are enough, and it is looked often."""
    monkeypatch.setattr(gate, "MIN_N", 2)
    monkeypatch.setattr(guard_watch, "_EVERY_S", 0.05)


def refuse(self: Book, decisions: Sequence[DecisionRow]) -> dict[str, str]:
    self.asked.extend(("refuse", decision.job) for decision in decisions)
    return {decision.job: "not yours" for decision in decisions}


@asynccontextmanager
async def daemon(folder: Path, **acting: Any) -> AsyncIterator[Supervisor]:
    """A daemon in the mode `active`."""
    recording = Recording(folder)
    supervisor = Supervisor(
        loaded_in("active", folder, acting=acting), recording, ServiceManager({})
    )
    work = asyncio.create_task(supervisor.run())
    try:
        while not supervisor.view.is_ready:  # noqa: ASYNC110 - a moment
            await asyncio.sleep(0.01)
        yield supervisor
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await asyncio.to_thread(recording.close)


async def mode_once(supervisor: Supervisor, mode: str) -> dict[str, Any]:
    """Return the status once this mode is effective."""
    for _ in range(400):
        status = whole_status(supervisor.view)
        if status["mode"] == mode:
            return status
        await asyncio.sleep(0.025)
    raise AssertionError(f"never in the mode {mode}: {status}")


async def commanded(supervisor: Supervisor, n: int) -> Sequence[CommandRecord]:
    """Return the recorded commands once there are so many."""
    assert supervisor.view.commands is not None
    for _ in range(400):
        if len(records := supervisor.view.commands.history.records) >= n:
            return records
        await asyncio.sleep(0.025)
    raise AssertionError(f"never {n} commands: {records}")


async def test_a_lever_that_is_refused_ends_the_acting_and_that_outlives_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = Book.apply
    monkeypatch.setattr(Book, "apply", refuse)
    state = tmp_path / "state"
    async with daemon(state) as supervisor:
        status = await mode_once(supervisor, "shadow")
        assert status["levers"] == []
        [note] = [note for note in status["notes"] if "guard" in note]
        right = f'mode "shadow" in place of "active": {WHY}; `outrider promote` climbs'
        assert note == right
        assert {policy["role"] for policy in status["policies"]} == {"shadow"}
        began, fell = await commanded(supervisor, 2)
        assert (fell.command, fell.uid, fell.why) == ("fall_back", None, WHY)
        assert (fell.from_mode, fell.to_mode) == ("active", "shadow")
        assert (began.command, began.to_mode) == ("configuration", "active")
    limit = limit_of(state)
    assert limit is not None
    assert (limit.most, limit.was, limit.by, limit.why) == ("shadow", "active", BY_GUARD, WHY)
    Book.begin()
    async with daemon(state) as supervisor:
        status = whole_status(supervisor.view)
        assert (status["mode"], right in status["notes"]) == ("shadow", True)
        await supervisor.reload(loaded_in("active", state))
        assert whole_status(supervisor.view)["mode"] == "shadow", "a reload climbs no more"
        assert Book.made == []
        monkeypatch.setattr(Book, "apply", works)
        keep_limit(None, state)
        await supervisor.reload(loaded_in("active", state))
        status = await mode_once(supervisor, "active")
        assert right not in status["notes"]
        assert len(Book.made) == 1


async def test_it_falls_back_also_where_that_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Book, "apply", refuse)
    state = tmp_path / "state"
    (state / LIMIT_NAME).with_suffix(".part").mkdir(parents=True)
    async with daemon(state) as supervisor:
        status = await mode_once(supervisor, "shadow")
        assert any(WHY in note for note in status["notes"])
    assert not (state / LIMIT_NAME).exists()


async def test_a_guard_that_is_not_set_or_not_broken_changes_nothing(tmp_path: Path) -> None:
    async with daemon(tmp_path / "state", guard_mean_wait_s=1e6) as supervisor:
        for _ in range(40):
            await asyncio.sleep(0.025)
        status = whole_status(supervisor.view)
        assert status["mode"] == "active"
        assert len(status["levers"]) == 1


def test_a_limit_that_cannot_be_read_lets_nothing_be_changed(tmp_path: Path) -> None:
    assert limit_of(tmp_path) is None
    for text in ("{half", '{"most": "all", "at_s": 1, "was": "active", "by": "command"}'):
        (tmp_path / LIMIT_NAME).write_text(text)
        found = limit_of(tmp_path)
        assert found is not None
        assert found.most == "shadow"
        assert "mode-limit.json cannot be read" in found.why


async def test_a_lever_works_no_more_also_where_no_shadow_can_be_put_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*given: Any) -> None:
        raise ConfigurationError("this pool has gone")

    monkeypatch.setattr(supervisor_module, "reload", refused)
    with capture_logs() as lines:
        async with daemon(tmp_path / "state") as supervisor:
            for _ in range(400):
                if Book.asked[1:]:
                    break
                await asyncio.sleep(0.01)
            monkeypatch.setattr(Book, "apply", refuse)
            with pytest.raises(ConfigurationError, match="this pool has gone"):
                await supervisor._modes.fall_back("a guard broke: x")
            status = whole_status(supervisor.view)
            assert status["levers"] == []
            assert any("a guard broke: x" in note for note in status["notes"])
            assert {job for what, job in Book.asked if what == "withdraw"} == {"1", "2"}
    assert not [line for line in lines if line["event"] == "levers_left"]


async def test_a_guard_that_cannot_look_or_fall_back_looks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults: list[Exception] = [ConfigurationError("no shadow"), ZeroDivisionError("a figure")]

    class Faulty(guard_watch.GuardWatch):
        async def look(self) -> None:
            if faults:
                raise faults.pop(0)
            looked.set()

    async def nobody(why: str) -> None:
        raise AssertionError("it is not asked")

    looked = asyncio.Event()
    state: Any = None  # it is only looked at where this class does not
    with capture_logs() as lines:
        watching = asyncio.create_task(Faulty(state, nobody).run())
        async with asyncio.timeout(10):
            await looked.wait()
        watching.cancel()
    assert [line["event"] for line in lines] == ["fallback_failed", "guards_failed"]
    assert lines[0]["error"] == "no shadow"


def test_a_limit_that_cannot_be_kept_or_removed_says_so(tmp_path: Path) -> None:
    (tmp_path / LIMIT_NAME).mkdir()
    with pytest.raises(LedgerError, match=r"mode-limit\.json: cannot be written"):
        keep_limit(None, tmp_path)
    assert limit_of(tmp_path) is not None
