"""Time to set, renew and revert the leases of many jobs on a real Slurm.

A real slurmctld has 1,000 nodes and 10,000 waiting jobs (as in `slurm_observing.py`). The lever of
the adapter `slurm` is called as the daemon calls it: a thousand jobs per call, each start time read
back. Leases are reverted as at a clean stop. First it leases a thousand single jobs, then all. One
in five of these is a task of an array, whose tasks Slurm updates together. slurmctld itself counts
the updates.

    python bench/slurm_acting.py [--jobs 10000] [--nodes 1000] [--json]

Needs root and Slurm (make peers). Exit code 1 if Slurm got more updates than `updates_per_s`
allows, or if the leases of all jobs are not renewed within a third of their length.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibration import calibration_s
from options import parsed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from slurm_observing import took

from outrider.acting.leases import MAX_BATCH
from outrider.api import DecisionRow
from outrider.service.daemon.levers import CLOSE_S, UndoFile
from outrider_adapters.slurm.acting.lever import LeasedStartTimes
from outrider_adapters.slurm.adapter import SlurmAdapter
from outrider_adapters.slurm.settings import SlurmSettings
from tests.peers.cloud_slurm import CloudSlurm
from tests.peers.slurm import missing_reason

FEW = 1_000
COUNT_EVERY_S = 0.5
UPDATES = re.compile(r"REQUEST_UPDATE_JOB +\( *\d+\) count:(\d+)")


class Counting:
    """Counter of the job updates that slurmctld has executed over time.

    Attributes:
        counts: seconds of the monotonic clock, and the updates until then.
    """

    def __init__(self, slurm: CloudSlurm) -> None:
        self.counts: list[tuple[float, int]] = []
        self._slurm = slurm
        self._ended = threading.Event()

    def count(self) -> None:
        """Query the counter once now."""
        found = UPDATES.search(self._slurm.run("sdiag"))
        self.counts.append((time.monotonic(), int(found[1]) if found else 0))

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Query the counter periodically within the block, and at its begin and end."""
        self._ended.clear()
        self.counts = []
        self.count()
        thread = threading.Thread(target=self._go_on)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
            self.count()

    def _go_on(self) -> None:
        while not self._ended.wait(COUNT_EVERY_S):
            self.count()

    @property
    def updates(self) -> int:
        """Number of updates within the block."""
        return self.counts[-1][1] - self.counts[0][1]

    def until(self, after_s: float) -> int:
        """Return the number of updates in its first seconds."""
        begin_s, n = self.counts[0]
        return max((m for at_s, m in self.counts if at_s <= begin_s + after_s), default=n) - n


def begins_later(slurm: CloudSlurm) -> int:
    """Return how many jobs Slurm does not start yet; each task of an array counts."""
    shown = slurm.run("squeue", "-h", "-r", "-t", "PD", "-O", "JobID:32,EligibleTime:32")
    times = [line.split()[1] for line in shown.splitlines()]  # N/A: not examined yet
    return sum(at.isdigit() and int(at) > time.time() + 1.0 for at in times)


def phases(
    slurm: CloudSlurm, folder: Path, jobs: Sequence[str], lease_s: float
) -> Iterator[dict[str, Any]]:
    """Yield the figures of leases of these jobs."""
    adapter = SlurmAdapter("slurm", SlurmSettings(lease_s=lease_s))
    adapter.undo_log, adapter.identity = UndoFile(folder / f"of-{len(jobs)}", "slurm"), "bench"
    lever = LeasedStartTimes(adapter)
    rows = [DecisionRow(0.0, job, "defer", None, 0, "later", "x", "active") for job in jobs]
    counting = Counting(slurm)

    def keep() -> None:
        for first in range(0, len(rows), MAX_BATCH):
            refused = lever.apply(rows[first : first + MAX_BATCH])
            assert not refused, next(iter(refused.items()))

    def revert() -> None:
        lever.hurry()
        refused = lever.withdraw(jobs)
        assert not refused, next(iter(refused.items()))

    calls: list[tuple[str, Callable[[], None], int]]
    calls = [("set", keep, len(jobs)), ("renewed", keep, len(jobs)), ("reverted", revert, 0)]
    try:
        for what, call, keeps in calls:
            with counting.going_on():
                spent = took(slurm.controller_pid, call)
            found = begins_later(slurm)
            assert found in (keeps, keeps + 1), f"{found} jobs wait for their time, not {keeps}"
            n = counting.updates
            yield {
                "what": what, "jobs": len(jobs), **spent._asdict(), "updates": n,
                "updates_per_s": n / spent.wall_s,
                "controller_ms_an_update": 1_000 * spent.controller_cpu_s / max(1, n),
                "before_a_stop_ends": counting.until(CLOSE_S),
            }  # fmt: skip
    finally:
        lever.close()


def main() -> int:
    """Measure, print and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1_000)
    options = parsed(parser, jobs=200, nodes=10)
    missing = missing_reason()
    if missing is not None:
        print(f"not measured: {missing}", file=sys.stderr)
        return 0
    settings = SlurmSettings()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with CloudSlurm(folder / "slurm", options.nodes) as slurm:
            os.environ |= slurm.environment | {"SLURM_TIME_FORMAT": "%s"}
            ids = slurm.fill(options.jobs * 4 // 5, options.jobs // 5)
            jobs = [f"outrider:{job}" for job in ids]
            results = list(
                phases(slurm, folder, jobs[: min(FEW, len(jobs) // 2)], settings.lease_s)
            )
            results += phases(slurm, folder, jobs, settings.lease_s)
    most = settings.updates_per_s
    paced = [row for row in results if row["what"] != "reverted"]
    too_many = [row for row in paced if row["updates"] > most * (row["wall_s"] + 0.5)]
    too_late = [row for row in paced if row["wall_s"] > settings.lease_s / 3.0]
    figures = {"results": results, "updates_per_s": most, "too_many": too_many}
    figures |= {"too_late": too_late, "calibration_s": calibration_s()}
    if options.json:
        print(json.dumps(figures))
    else:
        for row in results:
            print(f"{row['jobs']:,} leases {row['what']}: {row['wall_s']:.1f} s, "
                  f"{row['updates']:,} updates, {row['updates_per_s']:.1f} per second; "
                  f"{row['before_a_stop_ends']:,} in the first {CLOSE_S:g} s; CPU of slurmctld "
                  f"{row['controller_cpu_s']:.2f} s, {row['controller_ms_an_update']:.2f} ms each, "
                  f"of Outrider {row['own_cpu_s']:.2f} s, of its commands "
                  f"{row['commands_cpu_s']:.2f} s")  # fmt: skip
        print(f"calibration_s {figures['calibration_s']:.4f}")
    return 0 if options.small or not (too_many or too_late) else 1


if __name__ == "__main__":
    sys.exit(main())
