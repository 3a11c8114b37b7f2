"""A tail gives each record once, whatever happens to the file."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.logtail.following import SETTLE_S, Followed, job_record, job_records, names
from tests.adapters.readers import samples


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Followed]:
    """An empty log, and the tail that follows it."""
    followed = Followed(tmp_path / "EventLog")
    yield followed
    followed.tail.close()


def test_what_is_appended_is_read_once(log: Followed) -> None:
    log.append(job_records(1, 3))
    log.settle()
    log.append(job_records(4, 5))
    log.settle()
    log.settle()
    assert log.jobs == names(1, 5)
    assert log.last.caught_up


def test_a_half_line_waits_for_its_rest(log: Followed) -> None:
    whole = job_records(1, 2)
    log.append(whole[:-25])
    log.settle()
    assert log.jobs == names(1, 1)
    log.append(whole[-25:])
    log.settle()
    assert log.jobs == names(1, 2)
    assert not log.rejected


def test_the_last_record_is_given_out_after_a_quiet_while(log: Followed) -> None:
    log.append(job_record(1))
    log.poll()
    assert log.jobs == []
    assert not log.last.caught_up
    log.clock.now_s += SETTLE_S / 2
    log.poll()
    assert log.jobs == []
    log.clock.now_s += SETTLE_S / 2
    log.poll()
    assert log.jobs == names(1, 1)


def test_more_garbage_than_is_read_at_once_does_not_hold_up_what_follows(log: Followed) -> None:
    log.append(job_record(1) + b"\0" * (34 << 20) + b"\n...\n" + job_record(2))
    log.settle()
    assert log.jobs == names(1, 2)
    assert set(log.rejected) == {"garbage"}


def test_a_clock_set_back_an_hour_does_not_keep_the_last_record(log: Followed) -> None:
    log.append(job_record(1))
    log.poll()
    log.clock.now_s -= 3600
    log.settle()
    assert log.jobs == names(1, 1)


def test_a_file_that_is_not_there_yet_is_read_from_its_beginning(log: Followed) -> None:
    log.poll()
    assert log.last.problem
    log.append(job_records(1, 2))
    log.settle()
    assert log.jobs == names(1, 2)


@pytest.mark.parametrize("suffix", [".old", ".1", ".20261121T031700", "-20261121"])
def test_a_renamed_log_is_finished_before_the_new_one(log: Followed, suffix: str) -> None:
    log.append(job_records(1, 3))
    log.poll()
    log.append(job_records(4, 5))
    log.rename(suffix)
    log.append(job_records(6, 7))
    log.settle()
    log.settle()
    assert log.jobs == names(1, 7)


def test_a_record_written_into_the_renamed_log_is_not_lost(log: Followed) -> None:
    log.append(job_records(1, 3))
    log.settle()
    log.rename()
    log.append(job_record(5))
    with log.path.with_name("EventLog.1").open("ab") as old:
        old.write(job_record(4))
    log.settle()
    log.settle()
    assert log.jobs == names(1, 5)


def test_a_half_record_at_the_end_of_a_renamed_log_is_counted(log: Followed) -> None:
    log.append(job_record(1) + job_record(2)[:40])
    log.poll()
    log.rename()
    log.append(job_record(3))
    log.settle()
    log.settle()
    assert log.jobs == names(1, 1) + names(3, 3)
    assert log.rejected == {"cut_short": 1}


def test_several_rotations_between_two_looks_lose_nothing(log: Followed) -> None:
    log.append(job_records(1, 3))
    log.settle()
    for first in (4, 7, 10):
        log.append(job_records(first, first + 2))
        log.rename()
    log.append(job_records(13, 14))
    for _ in range(5):
        log.settle()
    assert log.jobs == names(1, 14)


def test_a_restart_finds_the_log_under_its_new_name(log: Followed) -> None:
    log.append(job_records(1, 3))
    log.settle()
    log.append(job_records(4, 5))
    log.rename()
    log.append(job_records(6, 7))
    log.rename()
    log.append(job_records(8, 9))
    log.restart()
    for _ in range(4):
        log.settle()
    assert log.jobs == names(1, 9)


def test_a_restart_goes_on_at_its_cursor(log: Followed) -> None:
    log.append(job_records(1, 3) + job_record(4)[:30])
    log.settle()
    log.restart()
    log.append(job_record(4)[30:] + job_record(5))
    log.settle()
    assert log.jobs == names(1, 5)


def test_a_restart_does_not_give_out_again_what_was_held_back(log: Followed) -> None:
    log.append(job_records(1, 5))
    log.poll()
    assert log.jobs == names(1, 3)
    log.restart()
    log.settle()
    assert log.jobs == names(1, 5)


def test_a_copied_and_truncated_log_is_read_on(log: Followed) -> None:
    log.append(job_records(1, 5))
    log.settle()
    log.copy_and_truncate()
    log.append(job_records(6, 7))
    log.settle()
    assert log.jobs == names(1, 7)


def test_a_truncated_log_that_has_grown_past_the_cursor_is_noticed(log: Followed) -> None:
    log.append(job_records(1, 3))
    log.settle()
    log.copy_and_truncate()
    log.append(job_records(4, 14))
    log.settle()
    assert log.jobs == names(1, 14)


def test_what_was_unread_before_a_truncation_is_read_from_the_copy(log: Followed) -> None:
    log.append(job_records(1, 3))
    log.settle()
    log.append(job_records(4, 6))
    log.copy_and_truncate()
    log.append(job_records(7, 8))
    for _ in range(3):
        log.settle()
    assert log.jobs == names(1, 8)


def test_a_log_truncated_and_then_renamed_unseen_is_read(log: Followed) -> None:
    log.append(job_record(1))
    log.settle()
    log.copy_and_truncate()
    log.append(job_record(2))
    log.rename()
    log.append(job_record(3))
    log.settle()
    log.settle()
    assert log.jobs == names(1, 3)


def test_a_new_file_with_the_old_inode_is_read_from_its_beginning(log: Followed) -> None:
    log.append(job_records(1, 3))
    log.settle()
    inode = log.path.stat().st_ino
    with log.path.open("r+b") as same:  # what the file system does when it uses an inode again
        same.truncate(0)
    log.append(job_records(4, 9))
    assert log.path.stat().st_ino == inode
    log.restart()
    log.settle()
    assert log.jobs == names(1, 9)


def test_a_log_that_vanishes_and_returns_is_read_on(log: Followed) -> None:
    log.append(job_records(1, 3))
    log.settle()
    away = log.path.with_name("elsewhere")
    log.path.rename(away)
    log.settle()
    assert log.last.problem
    away.rename(log.path)
    log.append(job_record(4))
    log.settle()
    assert log.jobs == names(1, 4)
    log.path.unlink()
    log.settle()
    assert log.last.problem
    log.append(job_records(5, 6))
    log.settle()
    assert log.jobs == names(1, 6)


def test_a_deleted_log_is_let_go(log: Followed) -> None:
    log.append(job_records(1, 3))
    log.settle()
    log.path.unlink()
    log.settle()
    open_files = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the folder was open for the listing
            open_files.append(str(entry.readlink()))
    assert not [name for name in open_files if name.startswith(str(log.path))]


def test_a_rewritten_header_is_no_truncation(log: Followed) -> None:
    header = samples.record(8, "-01.-01.-01", words="Global JobLog: sequence=1 size=0   ")
    log.append(header + job_records(1, 2))
    log.settle()
    with log.path.open("r+b") as rotating:
        rotating.write(header.replace(b"size=0   ", b"size=4711"))
    log.append(job_record(3))
    log.rename()
    log.append(job_record(4))
    log.settle()
    log.settle()
    assert log.jobs == names(1, 4)


def test_what_stood_in_the_log_before_the_first_start_is_history(tmp_path: Path) -> None:
    path = tmp_path / "EventLog"
    path.write_bytes(job_records(1, 4) + job_record(5)[:30])
    log = Followed(path, history=True)
    log.append(job_record(5)[30:] + job_record(6))
    log.settle()
    log.tail.close()
    assert log.history_jobs == names(1, 4)
    assert log.jobs == names(5, 6)


def test_history_goes_on_being_history_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "EventLog"
    path.write_bytes(job_records(1, 4))
    log = Followed(path, history=True)
    log.tail.step()
    log.restart()
    log.append(job_record(5))
    log.settle()
    log.tail.close()
    assert log.history_jobs[-1] == names(4, 4)[0]
    assert log.jobs == names(5, 5)
