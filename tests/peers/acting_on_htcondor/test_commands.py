"""Tests of commands to a daemon that acts on a real pool: immediate, and recorded."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from outrider.model.settings import toml_text
from tests.cli.running import Done, shell
from tests.peers.acting_on_htcondor.acting_pool import (
    SLEEP,
    acting_daemon,
    after_a_cycle,
    leased,
    queue,
)
from tests.peers.pool import HTCondorPool
from tests.service.running.process import DaemonProcess

pytestmark = pytest.mark.htcondor


@contextmanager
def commanded(pool: HTCondorPool, folder: Path, **acting: Any) -> Iterator[DaemonProcess]:
    """A daemon with a socket that keeps three jobs of alice in the queue."""
    daemon = acting_daemon(pool, folder)
    with TemporaryDirectory(prefix="o") as short:
        more = "".join(f"{key} = {toml_text(value)}\n" for key, value in acting.items())
        text = f'socket = "{short}/s"\n{daemon.config.read_text()}{more}'
        daemon.config.write_text(text)
        with daemon:
            daemon.wait_until("machines", lambda s: sum(c["machines"] for c in s["clusters"]) == 4)
            after_a_cycle(pool)
            for _ in range(3):
                pool.submit(f"{SLEEP}queue\n", "alice")
            leased(pool, 3)
            yield daemon


def command(daemon: DaemonProcess, *words: str) -> Done:
    return shell(*words, "--config", str(daemon.config), **daemon.environ)


def test_the_mode_is_lowered_and_every_job_is_as_it_was_submitted(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    with commanded(pool, tmp_path) as daemon:
        said = command(daemon, "mode", "shadow", "--why", "a look at it")
        assert said.code == 0, said
        assert "changes for 3 jobs were reverted" in said.out
        assert set(queue(pool, "OutriderUntil").values()) == {"0"}
        status = daemon.status()
        assert (status["mode"], status["configured_mode"]) == ("shadow", "active")
        pool.submit(f"{SLEEP}queue\n", "alice")
        pool.wait_until("their runs", lambda: set(queue(pool, "JobStatus").values()) == {"2"})
        said = command(daemon, "promote")
        assert said.code == 1
        assert "(promote_after_s)" in said.out, "a minute in shadow is no evidence"
        daemon.kill()
        daemon.start()
        assert daemon.status()["mode"] == "shadow"
        assert daemon.status()["levers"] == []


def test_release_takes_back_all_and_promote_lets_it_act_again(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    with commanded(pool, tmp_path, promote_after_s=0.0, promote_by_twin=False) as daemon:
        said = command(daemon, "release")
        assert said.code == 0, said
        assert said.out.splitlines()[:2] == ["by the running daemon:", "release: done"]
        assert "htcondor: leased_attributes: reverted for " in said.out
        assert set(queue(pool, "OutriderUntil").values()) == {"0"}
        for step in ("canary", "active"):
            said = command(daemon, "promote")
            assert f"and is {step}" in said.out, said
        assert daemon.status()["mode"] == "active"
        told = [row["command"] for row in daemon.status()["commands"]]
        assert told == ["promote", "promote", "release", "configuration"]
        assert daemon.stop() == 0
