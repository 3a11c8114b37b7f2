"""`outrider ledger`: shown, exported, verified; also as one word with --export."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from outrider.journal import CommandRecord, Entry, Journal, SetAsideRecord
from tests.cli.running import outrider, shell

ROW_FIELDS = {
    "time_s", "seq", "job", "action", "machine", "cpus", "reason", "policy", "mode", "propensity",
    "scores", "input_age_s",
}  # fmt: skip


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_short_form_exports_one_json_object_a_line(recorded: tuple[Path, Any]) -> None:
    file, run = recorded
    done = shell("ledger", file, "--export", "jsonl")
    assert (done.code, done.err) == (0, "")
    told = rows(done.out)
    assert len(told) == run["decisions"]
    assert all(set(row) >= ROW_FIELDS for row in told)
    assert [row["seq"] for row in told] == sorted(row["seq"] for row in told)
    assert shell("ledger", "--export", "jsonl", file).out == done.out


def test_export_writes_the_same_to_a_file(recorded: tuple[Path, Any], tmp_path: Path) -> None:
    file, _ = recorded
    out = tmp_path / "decisions.jsonl"
    assert outrider("ledger", "export", file, "--out", out).code == 0
    assert out.read_text() == outrider("ledger", file, "--export", "jsonl").out


def test_one_job_can_be_asked_for(recorded: tuple[Path, Any]) -> None:
    file, _ = recorded
    job = rows(outrider("ledger", file, "--export", "jsonl").out)[0]["job"]
    told = rows(outrider("ledger", "export", file, "--job", job).out)
    assert {row["job"] for row in told} == {job}
    shown = outrider("ledger", "show", file, "--job", job, "--json").json()["decisions"]
    assert shown == told[-20:]


def test_show_gives_the_last_decisions(recorded: tuple[Path, Any]) -> None:
    file, _ = recorded
    every = rows(outrider("ledger", file, "--export", "jsonl").out)
    shown = outrider("ledger", "show", file, "--limit", 3, "--json").json()["decisions"]
    assert shown == every[-3:]
    table = outrider("ledger", file).out
    assert str(every[-1]["seq"]) in table
    assert "reason" in table


def test_verify_finds_the_hash_of_the_replay(recorded: tuple[Path, Any]) -> None:
    file, run = recorded
    report = outrider("ledger", "verify", file, "--json").json()
    assert report["ok"] is True
    assert report["ledger_sha256"] == run["ledger_sha256"]


def test_a_ledger_that_is_not_whole_is_a_no(recorded: tuple[Path, Any], tmp_path: Path) -> None:
    file, _ = recorded
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(file.read_bytes())
    connection = sqlite3.connect(damaged)
    connection.execute("DELETE FROM decisions WHERE seq = 7")
    connection.commit()
    connection.close()
    done = outrider("ledger", "verify", damaged)
    assert done.code == 1
    assert "have no row" in done.out


@pytest.mark.parametrize("words", [("show",), ("export",), ("verify",), ()])
def test_what_is_no_ledger_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "poem").write_text("Half a league, half a league, half a league onward,\n" * 9)
    done = outrider("ledger", *words, tmp_path / "poem")
    assert done.code == 2
    assert "use a journal of Outrider" in done.err


def test_a_misspelled_word_is_not_taken_for_a_file() -> None:
    done = outrider("ledger", "exprot")
    assert done.code == 2
    assert 'did you mean "export"?' in done.err


def test_events_that_were_set_aside_are_listed_at_the_time_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "journal.sqlite"
    late = SetAsideRecord("log", 1_700_000_000.0, "evicted", "7.0", '"owner"', "after_end")
    with Journal(file) as journal:
        journal.append(Entry(set_aside=[late], meta={"timezone": "Europe/Berlin"}))
    shown = outrider("ledger", "set-aside", file)
    assert shown.code == 0
    for word in ("2023-11-14", "23:13:20", "CET", "evicted", "7.0", "after_end"):
        assert word in shown.out
    told = outrider("ledger", "set-aside", file, "--json").json()["set_aside"]
    assert [(row["seq"], row["subject"], row["reason"]) for row in told] == [
        (1, "7.0", "after_end")
    ]


def test_commands_are_shown_and_exported(tmp_path: Path) -> None:
    file = tmp_path / "journal.sqlite"
    given = CommandRecord(1795460755.0, "mode", 1000, "alice", "active", "shadow", why="new pool")
    began = CommandRecord(1795460700.0, "configuration", None, "", "", "active")
    with Journal(file) as journal:
        journal.append(Entry(commands=[began, given], meta={"timezone": "Europe/Berlin"}))
    told = outrider("ledger", "commands", file).out.splitlines()
    assert told == [
        "2026-11-23 20:05:00 CET  configuration: active",
        "2026-11-23 20:05:55 CET  mode by alice (1000): active -> shadow; new pool",
    ]
    shown = outrider("ledger", "commands", file, "--limit", "1", "--json").json()["commands"]
    assert [row["user"] for row in shown] == ["alice"]
    exported = rows(outrider("ledger", "export", file, "--rows", "commands").out)
    assert [row["command"] for row in exported] == ["configuration", "mode"]
    assert exported[1] == shown[0]
    wrong = outrider("ledger", "export", file, "--rows", "commands", "--job", "1.0")
    assert (wrong.code, "commands have no job" in wrong.err) == (2, True)
