"""Thousands of logs under a pattern, or one without end, take neither descriptors nor turns."""

import os
import resource
from pathlib import Path
from typing import Any

import pytest

from outrider.api import Batch, NamedEvent, build, events
from outrider_adapters.logtail import LogFollower, LogtailSettings, adapter, identity, tails
from outrider_adapters.logtail.identity import most_open, newest_in_turn
from outrider_adapters.logtail.steps import PENDING, Steps
from tests.adapters.logtail.following import SETTLE_S, Clock, job_record, job_records, names
from tests.adapters.readers.samples import SCHEDD, record


class Site:
    """Logs in a folder, and a follower on a clock that the test moves."""

    def __init__(self, folder: Path, *paths: str, cursor: Any = None, **more: Any) -> None:
        self.folder = folder
        self.clock = Clock()
        given = {"paths": [str(folder / path) for path in paths], "settle_s": SETTLE_S, **more}
        self.settings = build(LogtailSettings, given, "test")
        self.begin(cursor)

    def begin(self, cursor: Any = None) -> None:
        self.follower = LogFollower(self.settings, self.clock)
        self.follower.start(cursor)
        self.batches: list[Batch] = []

    def write(self, name: str, data: bytes, modified_s: float | None = None) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as log:
            log.write(data)
        if modified_s is not None:
            os.utime(path, (modified_s, modified_s))
        return path

    def read(self) -> list[NamedEvent]:
        """Read until nothing is left, wait until all is quiet, and read again."""
        before = len(self.batches)
        for _ in range(3):
            for _ in range(2_000):
                batch, progress = self.follower.read()
                self.batches.append(batch)
                if not progress:
                    break
            else:
                raise AssertionError("it never comes to rest")
            self.clock.now_s += SETTLE_S + 0.1
        return [event for batch in self.batches[before:] for event in batch.events]

    def rejected(self, reason: str) -> int:
        return sum(batch.rejected.get(reason, 0) for batch in self.batches)

    def open_n(self) -> int:
        """Number of files in the folder that are open."""
        links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return sum(link.readlink().is_relative_to(self.folder) for link in links)


def jobs(told: list[NamedEvent]) -> list[str]:
    return sorted({event[2] for event in told})


def of_pool(data: bytes) -> bytes:
    """Return records of another schedd."""
    return data.replace(SCHEDD.encode(), b"pool")


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a batch take as long as a busy machine needs: it ends by its size alone."""
    monkeypatch.setattr(adapter, "_GATHERING_S", float("inf"))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let a pattern match at most this many logs."""
    monkeypatch.setattr(tails, "MOST_MATCHES", 20)
    monkeypatch.setattr(tails, "_LOOKING_RATIO", 0)
    return 20


def test_quiet_logs_of_a_pattern_are_closed_and_read_on_when_they_grow(tmp_path: Path) -> None:
    site = Site(tmp_path, "*.log", start_at="beginning")
    for number in range(1, 41):
        site.write(f"u{number}.log", job_record(number))
    assert jobs(site.read()) == sorted(names(1, 40))
    assert site.open_n() == 0
    site.write("u7.log", job_record(50))
    assert jobs(site.read()) == names(50, 50)
    assert site.open_n() == 0


def test_a_closed_log_that_is_rotated_or_truncated_is_noticed(tmp_path: Path) -> None:
    site = Site(tmp_path, "*.log", start_at="beginning")
    path = site.write("a.log", job_records(1, 3))
    site.read()
    site.write("a.log", job_record(4))
    path.rename(tmp_path / "a.log.1")
    site.write("a.log", job_record(5))
    assert jobs(site.read()) == names(4, 5)
    path.write_bytes(job_record(6)[:-4] + b"\n...\n")
    assert jobs(site.read()) == names(6, 6)
    assert any("truncated" in batch.note for batch in site.batches)


