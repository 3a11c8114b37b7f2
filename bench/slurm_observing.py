"""Cost of watching a Slurm of 1,000 nodes and 10,000 waiting jobs, and of deciding about them.

A real slurmctld runs on the loopback. Nine of ten nodes are busy, a job that needs all of them is
next in the queue, and single jobs and (one in five) array tasks wait behind it, so slurmctld starts
nothing more. First the adapter `slurm` and the daemon's core run in this process: wall and CPU
seconds for the first look, which is history, for the second, after which the policy decides about
every job, and for looks at an unchanged queue. Then a daemon in shadow with default settings runs
in turns with none: the share of a core that slurmctld uses with and without it, and that of
Outrider with the commands that it runs.

    python bench/slurm_observing.py [--jobs 10000] [--nodes 1000] [--seconds 120] [--turns 3]
        [--policy survival] [--json]

Needs root and Slurm (make peers). Exit code 1 if a look and deciding take more than 1 s, or if
watching adds more than 1 % of a core to slurmctld.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from calibration import calibration_s
from options import parsed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from observing import TICKS_A_SECOND, cpu_s

from outrider.api import Batch
from outrider.model.jobs import QUEUED
from outrider.service.config.loaded import load_config
from outrider.service.core.core import Core
from outrider.service.core.source_state import SourceState
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.settings import SlurmSettings
from outrider_adapters.slurm.slurm_watch import SlurmWatch
from tests.peers.cloud_slurm import CloudSlurm
from tests.peers.slurm import missing_reason
from tests.service.running.process import DaemonProcess

BUDGET_S = 1.0
BUDGET_SHARE = 0.01
LOOKS = 20
SETTLES_S = 5.0
CONFIG = """\
mode = "shadow"
state_dir = "{folder}"
listen = "127.0.0.1:0"
[adapters.slurm]
[policies.{policy}]
"""


class Took(NamedTuple):
    """Wall seconds, and CPU seconds of this process, its commands and slurmctld."""

    wall_s: float
    own_cpu_s: float
    commands_cpu_s: float
    controller_cpu_s: float


def took(controller: int, call: Callable[[], object]) -> Took:
    """Measure the time of a call."""
    before = _now(controller)
    call()
    return Took(*(b - a for a, b in zip(before, _now(controller), strict=True)))


def _now(controller: int) -> Took:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    commands_s = children.ru_utime + children.ru_stime
    return Took(time.monotonic(), time.process_time(), commands_s, cpu_s(controller))


def with_commands_cpu_s(pid: int) -> float:
    """Return the CPU time of a process and of its commands until now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS_A_SECOND


def looks(slurm: CloudSlurm, folder: Path, jobs: int, policy: str) -> dict[str, Any]:
    """Return the figures of looks by this process."""
    config = folder / "looks.toml"
    config.write_text(CONFIG.format(folder=folder / "looks", policy=policy))
    settings = SlurmSettings()
    watch = SlurmWatch(SlurmCommands(settings), settings)
    watch.start(None)
    core = Core(load_config(config), [SourceState("slurm", "slurm", False, 0.0)])
    core.engine.be_silent()
    batches: list[Batch] = []
    first = took(slurm.controller_pid, lambda: batches.append(watch.look()))
    taken_in = took(slurm.controller_pid, lambda: fed(core, batches[0]))
    second = took(slurm.controller_pid, lambda: batches.append(watch.look()))
    decided = took(slurm.controller_pid, lambda: fed(core, batches[1]))
    again = [took(slurm.controller_pid, watch.look) for _ in range(LOOKS)]
    queued = sum(job.state == QUEUED for job in core.site.jobs.values())
    assert queued >= jobs, f"{queued} jobs are queued, and not {jobs}"
    return {
        "jobs_queued": queued, "nodes": len(watch.nodes),
        "decisions": sum(runner.decisions for runner in core.runners),
        "first_look": first._asdict(),
        "taken_in_s": taken_in.wall_s,
        "second_look_s": second.wall_s,
        "decided_s": decided.wall_s,
        "look_again": {
            "wall_s": median(one.wall_s for one in again),
            **{f: mean(getattr(one, f) for one in again) for f in Took._fields[1:]},
        },
    }  # fmt: skip


def fed(core: Core, batch: Batch) -> None:
    """Feed a batch to the core and let it decide, as the daemon does."""
    feed = core.take("slurm", batch, time.time())
    while core.step(feed, 1_000):
        pass
    if core.engine.silent:
        core.begin()


def turns(slurm: CloudSlurm, folder: Path, jobs: int, options: Any) -> dict[str, Any]:
    """Return the shares of a core while a daemon watches, and while it is suspended."""
    config = folder / "watching.toml"
    config.write_text(CONFIG.format(folder=folder / "watching", policy=options.policy))
    pid = slurm.controller_pid
    alone, watched, ours = [], [], []
    with DaemonProcess(config) as daemon:
        daemon.wait_until("the queue", lambda status: status["jobs"]["queued"] >= jobs)
        assert daemon.process is not None
        for _ in range(options.turns):
            with daemon.suspended():
                time.sleep(min(SETTLES_S, options.seconds))
                alone.append(shares({"slurmctld": pid}, options.seconds)["slurmctld"])
            time.sleep(min(SETTLES_S, options.seconds))
            both = shares({"slurmctld": pid, "outrider": daemon.process.pid}, options.seconds)
            watched.append(both["slurmctld"])
            ours.append(both["outrider"])
        daemon.stop()
    return {
        "slurmctld_alone": alone, "slurmctld_watched": watched,
        "added_to_slurmctld": mean(watched) - mean(alone), "outrider": mean(ours),
    }  # fmt: skip


def shares(pids: dict[str, int], seconds: float) -> dict[str, float]:
    """Return the share of a core that processes and their commands use during a period."""
    before = {name: with_commands_cpu_s(pid) for name, pid in pids.items()}
    began_s = time.monotonic()
    time.sleep(seconds)
    passed_s = time.monotonic() - began_s
    return {name: (with_commands_cpu_s(pid) - before[name]) / passed_s
            for name, pid in pids.items()}  # fmt: skip


def main() -> int:
    """Measure, print and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="length of each half of a turn"
    )
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--policy", default="survival")
    options = parsed(parser, jobs=200, nodes=10, seconds=1.0, turns=1)
    missing = missing_reason()
    if missing is not None:
        print(f"not measured: {missing}", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with CloudSlurm(folder / "slurm", options.nodes) as slurm:
            os.environ |= slurm.environment
            n = len(slurm.fill(options.jobs * 4 // 5, options.jobs // 5))
            time.sleep(min(SETTLES_S, options.seconds))
            figures = looks(slurm, folder, n, options.policy)
            figures |= turns(slurm, folder, n, options)
    figures |= {"budget_s": BUDGET_S, "budget_share": BUDGET_SHARE}
    figures |= {"calibration_s": calibration_s()}
    if options.json:
        print(json.dumps(figures))
    else:
        for what, value in figures.items():
            print(f"{what:<24} {value}")
    took_s = figures["second_look_s"] + figures["decided_s"]
    within = took_s <= BUDGET_S and figures["added_to_slurmctld"] <= BUDGET_SHARE
    return 0 if options.small or within else 1


if __name__ == "__main__":
    sys.exit(main())
