"""The undo file survives a crash, and a damaged file blocks nothing."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from outrider.api.lever import Undo
from outrider.model.errors import PeerError
from outrider.service.daemon import levers
from outrider.service.daemon.levers import UNDO_FILE, UndoFile
from tests.service.running.disks import fill, relieve, small_disk


def begun(start_s: float, lasts: bool = False) -> Undo:
    return Undo(until_s=2_000.0, before={"start_s": start_s, "comment": "für Ada"}, lasts=lasts)


def test_what_was_noted_is_there_after_a_restart_by_adapter_and_job(tmp_path: Path) -> None:
    first = UndoFile(tmp_path / "state", "slurm")
    assert first.entries == {}
    assert list(tmp_path.iterdir()) == [], "nothing is made before the first change"
    first.write({"7": begun(1.0), "8": begun(2.0)})
    first.write({"8": begun(3.0, lasts=True)})
    again = UndoFile(tmp_path / "state", "slurm")
    assert again.entries == first.entries == {"7": begun(1.0), "8": begun(3.0, lasts=True)}
    assert UndoFile(tmp_path / "state", "other").entries == {}
    file = tmp_path / "state" / UNDO_FILE
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_was_taken_back_is_forgotten_for_good_and_of_its_own_adapter_alone(
    tmp_path: Path,
) -> None:
    for label in ("slurm", "other"):
        UndoFile(tmp_path, label).write({"7": begun(1.0), "8": begun(2.0)})
    log = UndoFile(tmp_path, "slurm")
    log.forget(["8", "never heard of"])
    assert log.entries.keys() == {"7"}
    assert UndoFile(tmp_path, "slurm").entries.keys() == {"7"}
    assert UndoFile(tmp_path, "other").entries.keys() == {"7", "8"}


def test_where_there_is_nothing_to_note_or_to_forget_no_file_is_touched(tmp_path: Path) -> None:
    log = UndoFile(tmp_path, "slurm")
    log.write({})
    log.forget(["7"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "entry", [b"{half", b'{"until_s": "soon", "before": {}}'], ids=["no JSON", "another shape"]
)
def test_an_entry_that_cannot_be_read_sets_the_file_aside(tmp_path: Path, entry: bytes) -> None:
    UndoFile(tmp_path, "slurm").write({"7": begun(1.0)})
    with sqlite3.connect(tmp_path / UNDO_FILE) as database:
        database.execute("UPDATE undo SET entry = ?", (entry,))
    check_set_aside(tmp_path)


def test_a_file_that_is_no_database_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / UNDO_FILE).write_text("not a database, but text of more than a hundred bytes " * 9)
    check_set_aside(tmp_path)


def check_set_aside(folder: Path) -> None:
    before = (folder / UNDO_FILE).read_bytes()
    with capture_logs() as logs:
        log = UndoFile(folder, "slurm")
    assert log.entries == {}
    assert [line["event"] for line in logs] == ["undo_log_quarantined"]
    assert (folder / f"{UNDO_FILE}.damaged").read_bytes() == before
    log.write({"9": begun(3.0)})
    assert UndoFile(folder, "slurm").entries == {"9": begun(3.0)}


def test_what_cannot_be_kept_is_not_noted_so_that_nothing_is_changed(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        log = UndoFile(disk, "slurm")
        log.write({"7": begun(1.0)})
        fill(disk)
        many: dict[str, Any] = {str(n): begun(float(n)) for n in range(8, 5_000)}
        with pytest.raises(PeerError, match=r"undo\.sqlite cannot be read or written.*full"):
            log.write(many)
        assert log.entries.keys() == {"7"}
        relieve(disk)
        assert UndoFile(disk, "slurm").entries == {"7": begun(1.0)}
        log.write(many)
        assert len(log.entries) == len(UndoFile(disk, "slurm").entries) == 4_993


def test_while_another_process_reads_for_long_nothing_is_noted_or_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file can be opened then, and the change fails where it ends."""
    monkeypatch.setattr(levers, "_WAIT_S", 0.05)
    log = UndoFile(tmp_path, "slurm")
    log.write({"7": begun(1.0)})
    reader = sqlite3.connect(tmp_path / UNDO_FILE, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM undo").fetchone()
    with pytest.raises(PeerError, match="locked"):
        log.write({"8": begun(2.0)})
    with pytest.raises(PeerError, match="locked"):
        log.forget(["7"])
    reader.close()
    assert log.entries == UndoFile(tmp_path, "slurm").entries == {"7": begun(1.0)}
