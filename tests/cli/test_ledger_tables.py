"""`outrider ledger export`: what is written is what the ending says, with every column."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from outrider.formats.tables import VERSION
from outrider.journal import CommandRecord, Entry, Journal, RunRecord, verify
from outrider.journal.tables import DECISIONS, TABLES
from tests.cli.running import outrider, shell

duckdb: Any = pytest.importorskip("duckdb")


def lines(file: Path, table: str) -> list[dict[str, Any]]:
    done = outrider("ledger", "export", file, "--rows", table)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def parquet(file: Path) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT * FROM read_parquet('{file}')")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize("table", ["decisions", "outcomes"])
def test_parquet_has_the_values_of_the_lines(
    recorded: tuple[Path, Any], tmp_path: Path, table: str
) -> None:
    out = tmp_path / "told.parquet"
    done = outrider("ledger", "export", recorded[0], "--rows", table, "--out", out)
    assert (done.code, done.err) == (0, "")
    assert out.read_bytes()[:4] == out.read_bytes()[-4:] == b"PAR1"
    told = lines(recorded[0], table)
    assert len(told) > 100
    names = TABLES[table].names
    assert parquet(out) == [{name: line.get(name) for name in names} for line in told]
    assert list(parquet(out)[0]) == names
    assert list(tmp_path.iterdir()) == [out]


def test_parquet_says_which_version_of_the_tables_it_has(
    recorded: tuple[Path, Any], tmp_path: Path
) -> None:
    out = tmp_path / "told.parquet"
    assert outrider("ledger", "export", recorded[0], "--out", out).code == 0
    with duckdb.connect() as connection:
        query = f"SELECT key, value FROM parquet_kv_metadata('{out}')"
        said = dict(connection.execute(query).fetchall())
    assert said[b"outrider_table"] == b"decisions"
    assert said[b"outrider_tables"] == str(VERSION).encode()


def test_csv_has_the_values_of_the_lines(recorded: tuple[Path, Any], tmp_path: Path) -> None:
    out = tmp_path / "told.csv"
    assert outrider("ledger", "export", recorded[0], "--out", out).code == 0
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    told = lines(recorded[0], "decisions")
    assert len(rows) == len(told)
    assert any(line["scores"] for line in told)
    for row, line in zip(rows, told, strict=True):
        assert list(row) == DECISIONS.names
        assert float(row["time_s"]) == line["time_s"]
        assert row["machine"] == (line["machine"] or "")
        assert (json.loads(row["scores"]) if row["scores"] else None) == line["scores"]
    assert shell("ledger", recorded[0], "--export", "csv").out == out.read_text()


def test_a_replays_ledger_has_how_each_run_ended_and_its_reward(recorded: tuple[Path, Any]) -> None:
    file, run = recorded
    told = lines(file, "outcomes")
    completed = [line for line in told if line["ending"] == "completed"]
    assert len(completed) == run["jobs"]["completed"]
    assert {line["policy"] for line in completed} == {"bandit"}
    assert any(line["reward"] for line in completed)
    assert sum(line["run_s"] for line in completed) == pytest.approx(run["goodput_s"])
    report = verify(file)
    assert report.ok
    assert report.ledger_sha256 == run["ledger_sha256"]


def test_ends_that_no_policy_learns_from_are_there_once(campus: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.sqlite"
    done = outrider("replay", campus, "--policy", "random_match", "--ledger", file, "--json")
    run = done.json()["runs"][0]
    told = lines(file, "outcomes")
    assert sum(line["ending"] == "completed" for line in told) == run["jobs"]["completed"]
    thrown_away = [line for line in told if line["ending"] != "completed" and line["machine"]]
    assert len(thrown_away) == sum(run["evictions"].values()) > 0
    assert sum(line["run_s"] for line in thrown_away) == pytest.approx(run["badput_s"])
    assert {(line["policy"], line["reward"]) for line in told} == {("", None)}


def test_runs_and_commands_of_a_journal_are_tables_too(tmp_path: Path) -> None:
    file = tmp_path / "journal.sqlite"
    with Journal(file) as journal:
        journal.append(
            Entry(
                runs=[RunRecord("1.0", "physics", "", "m1", 4, None, 10.0, 20.0, 10.0)],
                commands=[CommandRecord(1.7e9, "mode", None, "", "active", "shadow")],
            )
        )
    for table in ("runs", "commands"):
        out = tmp_path / f"{table}.parquet"
        assert outrider("ledger", "export", file, "--rows", table, "--out", out).code == 0
        assert parquet(out) == lines(file, table) != []


def test_a_table_without_rows_is_a_file_with_its_columns(tmp_path: Path) -> None:
    file = tmp_path / "journal.sqlite"
    Journal(file).close()
    for ending in ("parquet", "csv", "jsonl"):
        done = outrider("ledger", "export", file, "--out", tmp_path / f"none.{ending}")
        assert (done.code, done.err) == (0, "")
    assert parquet(tmp_path / "none.parquet") == []
    assert (tmp_path / "none.csv").read_text() == ",".join(DECISIONS.names) + "\n"
    assert (tmp_path / "none.jsonl").read_text() == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--out", "told.xlsx"), ".jsonl or .ndjson or .csv or .parquet"),
        (("--out", "told.parquet", "--format", "jsonl"), "that is the extension of parquet"),
        (("--out", "told.csv", "--format", "parquet"), "that is the extension of csv"),
        (("--format", "parquet"), "expected --out FILE.parquet"),
        (("--out", "nowhere/told.csv"), "there is no folder"),
    ],
)
def test_what_would_be_something_else_than_its_name_says_is_refused(
    recorded: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...], told: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    done = outrider("ledger", "export", recorded[0].resolve(), *words)
    assert done.code == 2
    assert told in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_format_given_by_name_needs_no_ending(recorded: tuple[Path, Any], tmp_path: Path) -> None:
    out = tmp_path / "told.data"
    assert outrider("ledger", "export", recorded[0], "--format", "csv", "--out", out).code == 0
    assert out.read_text().startswith("time_s,seq,job,")
