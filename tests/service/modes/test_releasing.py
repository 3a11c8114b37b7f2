"""The command `release`: all changes are reverted, and none are made again."""

import threading
from pathlib import Path

import pytest

from outrider.model.errors import PeerError
from outrider.service.commands.command import Release
from tests.service.modes.acting_daemon import commands_of, daemon, give, mode_of, until
from tests.service.running.desk import Book
from tests.service.running.test_levers import desk

__all__ = ["desk"]


async def test_it_falls_to_shadow_first_and_takes_back_what_others_left_too(
    tmp_path: Path,
) -> None:
    async with daemon(tmp_path / "state") as supervisor:
        await until(lambda: len(Book.asked) == 2)
        result = await give(supervisor, Release(why="users wait"))
        assert (result.outcome, result.from_mode, result.mode) == ("done", "active", "shadow")
        assert result.text == [
            "the mode was active and is shadow; otherwise the changes would be made again",
            "changes for 2 jobs were reverted",
            "`outrider promote` climbs again",
            "desk: book: reverted for 2 jobs",
        ]
        assert [(one.lever, one.jobs) for one in result.released] == [("desk: book", 2)]
        assert Book.asked[2:] == [("withdraw", "1"), ("withdraw", "2"), ("withdraw_all", "")]
        assert commands_of(supervisor).history.records[-1].why == "users wait"


async def test_in_shadow_it_takes_back_what_a_daemon_before_left(tmp_path: Path) -> None:
    async with daemon(tmp_path / "state", "shadow") as supervisor:
        result = await give(supervisor, Release())
        assert (result.outcome, mode_of(supervisor)) == ("done", "shadow")
        assert result.text == ["desk: book: reverted for 2 jobs"]
        assert Book.asked == [("withdraw_all", "")]


async def test_a_lever_that_fails_is_told_and_the_mode_is_shadow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Book) -> int:
        raise PeerError("nobody at the desk")

    monkeypatch.setattr(Book, "withdraw_all", fail)
    async with daemon(tmp_path / "state") as supervisor:
        result = await give(supervisor, Release())
        assert (result.outcome, result.mode) == ("failed", "shadow")
        assert result.text[-1] == "desk: book: not reverted: PeerError: nobody at the desk"


async def test_a_lever_that_hangs_costs_one_thread_however_often_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()

    def hang(self: Book) -> int:
        goes_on.wait()
        return 0

    monkeypatch.setattr(Book, "withdraw_all", hang)
    monkeypatch.setattr("outrider.service.modes.commander._REVERT_TIMEOUT_S", 0.1)
    async with daemon(tmp_path / "state") as supervisor:
        result = await give(supervisor, Release())
        assert result.text[-1] == "desk: book: not reverted: no answer within 0.1 s"
        for _ in range(3):
            result = await give(supervisor, Release())
        assert result.text == ["desk: book: not reverted: an earlier call still hangs"]
        assert len([t for t in threading.enumerate() if t.name == "take-book"]) == 1
        goes_on.set()
