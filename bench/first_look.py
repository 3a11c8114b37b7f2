"""Time to read an HTCondor pool's whole queue, and to decide about all its waiting jobs.

A real HTCondor pool on the loopback has thousands of pending jobs of thirty kinds and thousands of
made-up slots, a tenth of them usable. The adapter `htcondor` and the daemon's core run in this
process. Figures are wall seconds: for the first look at everything, which also determines which
machines each kind of job may use; for the policy's decisions; and for reading the whole queue
again, which happens every five minutes.

    python bench/first_look.py [--jobs 10000] [--slots 5000] [--policy survival] [--json]

Needs root and a pool (make peers). Exit code 1 if reading again and deciding take more than 1 s.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from calibration import calibration_s
from options import parsed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from observing import fill

from outrider.model.jobs import QUEUED
from outrider.service.config.loaded import load_config
from outrider.service.core.core import Core
from outrider.service.core.source_state import SourceState
from tests.peers.pool import HTCondorPool, missing_reason
from tests.peers.test_htcondor_adapter import CLIENT

BUDGET_S = 1.0
CONFIG = """\
mode = "shadow"
state_dir = "{folder}"
[adapters.htcondor]
collector = "{collector}"
[policies.{policy}]
"""
T = TypeVar("T")


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """Return the wall seconds of a call, and its result."""
    began_s = time.monotonic()
    found = call()
    return time.monotonic() - began_s, found


def measured(pool: HTCondorPool, folder: Path, jobs: int, policy: str) -> dict[str, Any]:
    """Return the figures of one pool."""
    (folder / "condor_config").write_text(CLIENT)
    os.environ["CONDOR_CONFIG"] = str(folder / "condor_config")
    from outrider_adapters.htcondor.locating import located
    from outrider_adapters.htcondor.pool_watch import PoolWatch
    from outrider_adapters.htcondor.settings import HTCondorSettings

    config = folder / "outrider.toml"
    config.write_text(CONFIG.format(folder=folder, collector=pool.collector, policy=policy))
    settings = HTCondorSettings(collector=pool.collector, queue_s=1.0, snapshot_s=1.0)
    calls, _ = located(settings.collector, ())
    watch = PoolWatch(calls, {}, settings, time.time)
    watch.start(None)
    first_s, batch = timed(watch.look)
    core = Core(load_config(config), [SourceState("htcondor", "htcondor", False, 0.0)])

    def decide() -> None:
        feed = core.take("htcondor", batch, time.time())
        while core.step(feed, 1_000):
            pass

    decided_s, _ = timed(decide)
    time.sleep(2.0)  # the whole queue is due again
    again_s, _ = timed(watch.look)
    queued = sum(job.state == QUEUED for job in core.site.jobs.values())
    assert queued >= jobs, f"{queued} jobs are queued, and not {jobs}"
    decisions = sum(runner.decisions for runner in core.runners)
    return {
        "jobs": queued, "machines": len(watch.slots.machines), "decisions": decisions,
        "first_look_s": first_s, "taken_in_and_decided_s": decided_s, "read_again_s": again_s,
    }  # fmt: skip


def main() -> int:
    """Measure, print and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=5_000)
    parser.add_argument("--policy", default="survival")
    options = parsed(parser, jobs=60, slots=20)
    missing = missing_reason()
    if missing is not None:
        print(f"not measured: {missing}", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as name, HTCondorPool(Path(name) / "pool") as pool:
        fill(pool, options.jobs, options.slots)
        time.sleep(5.0)
        figures = measured(pool, Path(name), options.jobs // 30 * 30, options.policy)
    figures |= {"budget_s": BUDGET_S, "calibration_s": calibration_s()}
    if options.json:
        print(json.dumps(figures))
    else:
        for what, value in figures.items():
            print(f"{what:<24} {value:,.3f}")
    took_s = figures["read_again_s"] + figures["taken_in_and_decided_s"]
    return 0 if options.small or took_s <= BUDGET_S else 1


if __name__ == "__main__":
    sys.exit(main())
