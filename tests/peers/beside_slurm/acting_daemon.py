"""Daemon that acts on a real Slurm of three nodes, and the state of its jobs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.peers.beside_slurm.watched import of_slurm
from tests.peers.plain_policies import install_policies
from tests.peers.slurm import Slurm
from tests.service.running.process import DaemonProcess

LEASE_S = 12
SLACK_S = 6
"""Seconds until a pass of the scheduler (`sched_interval`) notices that a time has come."""
CONFIG = """\
mode = "{mode}"
state_dir = "{state}"
listen = "127.0.0.1:0"
reconsider_s = 600.0
show_users = "everybody"

[adapters.slurm]
look_s = 1.0
nodes_s = 1.0
lease_s = {lease_s}
machine_clusters = {{ "n1" = "A", "n2" = "B", "n3" = "B" }}

[policies.{policy}]

[acting]
admission_control = true
canary_vos = ["bob"]
"""


@contextmanager
def acting(
    slurm: Slurm, folder: Path, mode: str = "active", policy: str = "by_user"
) -> Iterator[DaemonProcess]:
    """Provide a daemon that has seen the nodes."""
    config = folder / "outrider.toml"
    config.write_text(
        CONFIG.format(mode=mode, state=folder / "state", lease_s=LEASE_S, policy=policy)
    )
    with DaemonProcess(config, install_policies(folder)) as daemon:
        daemon.wait_until("the nodes", lambda s: sum(c["machines"] for c in s["clusters"]) == 3)
        yield daemon


def runs(slurm: Slurm, *jobs: str) -> bool:
    """Return whether all of these jobs run."""
    return all(of_slurm(slurm, job)["JobState"] == "RUNNING" for job in jobs)


def begins_s(slurm: Slurm, job: str) -> float:
    """Return when a job may begin."""
    return float(of_slurm(slurm, job)["EligibleTime"])


def kept(daemon: DaemonProcess, n: int) -> None:
    """Wait until this many jobs are deferred."""
    daemon.wait_until(f"{n} leases", lambda s: s["levers"][0]["standing"]["defer"] == n)
