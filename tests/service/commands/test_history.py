"""The last commands and changes of the mode: since when, and what outlives a restart."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from outrider.journal import CommandRecord, Journal
from outrider.model.errors import LedgerError
from outrider.service.commands.command import CONFIGURATION, MAX_SHOWN, CommandHistory
from outrider.service.journal.recording import Recording


def record(at_s: float, before: str, after: str, command: str = "mode") -> CommandRecord:
    return CommandRecord(at_s, command, 7, "ada", before, after, why="a test")


async def test_since_when_a_mode_is_in_force_goes_back_to_where_it_began(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    history = CommandHistory(recording)
    assert (history.last_mode, history.since_s("shadow")) == ("", None)
    for one in (record(10.0, "observe", "shadow"), record(20.0, "shadow", "canary"),
                record(30.0, "canary", "shadow"), record(40.0, "shadow", "shadow")):  # fmt: skip
        await history.record(one)
    assert history.last_mode == "shadow"
    assert history.since_s("shadow") == 30.0, "not when it was in force before"
    assert history.since_s("canary") is None
    recording.close()


async def test_the_last_hundred_are_told_in_order_also_after_a_restart(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    history = CommandHistory(recording)
    for n in range(MAX_SHOWN + 3):
        await history.record(record(float(n), "shadow", "shadow"))
    recording.close()
    again = Recording(tmp_path)
    for one in (history, CommandHistory(again)):
        assert [row.at_s for row in one.records] == [float(n) for n in range(3, MAX_SHOWN + 3)]
    again.close()


@pytest.mark.parametrize(
    ("one", "event", "level"),
    [
        (record(1.0, "shadow", "canary"), "mode_changed", "warning"),
        (record(1.0, "shadow", "shadow", "release"), "command_recorded", "warning"),
        (record(1.0, "observe", "shadow", CONFIGURATION), "mode_changed", "info"),
    ],
)
async def test_each_is_a_line_of_the_log(
    tmp_path: Path, one: CommandRecord, event: str, level: str
) -> None:
    recording = Recording(tmp_path)
    history = CommandHistory(recording)
    with capture_logs() as lines:
        await history.record(one)
    assert [(line["event"], line["log_level"], line["user"]) for line in lines] == [
        (event, level, "ada")
    ]
    recording.close()


async def test_a_command_that_the_journal_has_no_room_for_is_shown_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording(tmp_path)
    history = CommandHistory(recording)

    async def never(_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(recording, "submit", never)
    with capture_logs() as lines:
        await history.record(record(1.0, "shadow", "canary"))
    assert [line["event"] for line in lines] == ["mode_changed", "command_not_saved"]
    assert history.last_mode == "canary"
    recording.close()


@pytest.mark.parametrize("error", [LedgerError("damaged"), TypeError("x"), ValueError("y")])
def test_commands_that_cannot_be_read_keep_no_daemon_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Journal, "latest_commands", fails)
    recording = Recording(tmp_path)
    with capture_logs() as lines:
        assert CommandHistory(recording).records == []
    assert [(line["event"], line["error"]) for line in lines] == [
        ("commands_unreadable", str(error))
    ]
    recording.close()
