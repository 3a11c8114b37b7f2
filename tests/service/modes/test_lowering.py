"""Lowering the mode by command: immediate, persistent until `promote`, and recorded."""

import asyncio
import pwd
import threading
from pathlib import Path
from typing import Any

import pytest

from outrider.api import Adapter
from outrider.journal import Journal
from outrider.model.errors import ConfigurationError
from outrider.service.commands.command import Promote, SetMode
from outrider.service.core.mode_limit import LIMIT_NAME
from outrider.service.daemon.sources import make_adapters
from outrider.service.web.endpoints.status import whole_status
from tests.service.modes.acting_daemon import (
    EVIDENCE,
    UID,
    commands_of,
    daemon,
    give,
    mode_of,
    until,
)
from tests.service.running.desk import Book
from tests.service.running.test_levers import desk, loaded_in

__all__ = ["desk"]
ME = pwd.getpwuid(UID).pw_name


async def test_to_shadow_what_was_changed_is_taken_back_and_nothing_more_is_done(
    tmp_path: Path,
) -> None:
    async with daemon(tmp_path / "state") as supervisor:
        await until(lambda: len(Book.asked) == 2)
        result = await give(supervisor, SetMode(mode="shadow", why="new  file\nserver\x1b[2J"))
        assert (result.outcome, result.from_mode, result.mode) == ("done", "active", "shadow")
        assert result.text == [
            "the mode was active and is shadow",
            "changes for 2 jobs were reverted",
            "this holds over restarts and reloads; `outrider promote` climbs again",
        ]
        assert Book.asked[2:] == [("withdraw", "1"), ("withdraw", "2")]
        assert mode_of(supervisor) == "shadow"
        status = whole_status(supervisor.view)
        assert status["levers"] == []
        note = 'mode "shadow" in place of "active": by command: new file server[2J; `outrider'
        assert [one for one in status["notes"] if one.startswith(note)]
        [row, _] = status["commands"]
        assert (row["uid"], row["user"], row["why"]) == (UID, ME, "new file server[2J")
    with Journal(tmp_path / "state" / "journal.sqlite", read_only=True) as journal:
        recorded = [record for _, record in journal.commands()]
    assert [(r.command, r.from_mode, r.to_mode, r.outcome) for r in recorded] == [
        ("configuration", "", "active", "done"),
        ("mode", "active", "shadow", "done"),
    ]


