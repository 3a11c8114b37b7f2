"""A log on disk, a clock that the test moves, and a tail that follows."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from outrider_adapters.logtail.readers import Readers
from outrider_adapters.logtail.tail import Slice, Tail
from tests.adapters.readers.samples import SCHEDD, record

SETTLE_S = 2.0


class Clock:
    """Starts long before any real file was modified, so that only the test makes time pass."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


class Followed:
    """One log and its tail. Jobs are numbered, so that a lost or doubled record shows."""

    def __init__(self, path: Path, history: bool = False) -> None:
        self.path = path
        self.clock = Clock()
        self.jobs: list[str] = []
        self.history_jobs: list[str] = []
        self.rejected: Counter[str] = Counter()
        self.notes: list[str] = []
        self.last = Slice()
        self.tail = self._new_tail(history)
        if history:
            self.tail.mark_history()

    def _new_tail(self, history: bool = False) -> Tail:
        return Tail(self.path, Readers("auto"), None, self.clock, SETTLE_S, history)

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as log:
            log.write(data)

    def poll(self) -> None:
        """Read until there is nothing to do."""
        for _ in range(1000):
            self.last = self.tail.step()
            jobs = [event[2] for event in self.last.events]
            (self.history_jobs if self.last.history else self.jobs).extend(jobs)
            self.rejected += self.last.rejected
            self.notes += self.last.notes
            if not self.last.progress:
                return
        raise AssertionError("the tail never comes to rest")

    def settle(self) -> None:
        """Poll, let quiet time pass, and poll again."""
        self.poll()
        self.clock.now_s += SETTLE_S + 0.1
        self.poll()

    def rename(self, suffix: str = ".1") -> None:
        """Rotate by rename, moving earlier rotations up."""
        for number in range(8, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number}")
            if older.exists():
                older.rename(self.path.with_name(f"{self.path.name}.{number + 1}"))
        if self.path.exists():
            self.path.rename(self.path.with_name(self.path.name + suffix))

    def copy_and_truncate(self) -> None:
        shutil.copyfile(self.path, self.path.with_name(self.path.name + ".old"))
        with self.path.open("r+b") as log:
            log.truncate(0)

    def restart(self) -> Any:
        """Go on with a new tail from the cursor, which passes through JSON."""
        cursor = json.loads(json.dumps(self.tail.save()))
        self.tail.close()
        self.tail = self._new_tail()
        self.tail.restore(cursor)
        return cursor


def job_record(number: int) -> bytes:
    """Return the submission of job `number`.0, one a second."""
    date = f"2026-11-21 {number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}"
    return record(0, f"{number:03d}.000.000", date)


def job_records(first: int, last: int) -> bytes:
    return b"".join(job_record(number) for number in range(first, last + 1))


def names(first: int, last: int) -> list[str]:
    return [f"{SCHEDD}#{number}.0" for number in range(first, last + 1)]
