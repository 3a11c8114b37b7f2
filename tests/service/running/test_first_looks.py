"""The first look at a batch system is its present state, however slow and late it is."""

import os
from pathlib import Path

from tests.service.running.small_site import LOG_TABLE, SmallSite
from tests.service.running.test_reload import reload

MODULE = '''\
"""A batch system whose first answer takes its time."""

import time

from outrider.api import Batch, JobSpec, MachineSpec, events
from outrider_adapters.polling import PollingAdapter


class SlowBoard(PollingAdapter):
    """A machine, on which a job has run for an hour, and a job that waits."""

    name = "slow_board"
    description = "takes its time for its first answer"
    api_version = 1
    sees = ("joined", "submitted", "started")

    def begin(self, cursor):
        self.looks = 0
        time.sleep(TAKES_S)

    def look(self):
        self.looks += 1
        now_s = time.time()
        first = [
            (now_s - 3700.0, events.SUBMITTED, "runs", JobSpec(user="alice")),
            (now_s - 3600.0, events.SUBMITTED, "waits", JobSpec(user="alice")),
            (now_s - 3600.0, events.JOINED, "m1", MachineSpec()),
            (now_s - 3600.0, events.STARTED, "runs", ("m1", 1)),
        ]
        if self.looks > 1:
            return Batch(events=[], cursor={}, seen_until_s=now_s)
        return Batch(events=first, cursor={}, history=True, standing=True)

    def pause_s(self, batch):
        return 0.2

    def end(self):
        pass
'''
BOARD_TABLE = '\n[adapters.board]\ntype = "slow_board"\n'


def installed(folder: Path, takes_s: float = 5.0) -> dict[str, str]:
    """Return the environment in which a daemon finds the adapter."""
    (folder / "slow_board.py").write_text(MODULE.replace("TAKES_S", str(takes_s)))
    info = folder / "slow_board-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-board\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[outrider.adapters]\nslow_board=slow_board:SlowBoard\n")
    path = [str(folder), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(part for part in path if part)}


def test_what_stands_at_a_slow_first_look_is_known_and_does_not_count(tmp_path: Path) -> None:
    site = SmallSite(
        tmp_path, tables=BOARD_TABLE + "[policies.fifo]\n", environ=installed(tmp_path)
    )
    with site.daemon as daemon:
        status = daemon.wait_until("its look", lambda s: s["jobs"]["running"] == 1)
        assert (status["jobs"]["queued"], status["clusters"][0]["machines"]) == (1, 1)
        assert status["notes"] == []
        daemon.wait_until("that nothing has counted", lambda s: s["wait_s"]["all"]["n"] == 0)
        assert daemon.status()["jobs"]["running"] == 1


def test_what_stands_where_an_adapter_is_added_to_a_running_daemon_is_known_too(
    tmp_path: Path,
) -> None:
    policies = "[policies.fifo]\n"
    site = SmallSite(tmp_path, tables=LOG_TABLE + policies, environ=installed(tmp_path))
    site.log.run(range(1, 3))
    with site.daemon as daemon:
        daemon.wait_until("the log", lambda s: s["adapters"][0]["up"])
        site.configure(tables=LOG_TABLE + BOARD_TABLE + policies)
        reload(site, "config_reloaded")
        status = daemon.wait_until("its look", lambda s: s["jobs"]["running"] == 1)
        assert (status["jobs"]["queued"], status["notes"]) == (1, [])
        daemon.kill()
        daemon.start()
        daemon.wait_until("what it knew", lambda s: s["jobs"]["running"] == 1)
