"""Commands in the journal: how they are stored and read."""

import io
import json
import sqlite3
from pathlib import Path

import pytest

from outrider.formats.tables import stream_rows
from outrider.journal import CommandRecord, Entry, Journal, journal, rows_of, schema, verify
from tests.journal.samples import numbered_entry

LOWERED = CommandRecord(
    1.7e9, "mode", 1000, "alice", "active", "shadow", why="jobs of bob wait too long"
)
FELL_BACK = CommandRecord(1.8e9, "fall_back", None, "", "active", "shadow", why="a guard broke")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two commands, with inputs and decisions before and between."""
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        journal.append(numbered_entry(1))
        journal.append_all([Entry(commands=[LOWERED]), numbered_entry(2)])
        journal.append(Entry(commands=[FELL_BACK]))
    return path


def test_each_command_knows_what_it_came_after(path: Path) -> None:
    with Journal(path, read_only=True) as journal:
        assert list(journal.commands()) == [(4, LOWERED), (8, FELL_BACK)]
        assert journal.latest_commands(1) == [(8, FELL_BACK)]
        assert journal.last_seq() == 8, "commands take no numbers from inputs and decisions"
    assert verify(path).ok


def test_a_command_that_was_changed_afterwards_is_found(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE commands SET user = 'bob' WHERE id = 1")
    assert verify(path).problems == ["commands: a value was changed in row 1"]


def test_commands_are_kept_as_long_as_runs(path: Path) -> None:
    with Journal(path) as journal:
        journal.prune(1.75e9, oldest_snapshot_seq=journal.last_seq())
        assert len(list(journal.commands())) == 2
        journal.prune(1.75e9, oldest_snapshot_seq=journal.last_seq(), runs_before_s=1.75e9)
        assert list(journal.commands()) == [(8, FELL_BACK)]
    assert verify(path).ok


def test_a_script_that_commands_for_ever_does_not_fill_the_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MAX_COMMANDS", 3)
    with Journal(path) as opened:
        opened.append(Entry(commands=[LOWERED] * 5))
        opened.prune(0.0, oldest_snapshot_seq=0, runs_before_s=0.0)
        assert [record for _, record in opened.commands()] == [LOWERED] * 3


def test_an_older_journal_has_none_and_is_read_and_verified_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    with monkeypatch.context() as before:
        before.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:5])
        before.setattr(schema, "VERSION", 5)
        Journal(path).close()
    with Journal(path, read_only=True) as journal:
        assert (list(journal.commands()), journal.latest_commands(5)) == ([], [])
    assert verify(path).ok
    with Journal(path) as journal:
        journal.append(Entry(commands=[LOWERED]))
        assert list(journal.commands()) == [(0, LOWERED)]


def test_they_are_exported_one_json_object_a_line(path: Path) -> None:
    out = io.BytesIO()
    with Journal(path, read_only=True) as journal:
        assert stream_rows(rows_of(journal, "commands"), out, "jsonl") == 2
    first, second = map(json.loads, out.getvalue().splitlines())
    assert first == {
        "after_seq": 4, "at_s": 1.7e9, "command": "mode", "uid": 1000, "user": "alice",
        "from_mode": "active", "to_mode": "shadow", "outcome": "done",
        "why": "jobs of bob wait too long", "detail": "",
    }  # fmt: skip
    assert (second["uid"], second["after_seq"]) == (None, 8)
