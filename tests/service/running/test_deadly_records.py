"""A record that ends the daemon, or holds it until the watchdog does, costs three restarts."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.service.running.small_site import SmallSite
from tests.service.running.test_stopping import Manager, manager

__all__ = ["manager"]

READER = """\
import ctypes, os, signal
from outrider_adapters.readers.htcondor import HTCondorLogReader

class Reader(HTCondorLogReader):
    name = "deadly"
    api_version = 1
    def read(self, data, final=False):
        if b"DIES" in data:
            os.kill(os.getpid(), signal.SIGKILL)
        if b"BLOCKS" in data:
            ctypes.PyDLL(None).sleep(3600)  # no other thread runs: it keeps the interpreter's lock
        return super().read(data, final)
"""
TABLE = """
[adapters.log]
type = "logtail"
paths = ["{log}"]
format = "deadly"
start_at = "beginning"
poll_s = 0.1
settle_s = 0.1
"""
WATCHDOG_S = 2.0
SURVIVES_S = 8.0


def made_site(tmp_path: Path, manager: Manager) -> SmallSite:
    (tmp_path / "deadly.py").write_text(READER)
    information = tmp_path / "deadly-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[outrider.readers]\ndeadly = deadly:Reader\n")
    environ = {
        "NOTIFY_SOCKET": str(manager.path),
        "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6)),
        "PYTHONPATH": f"{tmp_path}:{':'.join(p for p in sys.path if p)}",
    }
    return SmallSite(tmp_path, tables=TABLE, environ=environ)


def lives(process: "subprocess.Popen[bytes]", manager: Manager) -> bool:
    """Return whether it lives on; it is ended as systemd does it once the watchdog is not fed."""
    began_s = time.monotonic()
    while process.poll() is None:
        manager.listen(0.2)
        fed_s = [s for s, facts in manager.heard if "WATCHDOG" in facts and s > began_s]
        now_s = time.monotonic()
        if fed_s and now_s - fed_s[-1] > 2 * WATCHDOG_S:
            process.kill()
            process.wait()
        elif fed_s and now_s - fed_s[0] > SURVIVES_S and now_s - fed_s[-1] < WATCHDOG_S:
            return True
        assert now_s - began_s < 60, "it never came up"
    return False


@pytest.mark.parametrize("deed", ["DIES", "BLOCKS"])
def test_what_ended_the_daemon_three_times_is_passed_over_and_counted(
    tmp_path: Path, manager: Manager, deed: str
) -> None:
    site = made_site(tmp_path, manager)
    poison = f"008 (000.000.000) 2026-11-21 03:17:00 {deed}\n...\n".encode()
    site.log.run(range(1, 20))
    site.log.raw(poison)
    site.log.run(range(20, 30))
    site.log.raw(poison)
    site.log.run(range(30, 40))
    deaths = 0
    daemon = site.daemon
    try:
        while not lives(daemon.spawn(), manager):
            deaths += 1
            assert deaths <= 6, "each of the two may cost three restarts"
        assert daemon.stop() == 0
        daemon.start()
        status = site.wait_until_applied()
        source = status["adapters"][0]
        assert daemon.stop() == 0
    finally:
        daemon.__exit__(None, None, None)
    assert deaths in (5, 6)
    assert source["rejected"] == {"cost_a_restart": 2}, source
    assert source["duplicates"] == 0
    assert site.recorded() == site.log.counts
    note = json.loads((site.state / "in-progress-log.json").read_text().splitlines()[0])
    assert note["reading"] is None
    assert len(note["holes"]) == 2
