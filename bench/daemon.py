"""Resource use of the daemon: idle, with 10,000 jobs known, at 1,000 events per second, at start.

    python bench/daemon.py [--jobs 10000] [--rate 1000] [--seconds 20] [--idle 30]
        [--settle 8] [--versions 9] [--small] [--json]

Real daemons (``outrider run``, the bandit in shadow) read HTCondor event logs in a temporary
folder. They are queried over HTTP, as Prometheus does. Linux only: CPU and memory are read from
``/proc``.
"""

import argparse
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from calibration import calibration_s
from options import parsed

LOG_WRITER = Path(__file__).parent.parent / "tests" / "service" / "restarting" / "log_writer.py"
OUTRIDER = Path(sys.executable).with_name("outrider")
URL = re.compile(r"daemon_started.*?url=(\S+)|\"url\": ?\"http://([^\"]+)\"")
CONFIG = """\
state_dir = "{folder}/state"
listen = "127.0.0.1:0"
snapshot_every_s = {snapshot_every_s}

[adapters.log]
type = "logtail"
paths = ["{log}"]
start_at = "beginning"

[policies.bandit]
"""
BUDGETS = {
    "idle_cpu_ratio": 0.01,
    "idle_rss_mb": 150.0,
    "known_rss_mb": 150.0,
    "ready_s": 5.0,
    "loop_lag_ms": 20.0,
    "version_to_pass_ratio": 6.0,
}
RUNNING_RATIO = 0.05
PROBE_EVERY_S = 0.002
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Daemon:
    """A process ``outrider run`` that reads ``events.log`` in a folder."""

    def __init__(self, folder: Path, snapshot_every_s: float) -> None:
        self.config = folder / "outrider.toml"
        self.output = folder / "output.log"
        self.config.write_text(
            CONFIG.format(
                folder=folder, log=folder / "events.log", snapshot_every_s=snapshot_every_s
            )
        )
        self.ready_s = 0.0

    def start(self) -> None:
        """Start the process and wait until it is ready; set `ready_s` to the time taken."""
        began_s = time.perf_counter()
        command: list[str | Path] = [OUTRIDER, "run", "--config", self.config]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)
        while (found := URL.search(self.output.read_text(errors="replace"))) is None:
            self._check(began_s)
        self.address = (found[1] or found[2]).removeprefix("http://")
        while not self.get("/readyz")["ready"]:
            self._check(began_s)
        self.ready_s = time.perf_counter() - began_s

    def _check(self, began_s: float) -> None:
        if self.process.poll() is not None or time.perf_counter() - began_s > 60.0:
            raise SystemExit(f"the daemon is not ready:\n{self.output.read_text()[-3000:]}")
        time.sleep(0.005)

    def stop(self) -> None:
        """Stop the process as systemd does."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)

    def text(self, path: str) -> str:
        """Return the answer of a path, also of an HTTP error."""
        connection = http.client.HTTPConnection(self.address, timeout=30)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """Return the JSON answer of a path."""
        return json.loads(self.text(path))

    def cpu_s(self) -> float:
        """Return the CPU seconds used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def memory_mb(self, what: str = "VmRSS") -> float:
        """Return the resident memory in MiB; `VmHWM` is its peak."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"{what}:\s+(\d+) kB", status)
        if found is None:
            raise SystemExit(f"/proc/{self.process.pid}/status contains no {what}")
        return int(found[1]) / 1024


@contextmanager
def running(folder: Path, snapshot_every_s: float = 3.0) -> Iterator[Daemon]:
    """Run a daemon, by default with frequent snapshots, and stop it afterwards."""
    daemon = Daemon(folder, snapshot_every_s)
    try:
        daemon.start()
        yield daemon
    finally:
        if daemon.process.poll() is None:
            daemon.stop()


def write_known_jobs(log: Path, jobs: int) -> None:
    """Write a log of jobs submitted in the last hour, one in twenty of them running."""
    began = datetime.now(UTC) - timedelta(hours=1)
    lines = []
    for job in range(jobs):
        when = began + timedelta(seconds=3000.0 * job / jobs)
        lines.append(_record("000", job, when, "Job submitted from host: <10.0.0.200:9618>"))
    for job in range(int(jobs * RUNNING_RATIO)):
        when = began + timedelta(seconds=3001)
        host = f"<10.1.{job // 250}.{job % 250}:9618>"
        lines.append(_record("001", job, when, f"Job executing on host: {host}"))
    log.write_text("".join(lines), encoding="utf-8")


def _record(code: str, job: int, when: datetime, text: str) -> str:
    stamp = when.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
    return f"{code} ({700_000 + job}.000.000) {stamp} {text}\n...\n"


def wait_for_jobs(daemon: Daemon, jobs: int) -> None:
    """Wait until the daemon knows this number of jobs."""
    until_s = time.monotonic() + 60.0
    while daemon.get("/api/v1/status")["jobs"]["submitted"] < jobs:
        if time.monotonic() > until_s:
            raise SystemExit(f"not {jobs} jobs within a minute: {daemon.get('/api/v1/status')}")
        time.sleep(0.2)


def measure_idle(folder: Path, seconds: float, settle_s: float) -> dict[str, float]:
    """Measure a daemon whose log does not change."""
    (folder / "events.log").touch()
    with running(folder) as daemon:
        time.sleep(settle_s)  # wait for the first snapshot
        before_s = daemon.cpu_s()
        time.sleep(seconds)
        return {
            "idle_cpu_ratio": (daemon.cpu_s() - before_s) / seconds,
            "idle_rss_mb": daemon.memory_mb(),
            "first_ready_s": daemon.ready_s,
        }


def measure_load(
    folder: Path, jobs: int, rate: int, seconds: float, settle_s: float
) -> dict[str, Any]:
    """Measure a daemon with known jobs: memory, load of new events, and a restart."""
    log = folder / "events.log"
    write_known_jobs(log, jobs)
    with running(folder) as daemon:
        wait_for_jobs(daemon, jobs)
        time.sleep(settle_s)  # two snapshots
        found: dict[str, Any] = {"known_rss_mb": daemon.memory_mb()}
        found |= {f"quiet_{k}": v for k, v in _probe(daemon, seconds / 4).items()}
        writer = subprocess.Popen(
            [sys.executable, LOG_WRITER, log, folder / "counts", "1", str(rate), str(seconds)]
        )
        before_s = daemon.cpu_s()
        found |= _probe(daemon, seconds)
        found["loaded_cpu_ratio"] = (daemon.cpu_s() - before_s) / seconds
        writer.wait(60)
        found["peak_rss_mb"] = daemon.memory_mb("VmHWM")
        status = daemon.get("/api/v1/status")
        found["jobs_known"] = status["jobs"]["queued"] + status["jobs"]["running"]
        found["series"] = sum(
            not line.startswith("#") for line in daemon.text("/metrics").splitlines()
        )
        daemon.stop()
        daemon.start()
        found["ready_s"] = daemon.ready_s
        daemon.process.kill()
        daemon.process.wait()
        daemon.start()
        found["ready_after_kill_s"] = daemon.ready_s
    return found


def _probe(daemon: Daemon, seconds: float) -> dict[str, float]:
    """Scrape and get the status every second, and a health check every few milliseconds.

    The daemon itself reports its loop lag (`loop_lag_ms`), but measures only twice a second. A
    health check is answered when the loop is free: the longest answers show every block, and other
    load of the machine.
    """
    lags, knocks, scrapes, statuses = [], [], [], []
    connection = http.client.HTTPConnection(daemon.address, timeout=30)
    end_s = time.monotonic() + seconds
    ask_s = time.monotonic()
    daemon.text("/metrics")
    while time.monotonic() < end_s:
        if time.monotonic() >= ask_s:
            ask_s += 1.0
            began_s = time.perf_counter()
            page = daemon.text("/metrics")
            scrapes.append(time.perf_counter() - began_s)
            lags.append(
                float(re.findall(r"^outrider_loop_lag_seconds (\S+)", page, re.MULTILINE)[0])
            )
            began_s = time.perf_counter()
            daemon.text("/api/v1/status")
            statuses.append(time.perf_counter() - began_s)
        began_s = time.perf_counter()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        knocks.append(time.perf_counter() - began_s)
        time.sleep(PROBE_EVERY_S)
    connection.close()
    knocks.sort()
    return {
        "loop_lag_ms": 1e3 * max(lags),
        "knock_p50_ms": 1e3 * statistics.median(knocks),
        "knock_p99_ms": 1e3 * knocks[int(len(knocks) * 0.99)],
        "knock_max_ms": 1e3 * knocks[-1],
        "knocks_over_20_ms": sum(knock > 0.020 for knock in knocks),
        "knocks": len(knocks),
        "scrape_p50_ms": 1e3 * statistics.median(scrapes),
        "status_p50_ms": 1e3 * statistics.median(statuses),
    }


def measure_version(rounds: int) -> dict[str, float]:
    """Measure ``outrider --version`` and ``python -c pass`` in turns."""
    version: list[float] = []
    nothing: list[float] = []
    turns = (([str(OUTRIDER), "--version"], version), ([sys.executable, "-c", "pass"], nothing))
    for _ in range(rounds):
        for command, spent in turns:
            began_s = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            spent.append(time.perf_counter() - began_s)
    ratio = statistics.median(version) / statistics.median(nothing)
    return {"version_ms": 1e3 * statistics.median(version), "version_to_pass_ratio": ratio}


def main() -> int:
    """Measure, print, and return 1 if something is over budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000, help="known jobs")
    parser.add_argument("--rate", type=int, default=1_000, help="events per second")
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="seconds during which they arrive"
    )
    parser.add_argument("--idle", type=float, default=30.0, help="seconds of idling")
    parser.add_argument("--settle", type=float, default=8.0, help="seconds before each measurement")
    parser.add_argument("--versions", type=int, default=9, help="starts of `outrider --version`")
    given = parsed(parser, jobs=100, rate=50, seconds=2.0, idle=0.5, settle=0.5, versions=1)
    found: dict[str, Any] = {"jobs": given.jobs, "rate": given.rate}
    found["calibration_s"] = calibration_s()
    found |= measure_version(given.versions)
    for measure in (
        lambda folder: measure_idle(folder, given.idle, given.settle),
        lambda folder: measure_load(folder, given.jobs, given.rate, given.seconds, given.settle),
    ):
        with tempfile.TemporaryDirectory(prefix="outrider-bench-") as folder:
            found |= measure(Path(folder))
    found["over_budget"] = [name for name, most in BUDGETS.items() if found[name] >= most]
    if given.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            budget = f"  budget {BUDGETS[name]:g}" if name in BUDGETS else ""
            shown = f"{value:.4g}" if isinstance(value, float) else value
            print(f"{name:24} {shown}{budget}")
    return 1 if found["over_budget"] else 0


if __name__ == "__main__":
    sys.exit(main())
