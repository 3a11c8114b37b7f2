"""Progress records of an adapter: the next process gets them after a crash."""

from pathlib import Path

from outrider.service.daemon.pump import InProgressFile

SUSPECT = {"path": "EventLog", "from": 123_456_789, "until": 123_460_000}


def test_the_last_note_of_a_process_is_there_for_the_next_one(tmp_path: Path) -> None:
    first = InProgressFile(tmp_path, "log")
    assert first.left is None
    first.note(SUSPECT)
    first.note("short")  # in place of the longer one
    assert InProgressFile(tmp_path, "log").left == "short"
    assert InProgressFile(tmp_path, "other").left is None, "each adapter has its own"
    first.note(None)  # it came through
    assert InProgressFile(tmp_path, "log").left is None


def test_a_process_that_came_through_leaves_nothing_behind(tmp_path: Path) -> None:
    InProgressFile(tmp_path, "log").note(SUSPECT)
    second = InProgressFile(tmp_path, "log")
    assert second.left == SUSPECT
    second.note(None)
    assert InProgressFile(tmp_path, "log").left is None


def test_where_nothing_was_ever_at_risk_no_file_is_made(tmp_path: Path) -> None:
    InProgressFile(tmp_path, "log").note(None)
    assert list(tmp_path.iterdir()) == []


def test_a_note_that_cannot_be_read_is_none_and_the_next_takes_its_place(tmp_path: Path) -> None:
    InProgressFile(tmp_path, "a/b").note(SUSPECT)
    [file] = tmp_path.iterdir()
    file.write_text("{half\n")
    again = InProgressFile(tmp_path, "a/b")
    assert again.left is None
    again.note(SUSPECT)
    assert InProgressFile(tmp_path, "a/b").left == SUSPECT


def test_where_it_cannot_be_noted_the_adapter_goes_on(tmp_path: Path) -> None:
    (tmp_path / "in-progress-log.json").mkdir()
    note = InProgressFile(tmp_path, "log")
    assert note.left is None
    note.note(SUSPECT)
