"""Tests of one site with an HTCondor pool and a Slurm: each job by its own levers."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.peers import pool as pools
from tests.peers import slurm as slurms
from tests.peers.acting_on_htcondor.acting_pool import (
    SLEEP,
    acting_pool,
    add_outrider,
    after_a_cycle,
    client_config,
    queue,
    running,
)
from tests.peers.beside_slurm.watched import of_slurm, submit, unlike_nodes
from tests.peers.plain_policies import install_policies
from tests.peers.pool import HTCondorPool
from tests.peers.presence import require_peer
from tests.peers.slurm import Slurm
from tests.service.running.process import DaemonProcess

pytestmark = [pytest.mark.htcondor, pytest.mark.slurm]

CONFIG = """\
mode = "active"
state_dir = "{state}"
listen = "127.0.0.1:0"
show_users = "everybody"

[adapters.pool]
type = "htcondor"
collector = "{collector}"
event_logs = {{ "host.pool.test" = "{log}" }}
look_s = 1.0
lease_s = 30

[adapters.cluster]
type = "slurm"
look_s = 1.0
nodes_s = 1.0
lease_s = 30

[policies.by_user]

[acting]
admission_control = true
"""


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    """Provide a real Slurm with nodes of several sizes."""
    require_peer("Slurm", slurms.missing_reason())
    (tmp_path / "slurm").mkdir()
    with unlike_nodes(tmp_path / "slurm") as running_slurm, pytest.MonkeyPatch.context() as patch:
        for name, value in running_slurm.environment.items():
            patch.setenv(name, value)
        patch.setenv("SLURM_TIME_FORMAT", "%s")
        yield running_slurm


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[HTCondorPool]:
    """Provide a real pool in which leases are installed."""
    pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
    require_peer("HTCondor pool", pools.missing_reason())
    with acting_pool(tmp_path / "pool") as made:
        add_outrider(made, tmp_path)
        made.submit("executable = /bin/true\nqueue\n")  # with it the event log begins
        made.wait_until("its end", lambda: not queue(made, "JobStatus"))
        yield made


def test_each_system_is_acted_on_by_its_own_levers_and_nothing_is_mixed_up(
    slurm: Slurm, pool: HTCondorPool, tmp_path: Path
) -> None:
    config = tmp_path / "outrider.toml"
    log, state = pool.event_log, tmp_path / "state"
    config.write_text(CONFIG.format(state=state, collector=pool.collector, log=log))
    environ = install_policies(tmp_path)
    environ["CONDOR_CONFIG"] = str(client_config(pool, tmp_path, "outrider"))
    fillers = [submit(slurm, tmp_path / "slurm", "-N1", "--exclusive", sleep_s=600)
               for _ in range(3)]  # fmt: skip
    slurm.wait_until("full nodes", lambda: len(slurm.jobs("R")) == 3)
    with DaemonProcess(config, environ) as daemon:
        daemon.wait_until("machines", lambda s: sum(c["machines"] for c in s["clusters"]) == 7)
        after_a_cycle(pool)
        condor_job = pool.submit(f"{SLEEP}queue\n", "alice")
        slurm_job = submit(slurm, tmp_path / "slurm", "-A", "alice", sleep_s=600)
        status = daemon.wait_until(
            "two deferrals",
            lambda s: [lever["standing"]["defer"] for lever in s["levers"]] == [1, 1],
        )
        slurm.run("scancel", *fillers)
        slurm.wait_until("free nodes", lambda: not slurm.jobs("R", "CG"))
        assert [lever["adapter"] for lever in status["levers"]] == ["pool", "cluster"]
        assert [lever["changes"]["refused"] for lever in status["levers"]] == [0, 0]
        assert queue(pool, "OutriderHold")[condor_job] == "true"
        for name in (f"host.pool.test#{condor_job}.0", f"outrider:{slurm_job}"):
            reported = daemon.get(f"/api/v1/explain/{quote(name, safe='')}")
            assert reported["lease"]["action"] == "defer"
        daemon.kill()
    pool.wait_until("the pool's run", lambda: running(pool) == {condor_job}, 120.0)
    slurm.wait_until(
        "Slurm's run", lambda: of_slurm(slurm, slurm_job)["JobState"] == "RUNNING", 60.0
    )
