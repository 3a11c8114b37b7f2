"""Comparison of a policy that acts on a real HTCondor pool with the pool's own matching.

The pool has eight machines whose owners come and go on a schedule: in cluster A every few minutes,
in cluster B rarely. Jobs of a minute and of some minutes arrive. The daemon alternates between
blocks in mode active and blocks in shadow, where the pool matches alone. Two consecutive blocks
have the same jobs and the same owners. The figures come from the pool's own event log: CPU time
wasted by evictions, completed jobs, and their turnaround.

    python bench/acting.py [--policy survival] [--blocks 12] [--block-s 900] [--seed 1] [--json]

It takes blocks x block-s of wall time, and little CPU. Needs root and a pool (make peers).
"""

import argparse
import json
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from options import parsed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.peers.acting_on_htcondor.acting_pool import acting_pool, add_outrider, client_config
from tests.peers.pool import HTCondorPool, missing_reason
from tests.service.running.process import DaemonProcess

MACHINES = 8
AWAY_S = {"A": 120.0, "B": 900.0}
"""Mean absence of an owner, by cluster."""
PRESENT_S = 40.0
ARRIVAL_S = 23.0
EVENT = re.compile(
    r"^(00[0145]|009) \((\d+)\.\d+\.\d+\) (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+)Z", re.MULTILINE
)
CONFIG = """\
mode = "{mode}"
state_dir = "{state}"
listen = "127.0.0.1:0"
reconsider_s = 60.0

[adapters.htcondor]
collector = "{collector}"
event_logs = {{ "host.pool.test" = "{log}" }}
look_s = 1.0
snapshot_s = 60.0
lease_s = 60

[policies.{policy}]

[clusters.A]
active_w = 100
[clusters.B]
active_w = 100
"""


class Step(NamedTuple):
    """One scheduled step of a block: a job of that length, or an owner who comes or goes."""

    at_s: float
    machine: str
    run_s: float
    comes: bool


class Block(NamedTuple):
    """Figures of one block, from the pool's event log."""

    goodput_s: float
    badput_s: float
    evictions: int
    done: int
    turnaround_s: float

    @property
    def badput_ratio(self) -> float:
        """Wasted share of the CPU time of runs that ended."""
        return self.badput_s / max(self.goodput_s + self.badput_s, 1e-9)


