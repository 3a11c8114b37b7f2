"""Faults of a journal, a ledger file or a snapshot, and the reported problems."""

import io
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from outrider.formats import tables
from outrider.formats.tables import Rows
from outrider.journal import (
    Entry,
    Journal,
    LedgerFile,
    SnapshotStore,
    Writer,
    check_end,
    open_or_replace,
    reading,
    verify,
)
from outrider.journal.checksums import BLOCK_ROWS
from outrider.journal.tables import DECISIONS
from outrider.model.errors import LedgerError
from tests.journal.samples import decision, entry_numbers, numbered_entry


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of 4 x 30 rows."""
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        journal.append_all([numbered_entry(number) for number in range(30)])
    return path


def damage(path: Path, change: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()


def test_a_cursor_that_is_not_what_was_written_is_none_to_go_on_from(path: Path) -> None:
    damage(path, "UPDATE cursors SET cursor = '7'")
    with (
        Journal(path, read_only=True) as journal,
        pytest.raises(LedgerError, match="the cursor of log differs from what was written"),
    ):
        journal.cursor("log")
    damage(path, "UPDATE cursors SET cursor = '{', crc = NULL")
    with (
        Journal(path, read_only=True) as journal,
        pytest.raises(LedgerError, match="the cursor of log is not valid JSON"),
    ):
        journal.cursor("log")
    with Journal(path, read_only=True) as journal:
        assert journal.cursor("another") is None


def test_an_input_that_cannot_be_read_ends_the_reading_unless_it_may_be_left_out(
    path: Path,
) -> None:
    damage(path, "UPDATE inputs SET kind = 'sneezed' WHERE seq = 5")
    with Journal(path, read_only=True) as journal:
        with pytest.raises(LedgerError, match=r"input 5: cannot read kind 'sneezed' with extra"):
            list(journal.inputs_after(0))
        left_out: list[str] = []
        numbers = [seq for seq, _, _ in journal.inputs_after(0, left_out)]
        assert len(left_out) == 1
        assert (numbers[:4], len(numbers)) == ([1, 2, 3, 6], 89)
        assert [seq for seq, _, _ in journal.inputs_after(113)] == [114, 115, 117, 118, 119]


def test_rows_of_which_no_page_can_be_read_are_left_out_one_by_one_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fetch(query: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        if values["after"] < 7 <= values["until"]:
            raise LedgerError("database disk image is malformed")
        last = min(values["until"], values["after"] + values["limit"])
        return [(seq,) for seq in range(values["after"] + 1, last + 1)]

    left_out: list[str] = []
    asked: Any = fetch
    found = [row[0] for row in reading.readable_inputs(asked, 2, 20, left_out)]
    assert found == [3, 4, 5, 6, *range(8, 21)]
    assert left_out == ["input 7: database disk image is malformed"]
    monkeypatch.setattr(reading, "_MAX_FAILURES", 2)
    with pytest.raises(LedgerError, match="malformed"):
        list(reading.readable_inputs(asked, 2, 20, left_out))


def test_the_end_of_a_journal_that_cannot_be_read_is_a_sentence(path: Path) -> None:
    assert check_end(path) == []
    assert check_end(path.parent / "none") == [f"{path.parent / 'none'}: no such journal"]
    damage(path, "DROP TABLE checksums")
    [said] = check_end(path)
    assert said.startswith(f"{path}: cannot check its end: no such table: checksums")


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (2, f"{BLOCK_ROWS + 1} to {2 * BLOCK_ROWS}"),
        (4, f"{3 * BLOCK_ROWS + 1} to {4 * BLOCK_ROWS}"),
    ],
)
def test_rows_of_a_block_without_a_checksum_are_told(
    tmp_path: Path, missing: int, said: str
) -> None:
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        journal.append_all([numbered_entry(n) for n in range(BLOCK_ROWS)])
    assert verify(path).problems == []
    damage(path, f"DELETE FROM checksums WHERE last_seq = {missing * BLOCK_ROWS}")
    assert verify(path).problems == [f"there are no checksums for rows {said}"]


def test_a_journal_whose_writing_fails_for_another_reason_than_damage_is_opened_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Journal) -> None:
        raise LedgerError(f"{self.path}: cannot record: database or disk is full")

    monkeypatch.setattr(Journal, "probe_writing", full)
    with capture_logs() as lines:
        journal, note = open_or_replace(path)
    assert (note, len(entry_numbers(journal))) == (None, 90)
    journal.close()
    assert [line["event"] for line in lines] == ["write_failed"]

    def malformed(self: Journal) -> None:
        raise LedgerError(f"{self.path}: cannot record: database disk image is malformed")

    monkeypatch.setattr(Journal, "probe_writing", malformed)
    journal, note = open_or_replace(path)
    assert note is not None
    assert "it was moved to " in note
    assert journal.last_seq() == 0
    journal.close()
    [aside] = path.parent.glob("damaged-*-journal.sqlite")
    with Journal(aside, read_only=True) as journal:
        assert len(entry_numbers(journal)) == 90


def test_an_export_of_many_lines_is_handed_on_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BLOCK_ROWS", 3)
    out = io.BytesIO()
    decisions = [decision(float(n), f"{n}.0").as_row(n) for n in range(7)]
    assert tables.stream_rows(Rows(DECISIONS, lambda: decisions), out, "jsonl") == 7
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["seq"], line["job"]) for line in lines] == [(n, f"{n}.0") for n in range(7)]


def test_a_ledger_file_beside_which_nothing_can_be_opened_is_told_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "run.sqlite.part").mkdir()
    with pytest.raises(LedgerError, match=r"run\.sqlite: cannot write the ledger"):
        LedgerFile(tmp_path / "run.sqlite")
    assert [each.name for each in tmp_path.iterdir()] == ["run.sqlite.part"]


def test_a_store_of_no_snapshot_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep = 0: at least one snapshot must be kept"):
        SnapshotStore(tmp_path, keep=0)


def test_a_fault_of_the_writer_itself_fails_who_waits_and_who_comes_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threading.excepthook", lambda told: None)
    journal = Journal(path)

    def fail(entries: list[Entry]) -> list[int]:
        raise RuntimeError("a fault of our own")

    monkeypatch.setattr(journal, "append_all", fail)
    writer = Writer(journal)
    with pytest.raises(LedgerError, match="the writer itself failed: RuntimeError"):
        writer.submit(numbered_entry(0)).result(10)
    assert "a fault of our own" in (writer.failure or "")
    with pytest.raises(LedgerError, match=r"1 entries were not recorded: .*the writer itself"):
        writer.stop(10)
    with pytest.raises(LedgerError, match="the writer was stopped"):
        writer.submit(numbered_entry(1))


def test_a_retry_while_the_file_cannot_be_opened_keeps_what_waits(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(path)
    writer = Writer(journal)

    def refuse(entries: list[Entry]) -> list[int]:
        raise LedgerError("the disk is gone")

    def gone() -> None:
        raise LedgerError("no such file system")

    with monkeypatch.context() as broken:
        broken.setattr(journal, "append_all", refuse)
        broken.setattr(journal, "reopen", gone)
        with pytest.raises(LedgerError, match="the disk is gone"):
            writer.submit(numbered_entry(30)).result(10)
        with pytest.raises(LedgerError, match="no such file system"):
            writer.retry().result(10)
        assert (writer.failure, writer.waiting_rows) == ("no such file system", 4)
    assert writer.retry().result(10) == 1
    assert (writer.failure, writer.waiting_rows) == (None, 0)
    writer.stop(10)
    with Journal(path, read_only=True) as journal:
        assert entry_numbers(journal)[::3] == list(range(31))
