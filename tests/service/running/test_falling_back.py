"""Where a guard breaks, the daemon falls back to shadow, and stays there until that is lifted."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from outrider.acting import guards
from outrider.api import DecisionRow
from outrider.service import guard_watch
from outrider.service.demotion import DEMOTION_NAME, demotion_of, lift
from outrider.service.recording import Recording
from outrider.service.sdnotify import ServiceManager
from outrider.service.supervisor import Supervisor
from outrider.service.web.endpoints.status import whole_status
from tests.cli.running import outrider
from tests.service.running.desk import Book
from tests.service.running.test_levers import desk, loaded_in

__all__ = ["desk"]
WHY = "a guard broke: error ratio 1 is above its bound 0.5"


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two refusals are enough, and it is looked often."""
    monkeypatch.setattr(guards, "LEAST_N", 2)
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
    """The status once this mode is in force."""
    for _ in range(400):
        status = whole_status(supervisor.view)
        if status["mode"] == mode:
            return status
        await asyncio.sleep(0.025)
    raise AssertionError(f"never in the mode {mode}: {status}")


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
        right = f'mode "shadow" in place of "active": {WHY}; `outrider promote` lifts that'
        assert note == right
        assert {policy["role"] for policy in status["policies"]} == {"shadow"}
    demotion = demotion_of(state)
    assert demotion is not None
    assert (demotion.mode, demotion.why) == ("active", WHY)
    Book.begin()
    async with daemon(state) as supervisor:
        status = whole_status(supervisor.view)
        assert (status["mode"], right in status["notes"]) == ("shadow", True)
        await supervisor.reload(loaded_in("active", state))
        assert whole_status(supervisor.view)["mode"] == "shadow", "a reload climbs no more"
        assert Book.made == []
        monkeypatch.setattr(Book, "apply", works)
        lift(state)
        await supervisor.reload(loaded_in("active", state))
        status = await mode_once(supervisor, "active")
        assert right not in status["notes"]
        assert len(Book.made) == 1


async def test_it_falls_back_also_where_that_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Book, "apply", refuse)
    state = tmp_path / "state"
    (state / DEMOTION_NAME).with_suffix(".part").mkdir(parents=True)
    async with daemon(state) as supervisor:
        status = await mode_once(supervisor, "shadow")
        assert any(WHY in note for note in status["notes"])
    assert not (state / DEMOTION_NAME).exists()


async def test_a_guard_that_is_not_set_or_not_broken_changes_nothing(tmp_path: Path) -> None:
    async with daemon(tmp_path / "state", guard_mean_wait_s=1e6) as supervisor:
        for _ in range(40):
            await asyncio.sleep(0.025)
        status = whole_status(supervisor.view)
        assert status["mode"] == "active"
        assert len(status["levers"]) == 1


def test_a_demotion_that_cannot_be_read_is_one(tmp_path: Path) -> None:
    assert demotion_of(tmp_path) is None
    (tmp_path / DEMOTION_NAME).write_text("{half")
    found = demotion_of(tmp_path)
    assert found is not None
    assert "demotion.json cannot be read" in found.why


def test_promote_says_why_and_lifts_it(tmp_path: Path) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text(f'state_dir = "{tmp_path}"\n[adapters.simulated]\n')
    file = tmp_path / DEMOTION_NAME
    file.write_text('{"at_s": 1795460755.0, "mode": "active", "why": "a guard broke: x"}')
    said = outrider("promote", "--config", config)
    assert said.code == 0
    first = "fell back from active to shadow on 23 Nov 2026 19:05:55 UTC: a guard broke: x"
    assert said.out.splitlines()[0] == first
    assert not file.exists()
    assert outrider("promote", "--config", config).code == 1
