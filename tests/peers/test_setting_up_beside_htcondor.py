"""Setting Outrider up beside a real pool: one table, its groups, and what its service needs."""

from pathlib import Path

import pytest

from tests.cli.running import shell
from tests.peers.pool import HTCondorPool
from tests.peers.test_htcondor_adapter import CLIENT
from tests.service.running.process import DaemonProcess

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor


@pytest.fixture
def environ(htcondor_pool: HTCondorPool, tmp_path: Path) -> dict[str, str]:
    """HTCondor's own configuration of a host in the pool; it names the collector."""
    config = tmp_path / "condor_config"
    config.write_text(f"{CLIENT}COLLECTOR_HOST = {htcondor_pool.collector}\n")
    return {"CONDOR_CONFIG": str(config)}


def test_the_adapters_table_alone_makes_a_daemon_in_shadow_that_decides(
    htcondor_pool: HTCondorPool, tmp_path: Path, environ: dict[str, str]
) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text(
        f'state_dir = "{tmp_path / "state"}"\nlisten = "127.0.0.1:0"\n[adapters.htcondor]\n'
    )
    with DaemonProcess(config, environ) as daemon:
        daemon.wait_until("machines", lambda s: sum(c["machines"] for c in s["clusters"]) == 4)
        htcondor_pool.submit_sleepers(2, 1.0)
        status = daemon.wait_until("decisions", lambda s: s["policies"][0]["decisions"] >= 2)
        assert (status["mode"], status["policies"][0]["name"]) == ("shadow", "bandit")
        assert {cluster["name"] for cluster in status["clusters"]} >= {"A", "B"}
        daemon.wait_until("ends", lambda s: s["jobs"]["completed"] == 2)
        assert daemon.stop() == 0


def test_groups_are_proposed_by_the_attribute_that_tells_them(
    htcondor_pool: HTCondorPool, tmp_path: Path, environ: dict[str, str]
) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text('[adapters.htcondor]\ncluster_attribute = "NotThere"\n')
    said = shell("doctor", "--suggest", "--config", config, **environ)
    assert said.code == 0, said
    proposed = tmp_path / "proposed.toml"
    proposed.write_text(said.out)
    told = shell("check-config", proposed, "--json", **environ).json()
    settings = told["adapters"]["htcondor"]["settings"]
    assert settings == {"cluster_attribute": "MachineCluster"}
    assert set(told["config"]["clusters"]) == {"A", "B"}
    config.write_text("[adapters.htcondor]\n")
    again = shell("doctor", "--suggest", "--config", config, **environ)
    grouped = "# 4 machines, grouped as the adapter reports them now.\n[adapters.htcondor]\n"
    assert grouped in again.out


def test_a_service_is_allowed_the_collector_the_logs_and_the_configuration(
    htcondor_pool: HTCondorPool, tmp_path: Path, environ: dict[str, str]
) -> None:
    config = tmp_path / "outrider.toml"
    log = htcondor_pool.event_log
    htcondor_pool.submit_sleepers(1, 0.1)
    htcondor_pool.wait_until("a log", log.exists)
    config.write_text(f'[adapters.htcondor]\nevent_logs = {{ "host.pool.test" = "{log}" }}\n')
    said = shell("install-service", "--config", config, "--dry-run", "--json", **environ).json()
    texts = {Path(path).name: text for path, text in said["texts"].items()}
    assert "50-network.conf" not in texts, "the pool is on loopback"
    assert f"Environment=CONDOR_CONFIG={environ['CONDOR_CONFIG']}" in texts["50-reading.conf"]
    assert f"BindReadOnlyPaths=-{log.parent}\n" in texts["50-reading.conf"]
    assert not [note for note in said["notes"] if "access points" in note]
