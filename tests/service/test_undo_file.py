"""The undo log on disk survives a crash; without it nothing is changed."""

import sqlite3
from pathlib import Path

import pytest

from outrider.api import PeerError, Undo
from outrider.service.daemon.levers import UNDO_FILE, UndoFile, has_lasting
from tests.cli.running import outrider

SOON = Undo(100.0, {"eligible_s": 5.0})
LASTING = Undo(100.0, {"was": 0, "value": 7}, lasts=True)


def test_what_is_noted_is_there_for_the_next_process_and_for_each_adapter_apart(
    tmp_path: Path,
) -> None:
    log = UndoFile(tmp_path, "slurm")
    log.write({"a:1": SOON, "a:2": SOON})
    log.part("nice").write({"a:1": LASTING})
    log.forget(["a:2", "a:3"])
    again = UndoFile(tmp_path, "slurm")
    assert again.entries == log.entries == {"a:1": SOON}
    assert again.part("nice").entries == {"a:1": LASTING}
    assert UndoFile(tmp_path, "pbs").entries == again.part("fence").entries == {}
    assert (tmp_path / UNDO_FILE).stat().st_mode & 0o077 == 0


def test_what_cannot_be_kept_is_not_remembered_either(tmp_path: Path) -> None:
    log = UndoFile(tmp_path, "slurm")
    log.write({"a:1": SOON})
    before = log.entries
    (tmp_path / UNDO_FILE).rename(tmp_path / "away")
    (tmp_path / UNDO_FILE).mkdir()
    nothing = "cannot be read or written, so nothing is changed"
    with pytest.raises(PeerError, match=nothing):
        log.write({"a:2": SOON})
    with pytest.raises(PeerError, match=nothing):
        log.forget(["a:1"])
    assert log.entries == before


def test_a_damaged_file_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / UNDO_FILE).write_bytes(b"no database" * 100)
    assert has_lasting(tmp_path), "nobody knows"
    log = UndoFile(tmp_path, "slurm")
    assert log.entries == {}
    assert (tmp_path / f"{UNDO_FILE}.damaged").read_bytes().startswith(b"no database")
    log.write({"a:1": SOON})
    assert UndoFile(tmp_path, "slurm").entries == {"a:1": SOON}


def test_whether_anything_lasts_is_seen_without_more(tmp_path: Path) -> None:
    assert not has_lasting(tmp_path)
    assert not (tmp_path / UNDO_FILE).exists(), "asking makes no file"
    log = UndoFile(tmp_path, "slurm")
    log.write({'"lasts":true': SOON, "a:1": Undo(1.0, {"note": '"lasts":true'})})
    assert not has_lasting(tmp_path), "what a job is called is not what it says"
    log.part("site_factor").write({"a:1": LASTING})
    assert has_lasting(tmp_path)
    log.part("site_factor").forget(["a:1"])
    assert not has_lasting(tmp_path)


def test_release_of_what_is_stale_asks_nobody_where_nothing_lasts(tmp_path: Path) -> None:
    """Each minute: the batch system is not to hear of it."""
    config = tmp_path / "outrider.toml"
    config.write_text(
        f'mode = "active"\nstate_dir = "{tmp_path}"\n[policies.fifo]\n'
        f'[adapters.slurm]\ncommands = "{tmp_path}/nowhere"\n'
    )
    UndoFile(tmp_path, "slurm").write({"a:1": SOON})
    said = outrider("release", "--stale", "--config", config)
    assert (said.code, said.out) == (0, "There are no changes that do not expire automatically.\n")
    UndoFile(tmp_path, "slurm").part("nice").write({"a:1": LASTING})
    said = outrider("release", "--stale", "--config", config)
    assert said.code == 3
    assert "scontrol cannot be run: No such file or directory" in said.err
    with sqlite3.connect(tmp_path / UNDO_FILE) as database:
        assert database.execute("SELECT count(*) FROM undo").fetchone() == (2,), "it stays noted"
    database.close()