def test_beyond_the_limit_the_newest_are_followed_and_the_rest_is_counted(
    tmp_path: Path, few: int
) -> None:
    site = Site(tmp_path, "EventLog", "u*.log", start_at="beginning")
    site.write("EventLog", of_pool(job_record(900)))
    for number in range(1, 51):
        site.write(f"u{number:02}.log", job_record(number), 1_000.0 + number)
    assert jobs(site.read()) == sorted([*names(31, 50), "pool#900.0"])
    assert "50 logs match" in site.batches[-1].note
    assert "the 30 written to least recently are not followed" in site.batches[-1].note
    assert site.open_n() == 1  # the one that is named without a pattern
    site.write("EventLog", of_pool(job_record(901)))
    site.write("u03.log", job_record(60), 2_000.0)
    assert jobs(site.read()) == sorted([*names(3, 3), *names(60, 60), "pool#901.0"])
    assert len(site.follower.paths) <= few + 1


def test_what_a_log_beyond_the_limit_held_at_first_is_history_when_it_is_followed(
    tmp_path: Path, few: int
) -> None:
    site = Site(tmp_path, "u*.log")
    here, ended = "003.000.000", "103.000.000"
    site.write("u03.log", record(0, here) + record(0, ended) + record(5, ended), 1_000.0)
    for number in range(10, 10 + few):
        site.write(f"u{number:02}.log", job_record(number), 2_000.0)
    assert len(jobs(site.read())) == few
    site.write("u03.log", job_record(60), 3_000.0)
    site.read()
    history = [event for b in site.batches if b.history and b.standing for event in b.events]
    news = [event for b in site.batches if not b.history for event in b.events]
    assert jobs(history) == names(3, 3)  # it waits still; the other ended long ago
    assert jobs(news) == names(60, 60)


def test_no_owner_of_many_logs_displaces_those_of_another() -> None:
    def status(owner: int, modified_s: int) -> os.stat_result:
        fields = (0o100644, 1, 1, 1, owner, 0, 0, 0, modified_s, 0)
        return os.stat_result(fields, {"st_mtime_ns": modified_s * 10**9})

    files = {f"m{n}": status(7, 1_000 + n) for n in range(100)}
    files |= {"a1": status(8, 10), "a2": status(8, 20), "b": status(9, 1)}
    chosen = list(newest_in_turn(files, 6))
    assert {"a1", "a2", "b"} < set(chosen)
    assert sorted(set(chosen) - {"a1", "a2", "b"}) == ["m97", "m98", "m99"]
    assert list(newest_in_turn(files, 2)) == ["m99", "a2"]


def test_logs_that_are_renamed_away_again_and_again_hold_nothing_open(tmp_path: Path) -> None:
    site = Site(tmp_path, "*.log", start_at="beginning")
    for turn in range(4):
        for number in range(10):
            name = f"r{turn}-{number}.log"
            site.write(name, job_record(10 * turn + number + 1))
        site.read()
        for path in tmp_path.glob("*.log"):
            path.rename(path.with_suffix(".away"))
    site.read()
    assert site.open_n() == 0
    assert not site.follower.paths


def test_more_active_logs_than_may_be_open_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (64, 64))
    site = Site(tmp_path, "*.log", start_at="beginning")
    for number in range(1, 31):
        site.write(f"u{number}.log", job_record(number) * 2)
    batch, _ = site.follower.read()
    assert site.open_n() <= 8
    assert jobs(batch.events + site.read()) == sorted(names(1, 30))
    assert most_open(1_000) == 8
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (4_096, 4_096))
    assert most_open(1_000) == 512


def test_a_log_that_is_opened_again_costs_no_look_at_its_whole_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path) -> None:
        raise AssertionError(folder)

    site = Site(tmp_path, "*.log", start_at="beginning")
    site.write("a.log", job_record(1))
    site.read()
    monkeypatch.setattr(identity, "_names_in", fail)
    site.write("a.log", job_record(2))
    assert jobs(site.read()) == names(2, 2)


