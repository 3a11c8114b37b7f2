"""Tests of records whose reading crashed the process: retried alone, then skipped."""

from pathlib import Path
from typing import Any

import pytest

from outrider.api import InProgress, LogReader, ReaderOptions
from outrider_adapters.logtail.readers import Readers
from outrider_adapters.logtail.suspects import COST_A_RESTART, Suspects
from outrider_adapters.logtail.tail import Tail
from outrider_adapters.readers.htcondor import HTCondorLogReader
from tests.adapters.logtail.following import SETTLE_S, Clock
from tests.adapters.readers.samples import record


class Death(BaseException):
    """Exception for the end of the process, which no code catches."""


class Deadly(HTCondorLogReader):
    """Ends the process on some bytes; counts how often it was asked to read any."""

    on: bytes = b"POISON"
    only_finally = False

    def read(self, data: bytes, final: bool = False) -> Any:
        if self.on in data and (final or not self.only_finally):
            raise Death
        return super().read(data, final)


class DeadlyWhenWhole(Deadly):
    """Reader that ends the process on a complete record, like an unsafe pattern."""

    bytes_read = 0

    def read(self, data: bytes, final: bool = False) -> Any:
        type(self).bytes_read += len(data)
        _, poison, rest = data.partition(self.on)
        if poison and b"\n...\n" in rest:
            raise Death
        return HTCondorLogReader.read(self, data, final)


class OneReader(Readers):
    kind: type[Deadly] = Deadly

    def reader_for(self, head: bytes, options: ReaderOptions) -> LogReader | None:
        return self.kind(options)


class Kept(InProgress):
    """Progress record that keeps its value, like the daemon's file, also at a crash.

    A death clears nothing: that `Death` passes through context managers is the test's doing.
    """

    at_death: Any = None

    def note(self, what: Any) -> None:
        if what is not None and what["reading"] is not None:
            self.at_death = what
        self.left = what


