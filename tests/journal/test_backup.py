"""Older journals are brought up to date after a backup, and a backup is a journal."""

import sqlite3
import threading
from pathlib import Path

import pytest

from outrider.journal import Entry, Journal, schema, verify
from outrider.journal.schema import READABLE_FROM, VERSION
from outrider.model.errors import LedgerError
from tests.journal.samples import decision, entry_numbers, numbered_entry

BACKUP = f"before-schema-{READABLE_FROM + 1}-journal.sqlite"


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal of the oldest schema that is still readable, with rows in their old form."""
    path = tmp_path / "journal.sqlite"
    with monkeypatch.context() as before:
        before.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:READABLE_FROM])
        before.setattr(schema, "VERSION", READABLE_FROM)
        Journal(path).close()
    connection = sqlite3.connect(path)
    for seq in range(1, 401):
        if seq % 4:
            row = (seq, "log", float(seq), "completed", f"{seq // 4}.{seq % 4}", None)
            connection.execute("INSERT INTO inputs VALUES (?, ?, ?, ?, ?, ?)", row)
        else:
            connection.execute(
                "INSERT INTO decisions VALUES (?, 10.0, '1.0', NULL, 'start', 'lab-1', 1, 'best', "
                "'bandit', 'shadow', 0.9, NULL, 'full', 0.5, NULL)", (seq,)
            )  # fmt: skip
    connection.execute("UPDATE counter SET last_seq = 400")
    connection.execute("INSERT INTO cursors VALUES ('log', '7', 400)")
    connection.execute("INSERT INTO meta VALUES ('timezone', '\"UTC\"')")
    connection.commit()
    connection.close()
    return path


def test_a_journal_of_an_older_schema_is_read_as_it_is(old: Path) -> None:
    assert VERSION > READABLE_FROM
    with Journal(old, read_only=True) as journal:
        assert len(list(journal.decisions())) == 100
        assert len(list(journal.inputs_after(0))) == 300
        assert (journal.cursor("log"), journal.meta("timezone")) == (7, "UTC")
    assert verify(old).ok
    assert not list(old.parent.glob("before-*"))


def test_it_is_brought_up_to_date_in_place_and_kept_beside_as_it_was(old: Path) -> None:
    before = verify(old)
    with Journal(old) as journal:
        assert (journal.cursor("log"), journal.last_seq()) == (7, 400)
        assert journal.append(numbered_entry(500)) == 404
    after, kept = verify(old), verify(old.with_name(BACKUP))
    assert after.ok, after.as_text()
    assert kept.ok, kept.as_text()
    assert (kept.schema_version, after.schema_version) == (READABLE_FROM, VERSION)
    assert kept.ledger_sha256 == before.ledger_sha256
    assert kept.rows == before.rows
    assert old.with_name(BACKUP).stat().st_mode & 0o777 == 0o600
    before_again = old.with_name(BACKUP).stat().st_mtime_ns
    Journal(old).close()
    assert old.with_name(BACKUP).stat().st_mtime_ns == before_again


def test_where_there_is_no_room_for_the_backup_it_is_brought_up_to_date_all_the_same(
    old: Path,
) -> None:
    old.with_name(BACKUP).mkdir()
    with Journal(old) as journal:
        assert journal.append(numbered_entry(500)) == 404
    assert verify(old).schema_version == VERSION


def test_a_backup_made_while_it_is_written_is_whole_and_a_beginning_of_it(tmp_path: Path) -> None:
    path, copy = tmp_path / "journal.sqlite", tmp_path / "copy.sqlite"
    begun, ended = threading.Event(), threading.Event()

    def write() -> None:
        with Journal(path) as journal:
            number = 0
            while not ended.is_set():
                journal.append(numbered_entry(number))
                number += 1
                if number > 200:
                    begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert begun.wait(60)
        with Journal(path, read_only=True) as reader:
            reader.back_up(copy)
    finally:
        ended.set()
        thread.join()
    assert verify(copy).ok
    with Journal(copy, read_only=True) as journal, Journal(path, read_only=True) as whole:
        numbers = entry_numbers(journal)
        assert len(numbers) >= 600
        assert numbers == entry_numbers(whole)[: len(numbers)]
        assert journal.cursor("log") == numbers[-1]
    assert not list(tmp_path.glob("*.part"))


def test_a_backup_over_the_journal_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        journal.append(Entry(decisions=[decision()]))
        with pytest.raises(LedgerError, match="this is the journal itself"):
            journal.back_up(path)
    assert verify(path).ok


def test_a_backup_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with (
        Journal(tmp_path / "journal.sqlite") as journal,
        pytest.raises(LedgerError, match="cannot write the backup"),
    ):
        journal.back_up(tmp_path / "nowhere" / "copy.sqlite")
    assert not (tmp_path / "nowhere").exists()
