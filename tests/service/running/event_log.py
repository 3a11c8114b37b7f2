"""A small HTCondor event log, written as a test goes along, and what was written into it."""

import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

STEP_S = 0.002
"""Shortest time between two records: even the shortest job has run for a moment."""


class EventLog:
    """An event log and an independent count of its events.

    Args:
        path: the file; made when the first record is written.
        ahead_s: how far the writer's clock is ahead of this machine's. Behind it by more than the
            daemon waits for late events, no test has to wait for them either.
        schedd: host from which jobs are submitted.
    """

    def __init__(self, path: Path, ahead_s: float = -10.0, schedd: str = "10.0.0.200") -> None:
        self.path = path
        self.schedd = schedd
        self.ahead_s = ahead_s
        self.counts: Counter[str] = Counter()
        self._at_s = float("-inf")

    def at(self, time_s: float) -> None:
        """Date the following records at this Unix time and soon after."""
        self.ahead_s = float("-inf")
        self._at_s = time_s

    def submit(self, *jobs: int) -> None:
        self._write("submitted", 0, jobs, f"Job submitted from host: <{self.schedd}:9618>")

    def start(self, job: int, machine: int) -> None:
        self._write("started", 1, [job], f"Job executing on host: <10.0.0.{machine}:9618>")

    def evict(self, job: int) -> None:
        self._write("evicted", 4, [job], "Job was evicted.\n\t(0) CPU times")

    def complete(self, job: int) -> None:
        text = "Job terminated.\n\t(1) Normal termination (return value 0)"
        self._write("completed", 5, [job], text)

    def run(self, jobs: Iterable[int], machine: int = 1) -> None:
        """Jobs that are submitted, start and complete one after the other."""
        for job in jobs:
            self.submit(job)
            self.start(job, machine)
            self.complete(job)

    def raw(self, data: bytes) -> None:
        """Bytes that are no event."""
        with self.path.open("ab") as file:
            file.write(data)

    def _write(self, kind: str, code: int, jobs: Iterable[int], text: str) -> None:
        self._at_s = max(time.time() + self.ahead_s, self._at_s + STEP_S)
        stamp = datetime.fromtimestamp(self._at_s, UTC).isoformat(" ", "milliseconds")[:-6]
        records = [f"{code:03d} ({job:03d}.000.000) {stamp}Z {text}\n...\n" for job in jobs]
        self.counts[kind] += len(records)
        self.raw("".join(records).encode())
