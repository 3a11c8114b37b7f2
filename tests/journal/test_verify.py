"""Verification finds each sort of damage, says where, and finds nothing where nothing is."""

import json
import sqlite3
from pathlib import Path

import pytest

from outrider.journal import Entry, Journal, SnapshotStore, verify
from outrider.journal.ledger_file import ledger_sha256
from outrider.journal.verify import Report
from outrider.model.errors import LedgerError
from tests.journal.samples import decision, numbered_entry, outcome


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of ten entries."""
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        journal.append_all([numbered_entry(number) for number in range(10)])
        journal.append(Entry(outcomes=[outcome()], decisions=[decision()]))
    return path


def test_a_sound_journal_has_no_problems_and_its_hash_is_told(path: Path) -> None:
    snapshots = SnapshotStore(path.parent / "snapshots")
    snapshots.save(40, {"state": 1})
    report = verify(path, snapshots.folder)
    assert report.ok, report.as_text()
    assert report.rows == {"inputs": 30, "decisions": 11, "outcomes": 1, "set_aside": 0}
    assert report.last_seq == 42
    assert report.cursors == {"log": 40}
    assert list(report.snapshots.values()) == [40]
    with Journal(path, read_only=True) as journal:
        assert report.ledger_sha256 == ledger_sha256(journal.decisions())
    assert json.loads(json.dumps(report.as_dict()))["ok"] is True
    assert "all is well" in report.as_text()


def test_people_read_what_was_found_line_by_line(path: Path) -> None:
    snapshots = SnapshotStore(path.parent / "snapshots")
    newest = snapshots.save(40, {"state": 1})
    with Journal(path) as journal:
        journal.prune(3.0, oldest_snapshot_seq=40)
        kept = ledger_sha256(journal.decisions())
    assert verify(path, snapshots.folder).as_text().splitlines() == [
        f"{path}: 21 inputs, 8 decisions, 1 outcomes, 0 set_aside; last sequence number 42",
        "pruned up to 12 (inputs: 12)",
        "cursor of log is at 40",
        f"snapshot {newest.name} is at 40",
        f"ledger_sha256 {kept}",
        "all is well",
    ]
    assert Report("a.sqlite", problems=["the disk is gone"]).as_text().splitlines() == [
        "a.sqlite: no rows read; last sequence number 0",
        "ledger_sha256 unknown",
        "PROBLEM: the disk is gone",
        "1 problems",
    ]


def test_a_journal_can_be_checked_while_it_is_written(path: Path) -> None:
    with Journal(path) as journal:
        journal.append(numbered_entry(11))
        assert verify(path).last_seq == 46
        assert verify(path).ok


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("DELETE FROM inputs WHERE seq = 6", "1 numbers between 1 and 42 have no row"),
        ("UPDATE decisions SET seq = 5 WHERE seq = 4", "in both inputs and decisions: 5"),
        ("UPDATE outcomes SET seq = 99", "outcomes: 1 rows beyond the last number, 42"),
        ("UPDATE counter SET pruned_seq = 4, pruned_inputs_seq = 4", "inputs: 3 rows at or before"),
        ("UPDATE cursors SET seq = 43", "cursor of log is at 43, beyond the last number, 42"),
        ("UPDATE cursors SET cursor = '{'", "cursor of log is not valid JSON"),
        ("UPDATE decisions SET action = 'stare' WHERE seq = 4", "unknown action: 4 ('stare')"),
        ("UPDATE decisions SET mode = 'awake'", "unknown mode: 4 ('awake'), 8 ('awake')"),
        ("UPDATE decisions SET machine = NULL", "start without a machine: 4"),
        ("UPDATE decisions SET propensity = 1.5 WHERE seq = 4", "outside 0..1: 4 (1.5)"),
        ("UPDATE decisions SET scores = '[' WHERE seq = 4", "decisions that cannot be read: 4"),
        ("UPDATE inputs SET kind = 'sneezed' WHERE seq = 1", "cannot be read: 1 (sneezed"),
        ("UPDATE inputs SET kind = 'started', extra = '3' WHERE seq = 1", "be read: 1 (started"),
        ("UPDATE outcomes SET run_s = -1", "negative run time: 42"),
    ],
)
def test_a_wrong_row_is_found_and_named(path: Path, damage: str, found: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(damage)
    connection.commit()
    connection.close()
    report = verify(path)
    assert not report.ok
    assert found in report.as_text()


def test_of_several_decisions_that_cannot_be_read_each_is_named(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE decisions SET scores = '[' WHERE seq IN (4, 8)")
    connection.commit()
    connection.close()
    [problem] = [one for one in verify(path).problems if one.startswith("decisions that cannot")]
    assert " 4 (" in problem
    assert " 8 (" in problem


def test_a_damaged_page_is_found(path: Path) -> None:
    with Journal(path) as journal:
        journal.append_all([numbered_entry(number) for number in range(20, 400)])
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = b"\x55" * 4096
    path.write_bytes(data)
    report = verify(path)
    assert not report.ok
    assert "integrity check" in report.as_text() or "malformed" in report.as_text()


def test_damaged_snapshots_and_those_beyond_the_journal_are_found(path: Path) -> None:
    snapshots = SnapshotStore(path.parent / "snapshots")
    snapshots.save(40, {"state": 1}).write_bytes(b"short")
    snapshots.save(50, {"state": 2})
    problems = verify(path, snapshots.folder).problems
    assert len(problems) == 2
    assert "damaged snapshot" in problems[0]
    assert "is at 50, beyond the journal's last number, 42" in problems[1]


def test_what_is_no_journal_is_an_error_and_not_a_report(path: Path) -> None:
    with pytest.raises(LedgerError, match="no such journal"):
        verify(path.parent / "other.sqlite")
