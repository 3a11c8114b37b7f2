"""Tests of a log whose reading hangs, as on a dead mount: the others continue.

A dead mount cannot be had in a test. Here a read of the log opens a FIFO that nobody writes, which
blocks the thread in the kernel, as a dead mount would, until the test opens its other end.
"""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outrider.api import Batch
from outrider_adapters.logtail import LogtailAdapter, steps
from outrider_adapters.logtail.identity import OpenFile
from tests.adapters.logtail.following import job_record, job_records, names
from tests.adapters.logtail.test_logtail_adapter import append, at_least, jobs, settings, until


class Mount:
    """Reads of one file hang in the kernel while the mount is dead."""

    def __init__(self, fifo: Path, log: Path) -> None:
        self.fifo = fifo
        self.log = log
        self.is_dead = False
        self.n_hanging = 0
        os.mkfifo(fifo)

    def read(self, file: OpenFile, real: Any, size: int) -> Any:
        if self.is_dead and file.status().st_ino == self.log.stat().st_ino:
            self.n_hanging += 1
            os.close(os.open(self.fifo, os.O_RDONLY))
        return real(file, size)

    def revive(self) -> None:
        self.is_dead = False
        self.n_hanging = 0
        os.close(os.open(self.fifo, os.O_RDWR))  # whoever blocks goes on


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mount]:
    """A log on a mount that hangs when it is read."""
    made = Mount(tmp_path / "fifo", tmp_path / "dead")
    real = OpenFile.read
    monkeypatch.setattr(OpenFile, "read", lambda file, size: made.read(file, real, size))
    monkeypatch.setattr(steps, "HANGS_AFTER_S", 0.2)
    append(made.log, job_records(1, 2))
    yield made
    made.revive()


def place_of(batch: Batch, path: Path) -> int:
    (entry,) = [entry for entry in batch.cursor["files"] if entry["path"] == str(path)]
    return int(entry["place"]["offset"])


def threads() -> int:
    return sum("logtail-hanging" in thread.name for thread in threading.enumerate())


async def test_the_others_go_on_and_what_hangs_is_read_once_it_can_be(
    tmp_path: Path, mount: Mount
) -> None:
    well = tmp_path / "well"
    append(well, job_records(101, 102))
    given = settings(mount.log, well, start_at="beginning")
    async with LogtailAdapter("hanging", given, heartbeat_s=0.1) as adapter:
        batches = adapter.batches(None)
        seen = await until(batches, at_least(4))
        assert threads() == 1
        before = place_of(seen[-1], mount.log)
        mount.is_dead = True
        append(mount.log, job_records(3, 4))
        for number in (103, 104, 105):
            append(well, job_record(number))
            new = await until(batches, at_least(1))
            assert jobs(new) == names(number, number)
            assert place_of(new[-1], mount.log) == before
            seen += new
        assert new[-1].seen_until_s is None
        seen += await until(batches, lambda seen: "dead: reading it hangs" in seen[-1].note)
        assert (mount.n_hanging, threads()) == (1, 2)  # however often it was looked at
        mount.revive()
        seen += await until(batches, at_least(2))
        append(mount.log, job_record(5))
        seen += await until(batches, at_least(1))
        seen += await until(batches, lambda seen: not seen[-1].note)
        assert threads() == 1
    assert sorted(jobs(seen)) == sorted(names(1, 5) + names(101, 105))
    assert seen[-1].problem == ""


async def test_a_log_that_is_only_slow_gets_a_thread_of_its_own_until_it_is_quick_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, well = tmp_path / "slow", tmp_path / "well"
    pause_s, made_in = 0.0, list[str]()
    real = OpenFile.read

    def read(file: OpenFile, size: int) -> bytes:
        if file.status().st_ino == slow.stat().st_ino:
            made_in.append(threading.current_thread().name.partition(" ")[0])
            time.sleep(pause_s)
        return real(file, size)

    monkeypatch.setattr(OpenFile, "read", read)
    monkeypatch.setattr(steps, "HANGS_AFTER_S", 0.2)
    monkeypatch.setattr(steps, "SEPARATE_STEPS", 4)
    for path, number in ((slow, 1), (well, 101)):
        append(path, job_record(number))
    given = settings(slow, well, start_at="beginning", settle_s=0.0)
    async with LogtailAdapter("hanging", given, heartbeat_s=0.1) as adapter:
        batches = adapter.batches(None)
        seen = await until(batches, at_least(2))
        assert set(made_in) == {"logtail-hanging"}
        pause_s = 0.8
        for number in (2, 3, 4):
            made_in.clear()
            append(slow, job_record(number))
            append(well, job_record(100 + number))
            seen += await until(batches, at_least(2))
            assert made_in[0] == ("logtail-hanging" if number == 2 else "slow")
            assert threads() == 1
        pause_s = 0.0
        for number in range(5, 11):
            append(slow, job_record(number))
            seen += await until(batches, at_least(1))
        assert made_in[-1] == "logtail-hanging"
    assert [job for job in jobs(seen) if job in names(1, 10)] == names(1, 10)
    assert [job for job in jobs(seen) if job in names(101, 104)] == names(101, 104)


async def test_a_log_that_hangs_for_long_is_a_problem_and_its_age_grows(
    mount: Mount, tmp_path: Path
) -> None:
    mount.is_dead = True
    clock_s = [time.time()]
    given = settings(mount.log, start_at="beginning")
    async with LogtailAdapter("hanging", given, lambda: clock_s[0], 0.1) as adapter:
        batches = adapter.batches(None)
        (first,) = await until(batches, lambda seen: len(seen) == 1)
        assert (first.problem, first.age_s) == ("", 0.0)  # it may be over in a moment
        clock_s[0] += 60.0
        (later,) = await until(batches, lambda seen: len(seen) == 1)
        assert "reading it hangs" in later.problem
        assert later.age_s == 60.0


async def test_leaving_waits_for_no_thread_that_hangs_and_entering_again_makes_no_second(
    mount: Mount,
) -> None:
    mount.is_dead = True
    given = settings(mount.log, start_at="beginning")
    adapter = LogtailAdapter("hanging", given, heartbeat_s=0.1)
    began_s = time.monotonic()
    for _ in range(3):
        async with adapter:
            await until(adapter.batches(None), lambda seen: "hangs" in seen[-1].note)
        assert mount.n_hanging == 1
    assert time.monotonic() - began_s < 15.0  # a thread that is waited for would never end
    assert threads() == 1
    mount.revive()
    async with adapter:
        seen = await until(adapter.batches(None), at_least(2))
    assert jobs(seen) == names(1, 2)
    for _ in range(100):
        if not threads():
            break
        await asyncio.sleep(0.05)
    assert threads() == 0


async def test_history_that_hangs_stays_history_and_holds_up_no_other(
    tmp_path: Path, mount: Mount
) -> None:
    well = tmp_path / "well"
    append(well, job_records(101, 102))
    mount.is_dead = True
    async with LogtailAdapter("hanging", settings(mount.log, well), heartbeat_s=0.1) as adapter:
        batches = adapter.batches(None)
        old = await until(batches, at_least(2))
        append(well, job_record(103))
        new = await until(batches, at_least(1))
        mount.revive()
        late = await until(batches, at_least(2))
    assert jobs([batch for batch in old if batch.history]) == names(101, 102)
    assert jobs([batch for batch in new if not batch.history]) == names(103, 103)
    assert jobs([batch for batch in late if batch.history]) == names(1, 2)
