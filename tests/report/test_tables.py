"""`outrider report --table`: one table of a report, for spreadsheets and for people."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from outrider.cli.tables import TABLES, rows_of
from tests.cli.running import outrider
from tests.report.journals import job, machine, write

BOBS = [(8, "m1", 9, "owner"), (10, "m1", 14, "owner"), (15, "m1", 16, None)]
WATTS: dict[str, Any] = {"active_w": 100.0, "idle_w": 10.0}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Write a journal with runs that completed and runs that were evicted."""
    events = [
        machine("m1", **WATTS),
        *job("j1", "alice", 1, [(1, "m1", 3, "owner"), (4, "m1", 6, None)]),
        *job(
            "j2", "bob", 7, [(8, "m1", 9, "owner"), (10, "m1", 14, "owner"), (15, "m1", 16, None)]
        ),
    ]
    return write(tmp_path / "journal.sqlite", events, last_h=200)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_table_has_the_figures_of_the_document(journal: Path) -> None:
    words = ("report", journal, "--price-per-kwh", 0.5)
    report = outrider(*words, "--json").json()
    named = "user,thrown_away,reasons,badput_kwh,badput_money,badput_co2_kg"
    users = rows(outrider(*words, "--table", "user", "--csv", "-o", named).out)
    assert [(one["user"], one["thrown_away"], one["reasons"]) for one in users] == [
        ("bob", "2", "owner 2"), ("alice", "1", "owner 1")
    ]  # fmt: skip
    worst = report["offenders"]["users"][0]
    assert float(users[0]["badput_kwh"]) == worst["badput"]["kwh"] == pytest.approx(0.5)
    assert float(users[0]["badput_money"]) == pytest.approx(0.25)
    assert users[0]["badput_co2_kg"] == ""
    (vo,) = rows(outrider(*words, "--table", "vo", "--csv").out)
    (document,) = report["was"]["by_vo"].values()
    assert float(vo["wait_mean_s"]) == document["wait_s"]["mean"]
    assert float(vo["goodput_h"]) == document["goodput_h"] == 3.0


@pytest.mark.parametrize("table", list(TABLES))
def test_no_field_of_the_document_is_left_out(journal: Path, table: str) -> None:
    """Fill each column from the document, and find a column for each field."""
    report = outrider("report", journal, "--json").json()
    part, key = TABLES[table].path
    found = report[part][key]
    first = next(iter(found.values() if isinstance(found, dict) else found), None)
    if first is None:
        assert table in ("failed_start", "black_hole")
        return
    columns = TABLES[table].columns
    for name, value in first.items():
        stem = name.removesuffix("_s") if isinstance(value, dict) else name
        assert any(column.startswith(stem) for column in columns), name
    if table in ("vo", "class"):
        waits = {
            f"wait_{what}{'' if what in ('n', 'censored_n') else '_s'}" for what in first["wait_s"]
        }
        assert waits == {column for column in columns if column.startswith("wait_")}
    (row, *_) = rows_of(report, table)
    assert row[columns[0]]


def test_people_get_lines_that_are_sorted_and_never_folded(journal: Path) -> None:
    done = outrider("report", journal, "--table", "user", "--sort", "badput_h")
    head, *lines = done.out.splitlines()
    assert head.split("  ")[0] == "user"
    assert [line.split()[0] for line in lines] == ["alice", "bob"]
    few = outrider("report", journal, "--table", "job", "-o", "job,badput_h", "--no-header")
    assert few.out.splitlines() == ["j2  5.0", "j1  2.0"]
    report = outrider("report", journal, "--table", "machine", "--json").json()
    assert report["machine"][0]["machine"] == "m1"
    assert report["window"]["begin"].startswith("2026-03-02")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--csv"], "--table NAME (vo, class, machine_group"),
        (["--table", "user", "-o", "nmae"], "known: badput_co2_kg"),
        (["--table", "user", "-o", "badput_hh"], 'did you mean "badput_h"? Columns: user, '),
        (["--table", "user", "--csv", "--json"], "--csv and --json: use one of them"),
    ],
)
def test_what_is_wrong_is_told(journal: Path, words: list[str], message: str) -> None:
    done = outrider("report", journal, *words)
    assert done.code == 2
    assert message in done.err.replace("\n", " ")
