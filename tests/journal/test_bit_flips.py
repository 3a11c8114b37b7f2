"""Detection of a flipped bit in any recorded value."""

import random
import sqlite3
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from outrider.engine.ingest.set_aside import FIRST_S, LAST_S
from outrider.journal import CommandRecord, Entry, Journal, RunRecord, check_end, verify
from outrider.journal.reading import check_types
from outrider.model.errors import LedgerError
from outrider.model.events import STARTED, SUBMITTED, TICK
from tests.journal.samples import decision, numbered_entry, outcome

FLIPS = 300
TABLES = (
    "inputs", "decisions", "outcomes", "set_aside", "cursors", "meta", "runs", "commands",
    "counter",
)  # fmt: skip


def run(number: int) -> RunRecord:
    return RunRecord(f"{number}.0", "all", "batch", "lab-1", 1, 1.5, 2.5, 9.5, 7.0, "owner")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Some blocks of rows, and what is beside them; in one file, without a log."""
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        for number in range(150):
            journal.append(numbered_entry(number))
        journal.append(
            Entry(outcomes=[outcome(20.0 + n) for n in range(40)], decisions=[decision(11)])
        )
        journal.append(Entry(meta={"rows": {"inputs": 450}}, runs=[run(n) for n in range(50)]))
        given = [CommandRecord(1e9 + n, "mode", n, "ada", "active", "shadow") for n in range(20)]
        journal.append(Entry(commands=given))
    return path


def contents(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every value that a reader could get."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    try:
        return {t: connection.execute(f"SELECT * FROM {t}").fetchall() for t in TABLES}
    finally:
        connection.close()


def found(path: Path) -> list[str]:
    """Return the problems that `verify` reports."""
    try:
        return verify(path).problems
    except LedgerError as error:
        return [str(error)]


def test_a_flipped_bit_is_found_or_changes_no_value(path: Path) -> None:
    assert found(path) == []
    whole, told = path.read_bytes(), contents(path)
    chance = random.Random(4)
    seen = 0
    for _ in range(FLIPS):
        at, bit = chance.randrange(len(whole)), 1 << chance.randrange(8)
        damaged = bytearray(whole)
        damaged[at] ^= bit
        path.write_bytes(damaged)
        if found(path):
            seen += 1
            continue
        assert contents(path) == told, f"byte {at}, bit {bit}: changed, and nothing found"
    assert seen > FLIPS // 4  # most of the file is values; the rest of its pages is empty


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE inputs SET time_s = time_s + 1e-6 WHERE seq = 302",
        "UPDATE inputs SET subject = '3.9' WHERE seq = 1",
        "UPDATE decisions SET cpus = 3 WHERE seq = 4",
        "UPDATE decisions SET gate = 'act' WHERE seq = 4",
        "UPDATE decisions SET input_age_s = NULL WHERE seq = 4",
        "UPDATE outcomes SET reward = -0.25 WHERE seq = (SELECT max(seq) FROM outcomes)",
        "UPDATE cursors SET cursor = '148'",
        "UPDATE meta SET value = '{\"inputs\":451}'",
        "UPDATE runs SET run_s = 8.0 WHERE id = 7",
        "UPDATE checksums SET crc = crc + 1 WHERE last_seq = 256",
        "DELETE FROM checksums WHERE last_seq = 512",
    ],
)
def test_a_value_that_is_as_good_as_another_is_found(path: Path, damage: str) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute(damage).rowcount == 1
    connection.commit()
    connection.close()
    assert len(found(path)) == 1


def test_the_start_checks_the_newest_rows_and_the_cursors_alone(path: Path) -> None:
    with Journal(path) as journal:
        for number in range(1_000):
            journal.append(numbered_entry(number))
    assert check_end(path) == []
    connection = sqlite3.connect(path)
    connection.execute("UPDATE inputs SET subject = 'x' WHERE seq = 1")
    connection.commit()
    assert check_end(path) == []
    last = connection.execute("SELECT max(seq) FROM inputs").fetchone()[0]
    connection.execute("UPDATE inputs SET subject = 'x' WHERE seq = ?", (last,))
    connection.execute("UPDATE cursors SET seq = seq - 1")
    connection.commit()
    connection.close()
    assert [problem.partition(": ")[2].partition(" in ")[0] for problem in check_end(path)] == [
        f"a value was changed among rows {last // 256 * 256 + 1} to {last + 1}",
        "cursors: a value was changed",
    ]
    assert len(found(path)) == 3


def test_rows_written_before_a_restart_and_after_share_a_block(path: Path) -> None:
    for number in range(3):
        with Journal(path) as journal:
            journal.append(numbered_entry(number))
    assert found(path) == []


def test_what_was_pruned_is_no_damage(path: Path) -> None:
    with Journal(path) as journal:
        last = journal.last_seq()
        assert journal.prune(100.0, oldest_snapshot_seq=last) > 300
    assert found(path) == []
    with Journal(path) as journal:
        journal.append(numbered_entry(200))
    assert found(path) == []


def update_inputs(path: Path, *changes: str) -> None:
    """Change rows without their checksums, as damage does."""
    connection = sqlite3.connect(path)
    for change in changes:
        connection.execute(f"UPDATE inputs {change}")
    connection.commit()
    connection.close()


def test_inputs_that_cannot_be_read_are_left_out_and_the_others_follow(path: Path) -> None:
    update_inputs(
        path,
        "SET kind = 'sneezed' WHERE seq = 5",
        "SET subject = CAST(x'ff' AS TEXT) WHERE seq = 301",
    )
    left_out: list[str] = []
    with Journal(path, read_only=True) as journal:
        numbers = [seq for seq, _, _ in journal.inputs_after(0, left_out)]
        with pytest.raises(LedgerError, match="cannot read"):
            list(journal.inputs_after(0))
    assert len(numbers) == 448
    assert numbers == sorted(numbers)
    assert not {5, 301} & set(numbers)
    assert "'sneezed'" in left_out[0]
    assert "input 301" in left_out[1]


def test_an_input_with_a_value_that_no_source_could_give_is_left_out(path: Path) -> None:
    """One such value would end each start of the daemon, so the report must name it."""
    update_inputs(path, "SET time_s = 'noon' WHERE seq = 5", "SET subject = x'00ff' WHERE seq = 6")
    left_out: list[str] = []
    with Journal(path, read_only=True) as journal:
        numbers = [seq for seq, _, _ in journal.inputs_after(0, left_out)]
    assert not {5, 6} & set(numbers)
    assert len(numbers) == 448
    assert "time 'noon': expected a number" in left_out[0]
    assert "expected text" in left_out[1]


def test_a_clock_beyond_all_that_can_be_is_left_out_and_a_jobs_event_is_for_the_merger() -> None:
    """The merger rejects the event, where users see it; a tick would set the clock."""
    for time_s in (FIRST_S, LAST_S):
        check_types("log", time_s, TICK, "log")
    for time_s in (FIRST_S - 1.0, LAST_S + 1.0, inf, nan):
        with pytest.raises(ValueError, match="impossible clock time"):
            check_types("log", time_s, TICK, "log")
        for kind in (SUBMITTED, STARTED):
            check_types("log", time_s, kind, "1.0")


def test_a_damaged_page_costs_the_rows_on_it_alone(path: Path) -> None:
    with Journal(path) as journal:
        journal.append_all([numbered_entry(number) for number in range(200, 3_000)])
        before = sum(1 for _ in journal.inputs_after(0))
    connection = sqlite3.connect(path)
    page = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = 'inputs' AND pagetype = 'leaf' LIMIT 1 OFFSET 20"
    ).fetchone()[0] if "ENABLE_DBSTAT_VTAB" in {
        row[0] for row in connection.execute("PRAGMA compile_options")
    } else None  # fmt: skip
    connection.close()
    if page is None:
        pytest.skip("this SQLite cannot say which page is whose (ENABLE_DBSTAT_VTAB)")
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = b"\x55" * 4096
    path.write_bytes(data)
    left_out: list[str] = []
    with Journal(path, read_only=True) as journal:
        left = sum(1 for _ in journal.inputs_after(0, left_out))
    assert 0 < before - left < 200
    assert 0 < len(left_out) <= 2_000
    assert found(path)
