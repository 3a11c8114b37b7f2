"""Files that hold nothing for long stretches: sparse ones, zeros, and text without a line end."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.logtail.following import Followed, job_record, names

MIB = 1 << 20


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Followed]:
    followed = Followed(tmp_path / "EventLog")
    yield followed
    followed.tail.close()


def has_holes(path: Path) -> bool:
    return path.stat().st_blocks * 512 < path.stat().st_size // 2


@pytest.mark.parametrize("history", [False, True])
def test_a_hole_of_a_tebibyte_is_passed_over_at_once(tmp_path: Path, history: bool) -> None:
    path = tmp_path / "EventLog"
    path.write_bytes(job_record(1))
    os.truncate(path, 1 << 40)
    if not has_holes(path):
        pytest.skip("this file system has no sparse files")
    log = Followed(path, history)
    began_s = time.process_time()
    log.settle()
    log.append(job_record(2))
    log.settle()
    log.tail.close()
    assert log.history_jobs + log.jobs == names(1, 2)
    assert log.rejected == {"garbage": 1}
    assert time.process_time() - began_s < 5.0


def test_records_between_holes_are_read(log: Followed) -> None:
    with log.path.open("wb") as file:
        for number in range(1, 101):
            file.seek((number - 1) << 32)
            file.write(job_record(number))
    if not has_holes(log.path):
        pytest.skip("this file system has no sparse files")
    log.settle()
    assert log.jobs == names(1, 100)
    assert set(log.rejected) == {"garbage"}
    assert log.rejected["garbage"] <= 201


def test_a_file_without_a_record_in_its_last_mebibyte_is_passed_over(log: Followed) -> None:
    log.append(job_record(1) + b"\1" * (20 * MIB))
    log.settle()
    log.append(b"\n...\n" + job_record(2))
    log.settle()
    assert log.jobs == names(1, 2)
    assert log.rejected["garbage"] + log.rejected["too_long"] < 10
    assert "no record in" in " ".join(log.notes)
    assert "bytes are skipped" in " ".join(log.notes)


def test_garbage_before_a_record_near_the_end_is_read_to_it(log: Followed) -> None:
    log.append(job_record(1) + b"\1" * (5 * MIB) + b"\n...\n" + job_record(2) + job_record(3))
    log.settle()
    assert log.jobs == names(1, 3)
    assert "bytes are skipped" not in " ".join(log.notes)


def test_text_that_grows_without_a_line_end_costs_little(log: Followed) -> None:
    log.append(job_record(1))
    log.settle()
    began_s = time.process_time()
    for _ in range(10):
        log.append(b"x" * (8 * MIB))
        log.settle()
    assert time.process_time() - began_s < 10.0
    log.append(b"\n...\n" + job_record(2))
    log.settle()
    assert log.jobs == names(1, 2)
