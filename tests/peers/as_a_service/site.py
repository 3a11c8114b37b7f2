"""Small site in a machine: Slurm, munge and Mosquitto, installed from Debian's packages."""

import shutil
from typing import Final

from tests.peers.as_a_service.machine import Machine
from tests.peers.presence import PEERS_DIR

PACKAGES: Final = PEERS_DIR / "service-packages"
"""Folder of Debian's packages from `make peers`: they are installed in machines only."""
USER: Final = "svcalice"
MQTT_USER, MQTT_PASSWORD = "outrider", "0utr1der"
SLURM: Final = """\
ClusterName=site
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd-%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES MaxTime=1:00:00 State=UP
"""
MOSQUITTO: Final = """\
listener 1883 127.0.0.1
allow_anonymous false
password_file /etc/mosquitto/passwords
"""
UNITS: Final = ("munge.service", "slurmctld.service", "slurmd.service", "mosquitto.service")


def missing_reason() -> str | None:
    """Return which of Debian's packages is missing, or None if there are all."""
    for package in ("munge", "slurmctld", "slurmd", "slurm-client", "mosquitto"):
        if not list(PACKAGES.glob(f"{package}_*.deb")):
            return f"no package of {package} below {PACKAGES}"
    if shutil.which("dpkg") is None or shutil.which("mosquitto_sub") is None:
        return "dpkg or mosquitto_sub is not installed"
    return None


class Site:
    """Slurm with one node of two CPUs, and a broker with a password, in a booted machine."""

    def __init__(self, machine: Machine) -> None:
        """Install and start the site, as Debian's packages do."""
        self.machine = machine
        machine.run("useradd", "--no-create-home", "--home-dir", "/tmp", USER)
        machine.put("etc/slurm/slurm.conf", SLURM)
        machine.put("etc/default/slurmd", 'SLURMD_OPTIONS="-N n1"\n')
        for file in PACKAGES.glob("*.deb"):
            shutil.copy(file, machine.root / "root")
        machine.run(
            "sh", "-c",
            "DEBIAN_FRONTEND=noninteractive dpkg --force-confold -i /root/*.deb",
        )  # fmt: skip
        machine.put("etc/mosquitto/conf.d/site.conf", MOSQUITTO)
        machine.run(
            "mosquitto_passwd", "-b", "-c", "/etc/mosquitto/passwords", MQTT_USER, MQTT_PASSWORD
        )
        machine.run("chown", "mosquitto", "/etc/mosquitto/passwords")
        machine.run("systemctl", "restart", *UNITS)
        machine.wait_until("idle node", lambda: self.node() == "idle")

    def node(self) -> str:
        """Return the state of its node."""
        return self.machine.run("sinfo", "-h", "-N", "-o", "%t", fails=True).strip()

    def submit(self, sleep_s: float, *words: str) -> str:
        """Let the user submit a job that sleeps; return its number."""
        job = f"sleep {sleep_s:g}"
        message = self.machine.run(
            "runuser", "-u", USER, "--", "sbatch", "--parsable", "--output=/dev/null",
            "--chdir=/tmp", *words, "--wrap", job,
        )  # fmt: skip
        return message.strip()

    def job(self, number: str) -> dict[str, str]:
        """Return Slurm's data on a job."""
        message = self.machine.run("scontrol", "-o", "show", "job", number)
        return dict(word.split("=", 1) for word in message.split() if "=" in word)