def schedule(block_s: float, rng: random.Random) -> list[Step]:
    """Return the steps of a block, jobs and owners, by time."""
    steps = []
    at_s = 0.0
    while (at_s := at_s + rng.expovariate(1.0 / ARRIVAL_S)) < block_s:
        is_long = rng.random() < 0.3
        steps.append(
            Step(at_s, "", rng.uniform(150, 300) if is_long else rng.uniform(20, 60), False)
        )
    for number in range(1, MACHINES + 1):
        away_s = AWAY_S["A" if number <= MACHINES // 2 else "B"]
        at_s = 0.0
        while (at_s := at_s + 20.0 + rng.expovariate(1.0 / away_s)) < block_s:
            steps.append(Step(at_s, f"m{number}", 0.0, True))
            steps.append(Step(at_s := at_s + PRESENT_S, f"m{number}", 0.0, False))
    return sorted(steps)


def played(pool: HTCondorPool, steps: list[Step], block_s: float) -> Block:
    """Run one block on the pool and return its figures."""
    began_s = time.time()
    for step in steps:
        time.sleep(max(0.0, began_s + step.at_s - time.time()))
        if not step.machine:
            pool.submit_sleepers(1, round(step.run_s))
        elif step.comes:
            pool.owner_returns(step.machine)
        else:
            pool.owner_leaves(step.machine)
    time.sleep(max(0.0, began_s + block_s - time.time()))
    found = block_of(pool.event_log.read_text(), began_s, began_s + block_s)
    with suppress(RuntimeError):
        pool.run("root", "condor_rm", "-all")
    for machine in pool.machines:
        pool.owner_leaves(machine)
    pool.wait_until(
        "an empty queue", lambda: not pool.run("root", "condor_q", "-allusers", "-af", "JobStatus")
    )
    time.sleep(5.0)  # the machines are usable again
    return found


def block_of(log: str, begin_s: float, end_s: float) -> Block:
    """Return the figures of the runs and jobs that ended within a period."""
    submitted: dict[str, float] = {}
    started: dict[str, float] = {}
    goods, bads, turnarounds = [], [], []
    for code, job, when in EVENT.findall(log):
        at_s = datetime.fromisoformat(when).replace(tzinfo=UTC).timestamp()
        if not begin_s <= at_s <= end_s:
            continue
        if code == "000":
            submitted[job] = at_s
        elif job not in submitted:
            continue  # submitted before the block
        elif code == "001":
            started[job] = at_s
        elif job in started:
            ran_s = at_s - started.pop(job)
            if code == "005":
                goods.append(ran_s)
                turnarounds.append(at_s - submitted[job])
            else:
                bads.append(ran_s)
    turnaround_s = mean(turnarounds) if turnarounds else 0.0
    return Block(sum(goods), sum(bads), len(bads), len(goods), turnaround_s)


def blocks(pool: HTCondorPool, folder: Path, options: Any) -> Iterator[tuple[str, Block]]:
    """Run the blocks and yield each with the mode of the daemon."""
    config = folder / "outrider.toml"

    def write(mode: str) -> None:
        log = pool.event_log
        config.write_text(
            CONFIG.format(
                mode=mode, state=folder / "state", log=log, collector=pool.collector,
                policy=options.policy,
            )
        )  # fmt: skip

    write("shadow")
    environ = {"CONDOR_CONFIG": str(client_config(pool, folder, "outrider"))}
    with DaemonProcess(config, environ) as daemon:
        daemon.wait_until(
            "machines", lambda s: sum(c["machines"] for c in s["clusters"]) == MACHINES
        )
        for pair in range(options.blocks // 2):
            steps = schedule(options.block_s, random.Random(f"{options.seed}/{pair}"))
            for mode in ("active", "shadow") if pair % 2 else ("shadow", "active"):
                write(mode)
                reload(daemon, mode)
                block = played(pool, steps, options.block_s)
                print(mode, {k: round(v, 1) for k, v in block._asdict().items()}, file=sys.stderr)
                yield mode, block


def reload(daemon: DaemonProcess, mode: str) -> None:
    """Make the daemon reload its configuration."""
    if daemon.process is not None:
        daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_until(mode, lambda status: bool(status["mode"] == mode))


def summary(found: list[tuple[str, Block]]) -> dict[str, Any]:
    """Return the means of both, and the paired differences with a 95 % t interval."""
    by_mode = {mode: [b for m, b in found if m == mode] for mode in ("shadow", "active")}
    means: dict[str, Any] = {"pairs": len(by_mode["active"])}
    for figure in ("badput_s", "goodput_s", "badput_ratio", "evictions", "done", "turnaround_s"):
        own = [float(getattr(block, figure)) for block in by_mode["shadow"]]
        acting = [float(getattr(block, figure)) for block in by_mode["active"]]
        differences = [b - a for a, b in zip(own, acting, strict=True)]
        means[figure] = {"own": mean(own), "active": mean(acting), "difference": mean(differences)}
        if len(differences) > 1:
            half = _T95[min(len(differences) - 1, len(_T95)) - 1] * stdev(differences)
            means[figure]["half_width"] = half / len(differences) ** 0.5
    return means


_T95 = (12.7, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14)
"""Student's t for 95 %, by degrees of freedom from 1."""


def main() -> int:
    """Measure, print and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--policy", default="survival")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--block-s", type=float, default=900.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parsed(parser, blocks=2, block_s=20.0)
    missing = missing_reason()
    if missing is not None:
        print(f"not measured: {missing}", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with acting_pool(folder / "pool", MACHINES) as pool:
            add_outrider(pool, folder)
            pool.submit("executable = /bin/true\nqueue\n")  # creates the event log
            figures = summary(list(blocks(pool, folder, options)))
    figures |= {"policy": options.policy, "block_s": options.block_s}
    if options.json:
        print(json.dumps(figures))
    else:
        for figure, found in figures.items():
            if isinstance(found, dict):
                spread = f" +- {found['half_width']:.3g}" if "half_width" in found else ""
                print(f"{figure}: own {found['own']:.3g}, {options.policy} {found['active']:.3g}, "
                      f"difference {found['difference']:.3g}{spread}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
