"""Writer of an HTCondor event log at a steady pace, in its own process, with counts of events.

Run as ``python log_writer.py LOG COUNTS SEED RATE SECONDS``. It stops after SECONDS or at SIGTERM,
at a moment when every job has ended. Then COUNTS contains the number of events by kind.
"""

import json
import random
import signal
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

MACHINES = 60
STEP_S = 0.04
MOST_QUEUED = 2_000
"""An hour of a queue that only grows could not be worked off at the end."""


class LogWriter:
    """Jobs that are submitted, start, are sometimes evicted, and complete."""

    def __init__(self, path: Path, seed: int) -> None:
        self._chance = random.Random(seed)
        self._file = path.open("a", encoding="utf-8")
        self.counts: Counter[str] = Counter()
        self._jobs = 0
        self._queued: list[int] = []
        self._running: dict[int, int] = {}

    def step(self, records: int, submit: bool) -> None:
        """Write so many records, and flush them as one piece that may end in mid-record."""
        text = "".join(self._record(submit) for _ in range(records))
        cut = self._chance.randrange(len(text) + 1) if text else 0
        self._file.write(text[:cut])
        self._file.flush()
        self._file.write(text[cut:])
        self._file.flush()

    def is_empty(self) -> bool:
        """Return whether every job has ended."""
        return not self._queued and not self._running

    def _record(self, submit: bool) -> str:
        free = [m for m in range(MACHINES) if m not in self._running]
        full = len(self._queued) >= MOST_QUEUED
        if self._queued and free and self._chance.random() < 0.6:
            job = self._queued.pop(0)
            machine = self._chance.choice(free)
            self._running[machine] = job
            return self._told(
                "001", "started", job, f"Job executing on host: <10.0.0.{machine}:9618>"
            )
        if self._running and (full or not submit or self._chance.random() < 0.55):
            machine = self._chance.choice(list(self._running))
            job = self._running.pop(machine)
            if submit and self._chance.random() < 0.3:
                self._queued.append(job)
                return self._told("004", "evicted", job, "Job was evicted.\n\t(0) CPU times")
            ended = "Job terminated.\n\t(1) Normal termination (return value 0)"
            return self._told("005", "completed", job, ended)
        if full or not submit:
            return ""
        self._jobs += 1
        self._queued.append(self._jobs)
        return self._told(
            "000", "submitted", self._jobs, "Job submitted from host: <10.0.0.200:9618>"
        )

    def _told(self, code: str, kind: str, job: int, text: str) -> str:
        self.counts[kind] += 1
        now = datetime.now(UTC).isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
        return f"{code} ({job:03d}.000.000) {now} {text}\n...\n"


def main() -> None:
    """Write until SIGTERM or the time limit."""
    log, counts, seed, rate, seconds = sys.argv[1:]
    writer = LogWriter(Path(log), int(seed))
    told_to_stop = []
    signal.signal(signal.SIGTERM, lambda *_: told_to_stop.append(True))
    records = round(float(rate) * STEP_S)
    began = time.monotonic()
    steps = 0
    while True:
        ending = bool(told_to_stop) or time.monotonic() - began > float(seconds)
        writer.step(records, submit=not ending)
        if ending and writer.is_empty():
            break
        steps += 1
        time.sleep(max(0.0, began + steps * STEP_S - time.monotonic()))
    Path(counts).write_text(json.dumps(writer.counts | {"seconds": time.monotonic() - began}))


if __name__ == "__main__":
    main()
