"""The stop of the daemon, its messages to systemd, and the mode in each log line."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.service import restarting
from tests.service.running.small_site import LOG_TABLE, SmallSite

WRITER = Path(restarting.__file__).with_name("log_writer.py")
WATCHDOG_S = 1.0


class Manager:
    """The service manager's end of NOTIFY_SOCKET: a real datagram socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.heard: list[tuple[float, dict[str, str]]] = []
        self._read = 0

    def listen(self, for_s: float) -> None:
        """Receive the messages within so many seconds."""
        until_s = time.monotonic() + for_s
        while (left_s := until_s - time.monotonic()) > 0:
            self.socket.settimeout(left_s)
            with contextlib.suppress(TimeoutError):
                text = self.socket.recv(65_536).decode()
                facts = dict(line.split("=", 1) for line in text.splitlines())
                self.heard.append((time.monotonic(), facts))

    def wait_for(self, key: str, within_s: float = 15.0) -> dict[str, str]:
        """Return the next message with a key, after those returned before."""
        until_s = time.monotonic() + within_s
        while True:
            for n, (_, facts) in enumerate(self.heard[self._read :], self._read + 1):
                if key in facts:
                    self._read = n
                    return facts
            assert time.monotonic() < until_s, f"no {key} within {within_s:g} s: {self.heard}"
            self.listen(0.1)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    """A fake service manager: its socket and the messages received."""
    made = Manager(tmp_path / "notify")
    yield made
    made.socket.close()


def test_the_service_manager_hears_of_start_reload_watchdog_and_stop(
    tmp_path: Path, manager: Manager
) -> None:
    environ = {"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))}
    site = SmallSite(tmp_path, environ=environ)
    site.log.submit(1)
    with site.daemon as daemon:
        first = manager.wait_for("READY")
        assert first["STATUS"] == "shadow: watching log"
        assert daemon.get("/healthz") == {"ok": True}  # it was ready when it reported that
        for _ in range(10):
            status = manager.wait_for("STATUS")["STATUS"]
            if not status.startswith("shadow: No data yet"):  # the first batch is on its way
                break
        assert status.startswith("shadow since ")
        assert status.endswith("saving: not estimated yet")
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGHUP)
        assert int(manager.wait_for("RELOADING")["MONOTONIC_USEC"]) > 0
        assert manager.wait_for("READY")["STATUS"] == "shadow: configuration reloaded"
        manager.listen(3 * WATCHDOG_S)
        alive = [at_s for at_s, facts in manager.heard if "WATCHDOG" in facts]
        gaps = [late - early for early, late in pairwise(alive)]
        assert len(gaps) >= 4
        assert max(gaps) < WATCHDOG_S
        assert daemon.stop() == 0
        assert manager.wait_for("STOPPING")["STATUS"] == "stop requested"


def test_a_loop_that_is_blocked_no_longer_feeds_the_watchdog(
    tmp_path: Path, manager: Manager
) -> None:
    (tmp_path / "blocking.py").write_text(
        "import time\n"
        "from outrider.api import Choice, Policy\n\n"
        "class Blocking(Policy):\n"
        "    name = 'blocking'\n"
        "    description = 'never comes back'\n"
        "    api_version = 1\n\n"
        "    def choose(self, job, evaluation, view, may_defer):\n"
        "        time.sleep(60)\n"
        "        return Choice(view.draw(self.rng), 'late')\n"
    )
    information = tmp_path / "blocking-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: blocking\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[outrider.policies]\nblocking = blocking:Blocking\n"
    )
    environ = {
        "NOTIFY_SOCKET": str(manager.path),
        "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6)),
        "PYTHONPATH": f"{tmp_path}:{':'.join(p for p in sys.path if p)}",
    }
    site = SmallSite(tmp_path, tables=LOG_TABLE + "[policies.blocking]\n", environ=environ)
    with site.daemon:
        manager.wait_for("WATCHDOG")
        manager.wait_for("WATCHDOG")
        site.log.run([1])
        site.log.submit(2)  # a machine is known by now: this one has to be decided
        manager.listen(3.5)
        last_s = max(at_s for at_s, facts in manager.heard if "WATCHDOG" in facts)
        assert time.monotonic() - last_s > WATCHDOG_S


def test_it_stops_in_time_under_load_and_the_next_start_resumes(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.log.path.touch()
    counts = tmp_path / "counts.json"
    words = [sys.executable, WRITER, site.log.path, counts, 7, 1_250, 60]
    writer = subprocess.Popen([str(word) for word in words])
    try:
        with site.daemon as daemon:
            for _ in range(2):
                time.sleep(1.0)
                began = time.monotonic()
                assert daemon.stop() == 0
                assert time.monotonic() - began < 5.0
                daemon.start()
            writer.send_signal(signal.SIGTERM)
            assert writer.wait(30) == 0
            written = json.loads(counts.read_text())
            assert sum(written.values()) / written.pop("seconds") >= 1_000
            site.log.counts.update(written)
            status = site.wait_until_applied(within_s=40)
            assert status["adapters"][0]["duplicates"] == 0
            assert daemon.stop() == 0
    finally:
        writer.kill()
        writer.wait()
    assert site.recorded() == site.log.counts


@pytest.mark.parametrize("mode", ["observe", "shadow"])
def test_every_log_line_says_the_mode_and_only_shadow_decides(tmp_path: Path, mode: str) -> None:
    site = SmallSite(tmp_path, head=f'mode = "{mode}"\nlog_format = "json"\n')
    site.log.run([1, 2])
    site.log.raw(b"garbage\n...\n")
    with site.daemon as daemon:
        status = site.wait_until_applied()
        metrics = site.metrics()
        daemon.kill()
        daemon.start()
        assert daemon.stop() == 0
    lines = site.log_text().splitlines()
    assert len(lines) > 5
    assert [json.loads(line)["mode"] for line in lines] == [mode] * len(lines)
    decides = mode == "shadow"
    assert [p["name"] for p in status["policies"]] == (["bandit"] if decides else [])
    with site.journal() as journal:
        modes = {decision.mode for _, decision in journal.decisions()}
        assert bool(list(journal.outcomes())) == decides
    assert modes == ({mode} if decides else set())
    assert metrics[f'outrider_mode{{outrider_mode="{mode}"}}'] == 1
    assert metrics['outrider_events_total{adapter="log",kind="completed"}'] == 2
    waits = re.compile(r"outrider_job_wait_seconds_count\{.*\}")
    assert sum(n for name, n in metrics.items() if waits.fullmatch(name)) == 2