def test_looking_for_files_that_hangs_leaves_those_that_were_found(
    tmp_path: Path, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, "*.log", start_at="beginning")
    for number in range(1, 3 * few):
        site.write(f"u{number}.log", job_record(number), 1_000.0 + number)
    site.read()
    make = Steps.make

    def hang(steps: Steps, name: str, step: Any, dispose: Any) -> Any:
        return PENDING if name.startswith("pattern") else make(steps, name, step, dispose)

    monkeypatch.setattr(Steps, "make", hang)
    site.write("u59.log", job_record(99))
    assert jobs(site.read()) == names(99, 99)
    assert "59 logs match" in site.batches[-1].note
    assert len(site.follower.paths) == few


def test_what_is_no_file_is_no_match(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.log")
    (tmp_path / "folder.log").mkdir()
    (tmp_path / "null.log").symlink_to("/dev/zero")
    (tmp_path / "packed.log").write_bytes(b"\x1f\x8b\x08\x00" + bytes(2_000))
    site = Site(tmp_path, "*.log", start_at="beginning")
    site.write("a.log", job_record(1))
    assert jobs(site.read()) == names(1, 1)
    assert site.open_n() == 0
    assert [path.name for path in site.follower.paths] == ["a.log", "packed.log"]


def test_news_does_not_wait_for_the_history_of_another_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "BATCH_BYTES", 10_000)
    site = Site(tmp_path, "EventLog", "b.log")
    site.write("EventLog", job_record(9_000))
    end = b"".join(record(5, f"{n:03d}.000.000", "2026-11-21 23:00:00") for n in range(200, 9_000))
    site.write("b.log", job_records(200, 8_999) + end)
    batch, _ = site.follower.read()
    assert batch.history
    assert not batch.standing
    site.write("EventLog", job_record(9_001))
    seen: list[Batch] = [batch]
    while names(9_001, 9_001)[0] not in jobs(seen[-1].events):
        site.clock.now_s += 3.0
        seen.append(site.follower.read()[0])
        assert len(seen) < 10
    assert site.clock.now_s < 1_000_000.0 + 5 * adapter.HISTORY_S
    assert not seen[-1].history
    told = [event for batch in seen for event in batch.events]
    late = site.read()
    assert [b for b in site.batches if b.history] == [b for b in site.batches if b.standing]
    assert any("its history is being read" in batch.note for batch in site.batches)
    alive = {event[2] for event in told if event[1] == events.SUBMITTED}
    gone = {event[2] for event in late if event[1] == events.COMPLETED}
    assert gone == alive & set(names(200, 8_999))  # what was given out before has its end
    assert not [event for event in late if event[1] == events.SUBMITTED and event[2] not in gone]


def test_a_restart_within_late_history_reads_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "BATCH_BYTES", 10_000)
    monkeypatch.setattr(adapter, "HISTORY_S", -1.0)
    site = Site(tmp_path, "EventLog", "b.log")
    site.write("EventLog", job_record(9_000))
    site.write("b.log", job_records(200, 8_999))
    told: set[str] = set()
    for _ in range(5):
        batch, _ = site.follower.read()
        told |= set(jobs(batch.events))
    site.begin(batch.cursor)
    late = site.read()
    assert set(names(200, 8_999)) <= set(jobs(late)) | told
    assert all(batch.standing for batch in site.batches if batch.history)


def test_the_age_of_a_log_is_that_of_what_is_still_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "BATCH_BYTES", 10_000)
    site = Site(tmp_path, "EventLog", start_at="beginning")
    site.write("EventLog", job_records(1, 9_000))
    ages_s = []
    for _ in range(4):
        ages_s.append(site.follower.read()[0].age_s)
        site.clock.now_s += 10.0
    assert ages_s == [0.0, 10.0, 20.0, 30.0]
    site.read()
    assert site.batches[-1].age_s == 0.0


def test_logs_that_grow_without_end_leave_the_others_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "BATCH_BYTES", 1 << 19)
    site = Site(tmp_path, "*.log", start_at="beginning")
    for number in range(5):
        first = 1_000 + 10_000 * number
        site.write(f"flood{number}.log", job_records(first, first + 8_000))
    for _ in range(3):
        site.write("z.log", job_record(1))
        site.follower.read()
    for number in range(10, 50, 10):
        site.write("z.log", job_records(number, number + 5))
        batch = site.follower.read()[0]
        assert names(number, number)[0] in jobs(batch.events)
