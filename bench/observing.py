"""Cost of watching an HTCondor pool: CPU shares of Outrider, schedd and collector.

The pool runs on the loopback, with an idle queue of thousands of jobs of thirty kinds, thousands of
made-up slots in its collector, and four real machines that run short jobs. First it runs alone,
then a daemon in shadow watches it with the adapter `htcondor` in its default settings, through its
event log or its queue alone. Shares are CPU time / wall time; compare those of schedd and collector
with and without the daemon.

    python bench/observing.py [--jobs 10000] [--slots 5000] [--seconds 600] [--queue-alone] [--json]

Needs root and a pool (make peers). Exit code 1 if Outrider uses more than 1 % of a core.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from calibration import calibration_s
from options import parsed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.peers.pool import HTCondorPool, missing_reason
from tests.peers.test_htcondor_adapter import CLIENT
from tests.service.running.process import DaemonProcess

BUDGET = 0.01
KINDS = 30
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
CALMER = """\
NEGOTIATOR_INTERVAL = 60
NEGOTIATOR_MIN_INTERVAL = 20
NEGOTIATOR_CYCLE_DELAY = 20
SCHEDD_INTERVAL = 60
CLASSAD_LIFETIME = 86400
"""
"""Intervals of an ordinary pool; the tests' pool negotiates every second."""

CONFIG = """\
mode = "shadow"
state_dir = "{state}"
listen = "127.0.0.1:0"

[adapters.htcondor]
collector = "{collector}"
{logs}

[policies.bandit]
"""


def processes(pool: HTCondorPool) -> dict[str, int]:
    """Return the pids of the pool's schedd and collector."""
    parents: dict[int, tuple[int, str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, name, rest = re.fullmatch(r"(\d+) \((.*)\) (.*)\n", stat.read_text()).groups()  # type: ignore[union-attr]
        except (OSError, AttributeError):
            continue
        parents[int(pid)] = int(rest.split()[1]), name
    root = int((pool.run_dir / "pid").read_text())

    def is_ours(pid: int) -> bool:
        while pid in parents and pid != root:
            pid = parents[pid][0]
        return pid == root

    wanted = {"condor_schedd": "schedd", "condor_collecto": "collector"}
    found = {}
    for pid, (parent, name) in parents.items():
        is_helper = parents.get(parent, (0, ""))[1] == name  # forked for a query
        if name in wanted and is_ours(pid) and not is_helper:
            found[wanted[name]] = pid
    return found


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process until now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def shares(pids: dict[str, int], seconds: float) -> dict[str, float]:
    """Return the share of a core that processes use during this many seconds."""
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    began_s = time.monotonic()
    time.sleep(seconds)
    passed_s = time.monotonic() - began_s
    return {name: (cpu_s(pid) - before[name]) / passed_s for name, pid in pids.items()}


def fill(pool: HTCondorPool, jobs: int, slots: int) -> None:
    """Queue jobs that no machine takes, and short ones; advertise slots that take none."""
    (pool.run_dir / "config" / "99-calmer.config").write_text(CALMER)
    pool.run("root", "condor_reconfig")
    for kind in range(KINDS):
        memory = 900_000 + kind
        text = f"executable = /bin/true\nrequest_memory = {memory}\nqueue {jobs // KINDS}\n"
        pool.submit(text, "alice" if kind % 2 else "bob")
    pool.submit_sleepers(400, 20)
    one = pool.run(
        "root", "condor_status", "-long", "-constraint", 'Name == "slot1@m1@host.pool.test"'
    )
    made = []
    for n in range(slots):
        ad = re.sub(
            r"^(Name|Machine) = .*$",
            rf'\1 = "slot1@w{n}.pool.test"',
            one.strip(),
            flags=re.MULTILINE,
        )
        ad = re.sub(r"^Memory = .*$", f"Memory = {1000 + n % 20}", ad, flags=re.MULTILINE)
        made.append(re.sub(r"^Start = .*$", "Start = TARGET.Never is true", ad, flags=re.MULTILINE))
    (pool.work_dir / "slots.txt").write_text("\n\n".join(made) + "\n")
    pool.run("root", "condor_advertise", "-multiple", "UPDATE_STARTD_AD", "/home/work/slots.txt")


def main() -> int:
    """Measure, print, and return 1 if over budget."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=600.0, help="of watching")
    parser.add_argument("--queue-alone", action="store_true", help="without the event log")
    options = parsed(parser, jobs=300, slots=50, seconds=3.0)
    missing = missing_reason()
    if missing is not None:
        print(f"not measured: {missing}", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as name, HTCondorPool(Path(name) / "pool") as pool:
        folder = Path(name)
        fill(pool, options.jobs, options.slots)
        time.sleep(min(60.0, options.seconds))
        pids = processes(pool)
        alone = shares(pids, options.seconds / 3)
        (folder / "condor_config").write_text(CLIENT)
        config = folder / "outrider.toml"
        logs = (
            ""
            if options.queue_alone
            else f'event_logs = {{ "host.pool.test" = "{pool.event_log}" }}'
        )
        config.write_text(
            CONFIG.format(state=folder / "state", collector=pool.collector, logs=logs)
        )
        environment = {"CONDOR_CONFIG": str(folder / "condor_config")}
        with DaemonProcess(config, environment) as daemon:
            daemon.wait_until(
                "the queue", lambda s: s["jobs"]["queued"] >= options.jobs // KINDS * KINDS
            )
            time.sleep(min(30.0, options.seconds))
            assert daemon.process is not None
            ours = {"daemon": daemon.process.pid}
            ours |= {f"asking {n}": pid for n, pid in enumerate(children(daemon.process.pid))}
            watched = shares(pids | ours, options.seconds)
            status = daemon.status()
            daemon.stop()
    figures = {
        "jobs_queued": status["jobs"]["queued"],
        "machines": sum(cluster["machines"] for cluster in status["clusters"]),
        "outrider": sum(watched[name] for name in ours),
        **{name: watched[name] for name in ours},
        **{f"{name} alone": alone[name] for name in pids},
        **{f"{name} watched": watched[name] for name in pids},
        "budget": BUDGET,
        "calibration_s": calibration_s(),
    }
    if options.json:
        print(json.dumps(figures))
    else:
        for what, value in figures.items():
            print(f"{what:<20} {value:,.4f}")
    return 0 if options.small or figures["outrider"] <= BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