async def test_it_holds_over_restarts_and_reloads_and_is_told(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with daemon(state) as supervisor:
        await give(supervisor, SetMode(mode="shadow"))
    Book.begin()
    async with daemon(state) as supervisor:
        assert mode_of(supervisor) == "shadow"
        await supervisor.reload(loaded_in("active", state))
        assert mode_of(supervisor) == "shadow"
        assert whole_status(supervisor.view)["configured_mode"] == "active"
        assert [r.command for r in commands_of(supervisor).history.records] == [
            "configuration", "mode",
        ]  # fmt: skip
        await supervisor.reload(loaded_in("observe", state))
        assert mode_of(supervisor) == "observe", "the configuration goes lower at any time"
        last = commands_of(supervisor).history.records[-1]
        assert (last.command, last.uid, last.to_mode) == ("configuration", None, "observe")
    assert Book.made == []


async def test_to_a_canary_the_rest_is_let_go(tmp_path: Path) -> None:
    """Canary by fraction: half of the jobs 1, 2 and 3 are in it, namely 1 and 3."""
    async with daemon(tmp_path / "state", canary_fraction=0.5) as supervisor:
        await until(lambda: len(Book.asked) == 2)
        result = await give(supervisor, SetMode(mode="canary"))
        assert (result.outcome, mode_of(supervisor)) == ("done", "canary")
        assert Book.asked[2:4] == [("withdraw", "1"), ("withdraw", "2")]
        assert len(whole_status(supervisor.view)["levers"]) == 1


async def test_a_command_never_climbs_and_needs_a_canary_for_a_canary(tmp_path: Path) -> None:
    async with daemon(tmp_path / "state") as supervisor:
        result = await give(supervisor, SetMode(mode="canary"))
        assert result.outcome == "refused"
        assert "there is no canary; expected some of canary_clusters" in result.text[0]
        await give(supervisor, SetMode(mode="shadow"))
        result = await give(supervisor, SetMode(mode="active"))
        assert (result.outcome, result.mode) == ("refused", "shadow")
        assert "`outrider promote` climbs, step by step" in result.text[0]
        assert commands_of(supervisor).history.records[-1].outcome == "refused"


async def test_the_mode_there_is_can_be_made_to_stay(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with daemon(state, "shadow") as supervisor:
        result = await give(supervisor, SetMode(mode="shadow", why="not before May"))
        assert (result.outcome, result.text[0]) == ("done", "the mode is shadow")
        await supervisor.reload(loaded_in("active", state))
        assert mode_of(supervisor) == "shadow"


async def test_it_is_done_also_where_it_cannot_be_written(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with daemon(state) as supervisor:
        (state / LIMIT_NAME).with_suffix(".part").mkdir()
        result = await give(supervisor, SetMode(mode="shadow"))
        assert (result.outcome, mode_of(supervisor)) == ("done", "shadow")
        assert any("only until the next restart or reload" in one for one in result.text)


async def test_a_lever_that_hangs_is_let_go_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang(self: Book, jobs: object) -> dict[str, str]:
        loop.call_soon_threadsafe(hangs.set)
        while hanging:
            Book.pause()
        return {}

    hanging = [True]
    monkeypatch.setattr(Book, "withdraw", hang)
    monkeypatch.setattr("outrider.service.daemon.levers.CLOSE_S", 0.1)
    async with daemon(tmp_path / "state") as supervisor:
        await until(lambda: len(Book.asked) == 2)
        result = await give(supervisor, SetMode(mode="shadow"))
        assert hangs.is_set()
        assert (result.outcome, mode_of(supervisor)) == ("done", "shadow")
        assert "desk: book: no answer yet; the changes expire automatically" in result.text
        hanging.clear()


async def test_it_acts_no_more_at_once_though_another_command_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that changes are reverted even while a reload hangs in a plugin."""
    goes_on = asyncio.Event()
    state = tmp_path / "state"

    hangs = asyncio.Event()

    async def hang(*_: object) -> None:
        hangs.set()
        await goes_on.wait()
        raise RuntimeError("at last")

    async with daemon(state, canary_fraction=0.5, **EVIDENCE) as supervisor:
        await give(supervisor, SetMode(mode="canary"))
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr("outrider.service.process.supervisor.reload", hang)
            climbing = asyncio.create_task(give(supervisor, Promote()))
            await hangs.wait()
            falling = asyncio.create_task(give(supervisor, SetMode(mode="shadow")))
            await until(lambda: whole_status(supervisor.view)["levers"] == [])
            assert not falling.done()
        goes_on.set()
        climbed, fell = await asyncio.gather(climbing, falling)
        assert climbed.outcome == "failed"
        assert "RuntimeError: at last" in climbed.text[0]
        assert (fell.outcome, mode_of(supervisor)) == ("done", "shadow")
    async with daemon(state, canary_fraction=0.5) as supervisor:
        assert mode_of(supervisor) == "shadow", "what hung did not write over the limit"


async def test_whoever_lowers_the_mode_comes_before_a_climb_that_waits_for_its_turn(
    tmp_path: Path,
) -> None:
    async with daemon(tmp_path / "state", canary_fraction=0.5, **EVIDENCE) as supervisor:
        await give(supervisor, SetMode(mode="canary"))
        climbing = asyncio.create_task(give(supervisor, Promote()))
        await asyncio.sleep(0)
        fell = await give(supervisor, SetMode(mode="shadow"))
        climbed = await climbing
        assert (climbed.outcome, fell.outcome, mode_of(supervisor)) == ("failed", "done", "shadow")
        assert "lowered since" in climbed.text[0]


async def test_a_reload_that_began_before_may_not_act_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, goes_on = tmp_path / "state", threading.Event()

    def slow(*given: Any) -> dict[str, Adapter]:
        goes_on.wait()
        return make_adapters(*given)

    async with daemon(state) as supervisor:
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr("outrider.service.daemon.reload.make_adapters", slow)
            again = loaded_in("active", state, acting={"acts_per_minute": 7.0})
            reloading = asyncio.create_task(supervisor.reload(again))
            await asyncio.sleep(0.05)
            falling = asyncio.create_task(give(supervisor, SetMode(mode="shadow")))
            await until(lambda: whole_status(supervisor.view)["levers"] == [])
            goes_on.set()
            with pytest.raises(ConfigurationError, match="the mode has been lowered since"):
                await reloading
            assert (await falling).outcome == "done"
        assert mode_of(supervisor) == "shadow"
        assert len(Book.made) == 1