class Process:
    """One tail after another, each begun at the beginning: no batch was recorded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept = Kept()
        self.clock = Clock()
        self.deaths = 0

    def run(self) -> tuple[list[str], dict[str, int]]:
        """Read all there is, however often it dies of it: jobs, and what was rejected."""
        while True:
            tail = Tail(
                self.path, OneReader("auto"), None, self.clock, SETTLE_S,
                suspects=Suspects(self.kept),
            )  # fmt: skip
            self.clock.now_s += 10
            try:
                return self._read(tail)
            except Death:
                self.kept.left = self.kept.at_death
                self.deaths += 1
                assert self.deaths < 20
            finally:
                tail.close()

    def _read(self, tail: Tail) -> tuple[list[str], dict[str, int]]:
        jobs: list[str] = []
        rejected: dict[str, int] = {}
        quiet = False
        for _ in range(1000):
            part = tail.step()
            jobs += [event[2].rpartition("#")[2] for event in part.events]
            for reason, count in part.rejected.items():
                rejected[reason] = rejected.get(reason, 0) + count
            if not part.progress and quiet:
                return jobs, rejected
            if not part.progress:
                self.clock.now_s += SETTLE_S + 1
            quiet = not part.progress
        raise AssertionError("it never comes to rest")


POISON = b"008 (000.000.000) 2026-11-21 03:17:00 POISON\n...\n"


def log_of(*parts: bytes | int) -> bytes:
    """Return a record that completes a job by number, or these bytes."""
    return b"".join(record(5, f"{part}.0.0") if isinstance(part, int) else part for part in parts)


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """A reader of a log that may die at a record."""
    return Process(tmp_path / "EventLog")


def jobs_of(*numbers: int) -> list[str]:
    return [f"{number}.0" for number in numbers]


@pytest.mark.parametrize("before", [0, 1, 5, 3000])
def test_one_deadly_record_costs_three_deaths_and_nothing_else(
    process: Process, before: int
) -> None:
    process.path.write_bytes(log_of(*range(1, before + 1), POISON, *range(before + 1, before + 9)))
    jobs, rejected = process.run()
    assert jobs == jobs_of(*range(1, before + 9))
    assert rejected == {COST_A_RESTART: 1}
    assert process.deaths == 3


def test_several_cost_three_deaths_each_though_nothing_was_recorded_in_between(
    process: Process,
) -> None:
    process.path.write_bytes(log_of(1, POISON, 2, POISON, POISON, 3, 4))
    jobs, rejected = process.run()
    assert jobs == jobs_of(1, 2, 3, 4)
    assert rejected == {COST_A_RESTART: 3}
    assert process.deaths <= 9


@pytest.mark.parametrize("lines", [2, 3_000, 40_000])
def test_a_record_that_is_deadly_as_a_whole_costs_as_much_and_not_more_the_more_lines_it_has(
    process: Process, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OneReader, "kind", DeadlyWhenWhole)
    monkeypatch.setattr(DeadlyWhenWhole, "bytes_read", 0)
    poison = POISON.replace(b"POISON\n", b"POISON\n" + b"\t\n" * lines)
    process.path.write_bytes(log_of(*range(1, 200), poison, *range(200, 300)))
    jobs, rejected = process.run()
    lost = set(jobs_of(*range(1, 300))) - set(jobs)
    assert len(jobs) == len(set(jobs))
    assert lost <= set(jobs_of() if lines == 2 else jobs_of(200, 201)), "a long one, these behind"
    assert rejected[COST_A_RESTART] == 1
    assert process.deaths == 3
    assert DeadlyWhenWhole.bytes_read < 100 * process.path.stat().st_size


def test_what_is_only_deadly_as_the_end_of_a_log_is_passed_over_as_a_whole(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Deadly, "only_finally", True)
    process.path.write_bytes(log_of(1, 2, POISON))
    _, rejected = process.run()
    assert rejected[COST_A_RESTART] == 1
    assert process.deaths <= 4


def test_a_death_that_had_another_reason_costs_no_record(process: Process) -> None:
    process.path.write_bytes(log_of(*range(1, 50)))
    status = process.path.stat()
    stretch = {"path": str(process.path), "device": status.st_dev, "inode": status.st_ino,
               "start": 0, "end": status.st_size, "crc": 0}  # fmt: skip
    process.kept.left = {"holes": [], "reading": stretch}
    jobs, rejected = process.run()
    assert (jobs, rejected, process.deaths) == (jobs_of(*range(1, 50)), {}, 0)
    assert process.kept.left is None


def test_a_second_kill_while_records_are_tried_costs_no_record_either(process: Process) -> None:
    """Kills come at any moment; only one record that is read at each of them is to blame."""
    process.path.write_bytes(log_of(*range(1, 50)))
    status = process.path.stat()
    stretch = {"path": str(process.path), "device": status.st_dev, "inode": status.st_ino,
               "start": 120, "end": 160, "crc": 0, "alone": True}  # fmt: skip
    process.kept.left = {"holes": [], "reading": stretch}
    jobs, rejected = process.run()
    assert (jobs, rejected, process.deaths) == (jobs_of(*range(1, 50)), {}, 0)


def test_a_hole_in_a_file_that_was_written_anew_is_forgotten(process: Process) -> None:
    process.path.write_bytes(log_of(1, POISON, 2))
    process.run()
    process.path.write_bytes(log_of(*range(5, 20)))
    jobs, rejected = process.run()
    assert (jobs, rejected) == (jobs_of(*range(5, 20)), {})


@pytest.mark.parametrize("left", [None, 7, [], {"holes": 1}, {"reading": {}}, {"other": "x"}])
def test_a_note_of_another_kind_is_nothing(process: Process, left: Any) -> None:
    process.kept.left = left
    process.path.write_bytes(log_of(1, 2))
    assert process.run() == (jobs_of(1, 2), {})
