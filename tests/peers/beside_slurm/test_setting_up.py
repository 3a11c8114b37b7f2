"""Tests of the set-up next to a real Slurm: one table, its groups, and its service's needs."""

import os
from pathlib import Path

import pytest

from tests.cli.running import shell
from tests.peers.beside_slurm.watched import submit
from tests.peers.slurm import Slurm
from tests.service.running.process import DaemonProcess

pytestmark = pytest.mark.slurm


def test_the_adapters_table_alone_makes_a_daemon_in_shadow_that_decides(
    slurm: Slurm, folder: Path, tmp_path: Path
) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text(
        f'state_dir = "{tmp_path / "state"}"\nlisten = "127.0.0.1:0"\n[adapters.slurm]\n'
    )
    with DaemonProcess(config) as daemon:
        daemon.wait_until("the nodes", lambda s: sum(c["machines"] for c in s["clusters"]) == 3)
        submit(slurm, folder, sleep_s=1)
        status = daemon.wait_until("a decision", lambda s: s["policies"][0]["decisions"] >= 1)
        assert (status["mode"], status["policies"][0]["name"]) == ("shadow", "bandit")
        assert daemon.stop() == 0


def test_partitions_are_the_groups_that_are_proposed(slurm: Slurm, tmp_path: Path) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text("[adapters.slurm]\n")
    message = shell("doctor", "--suggest", "--config", config)
    assert message.code == 0, message
    proposed = tmp_path / "proposed.toml"
    proposed.write_text(message.out)
    reported = shell("check-config", proposed, "--json").json()
    grouped = "# 3 machines, grouped as the adapter reports them now.\n[adapters.slurm]\n"
    assert grouped in message.out
    shown = slurm.run("scontrol", "show", "node", "-o")
    first = {line.partition("Partitions=")[2].split(",")[0].split()[0]
             for line in shown.splitlines() if "Partitions=" in line}  # fmt: skip
    assert set(reported["config"]["clusters"]) == first


def test_a_service_is_allowed_slurms_configuration(slurm: Slurm, tmp_path: Path) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text("[adapters.slurm]\n")
    message = shell("install-service", "--config", config, "--dry-run", "--json").json()
    reading = message["texts"]["/etc/systemd/system/outrider.service.d/50-reading.conf"]
    assert f"Environment=SLURM_CONF={os.environ['SLURM_CONF']}\n" in reading
    assert not [path for path in message["texts"] if path.endswith("network.conf")], "on loopback"
    assert not [note for note in message["notes"] if "controllers" in note]
