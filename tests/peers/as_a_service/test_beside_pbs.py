"""Tests of the service next to a real OpenPBS, whose clients authenticate by pbs_iff or MUNGE."""

import shutil
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.cli.running import COMMAND
from tests.conftest import REPOSITORY
from tests.peers.as_a_service.machine import Machine
from tests.peers.as_a_service.service import CONFIG, UNIT, Service
from tests.peers.as_a_service.site import PACKAGES

pytestmark = pytest.mark.systemd

PBS: Final = REPOSITORY.parent / "shared/peers/pbs/openpbs-master.deb"
"""Package that is built for tests; Debian has none."""
SEEN_WITHIN_S: Final = 90.0
DROP_INS: Final = "etc/systemd/system/outrider.service.d"
PBS_CONF: Final = """\
PBS_EXEC=/opt/pbs
PBS_SERVER=machine
PBS_HOME=/var/spool/pbs
PBS_START_SERVER=1
PBS_START_SCHED=1
PBS_START_COMM=1
PBS_START_MOM=1
PBS_CORE_LIMIT=0
PBS_LEAF_NAME=machine
PBS_MOM_NODE_NAME=machine
"""
MUNGE: Final = """\
PBS_SUPPORTED_AUTH_METHODS=munge,resvport
PBS_AUTH_METHOD=munge
"""
# PBS's daemons pass over 127.0.0.1: the machine's name leads to its other address
HOSTS: Final = "127.0.0.1 localhost\n198.51.100.1 machine\n"
SETTINGS: Final = """\
[adapters.pbs]
look_s = 1.0
commands = "/opt/pbs/bin"
"""
INSTALL: Final = "DEBIAN_FRONTEND=noninteractive dpkg --force-confold -i /root/*.deb"
BEGIN: Final = """\
set -e
export PATH=/opt/pbs/bin:/opt/pbs/sbin:$PATH TZ=UTC
export PGBIN=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
chmod 4755 /opt/pbs/sbin/pbs_iff
cd /usr/lib/x86_64-linux-gnu && ln -sf libmunge.so.2 libmunge.so
cp /opt/pbs/libexec/pbs_init.d /etc/init.d/pbs
/opt/pbs/libexec/pbs_habitat
/etc/init.d/pbs start
for _ in $(seq 200); do qstat -B && break; sleep 0.2; done
printf 'set server %s\n' 'query_other_jobs = True' 'scheduler_iteration = 5' | qmgr
qmgr -c 'create node machine' || qmgr -c 'list node machine'
qmgr -c 'set node machine resources_available.ncpus = 2'
for _ in $(seq 200); do pbsnodes -av | grep -q 'state = free' && break; sleep 0.2; done
"""
RESTART: Final = """\
export PGBIN=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
/etc/init.d/pbs stop
systemctl restart munge
/etc/init.d/pbs start
for _ in $(seq 200); do /opt/pbs/bin/qstat -B && exit; sleep 0.2; done
exit 1
"""


def missing_reason() -> str | None:
    """Return what a machine with PBS needs and is not here, or None."""
    if not PBS.exists():
        return f"no package of OpenPBS: {PBS}"
    if not list(Path("/usr/lib/postgresql").glob("*/bin")):
        return "PostgreSQL is not installed"
    for package in ("munge", "libical3"):
        if not list(PACKAGES.glob(f"{package}_*.deb")):
            return f"no package of {package} below {PACKAGES}"
    return None


@pytest.fixture(scope="module")
def pbs(machine: Machine) -> Machine:
    """Provide a booted machine with a PBS of one node, a running job and one that waits."""
    if (missing := missing_reason()) is not None:
        pytest.skip(f"no real PBS: {missing}")
    for file in (PBS, *PACKAGES.glob("munge_*.deb"), *PACKAGES.glob("libical3_*.deb")):
        shutil.copy(file, machine.root / "root")
    machine.put("etc/hosts", HOSTS)
    machine.put("etc/pbs.conf", PBS_CONF)
    machine.boot()
    machine.run("sh", "-c", INSTALL)
    machine.run("useradd", "--create-home", "--shell", "/bin/sh", "alice")
    machine.run("bash", "-c", BEGIN)
    for cpus in (1, 16):
        machine.run(
            "su", "alice", "-c", f"/opt/pbs/bin/qsub -l ncpus={cpus} -- /bin/sleep 600"
        )  # fmt: skip
    machine.wait_until("run", partial(runs, machine))
    return machine


def runs(machine: Machine) -> bool:
    """Return whether PBS runs a job."""
    return " R " in machine.run("/opt/pbs/bin/qstat", fails=True)


def sees_pbs(service: Service) -> bool:
    """Return whether the daemon has the node, and one job in each state."""
    status = service.status()
    machines = sum(cluster["machines"] for cluster in status.get("clusters", []))
    jobs = status.get("jobs", {})
    return machines == 1 and (jobs["running"], jobs["queued"]) == (1, 1)


def exposure(service: Service) -> float:
    """Return what systemd says of the unit's exposure; 0 is best."""
    shown = service.machine.run("systemd-analyze", "security", UNIT).splitlines()[-1]
    return float(shown.partition(f"{UNIT}: ")[2].split()[0])


@pytest.fixture(scope="module")
def service(pbs: Machine) -> Service:
    """Provide the service as its command sets it up; it sees PBS."""
    service = Service(pbs)
    service.configure(SETTINGS)
    service.install()
    pbs.wait_until("node and jobs", partial(sees_pbs, service), SEEN_WITHIN_S)
    return service


def test_pbs_iff_works_in_the_sandbox_by_one_capability(service: Service) -> None:
    text = (service.machine.root / DROP_INS / "50-capabilities.conf").read_text()
    assert "AmbientCapabilities=CAP_NET_BIND_SERVICE\n" in text
    assert "pbs_iff" in text
    process = service.of_process()
    assert process["NoNewPrivs"] == "1"
    assert int(process["CapEff"], 16) == 1 << 10, "CAP_NET_BIND_SERVICE alone"
    assert exposure(service) <= 1.3
    output = service.machine.run(COMMAND, "doctor", "--config", CONFIG)
    assert "fail" not in output, output


def test_it_says_why_a_job_waits(service: Service) -> None:
    output = service.machine.run(COMMAND, "explain", "1.machine", "--config", CONFIG)
    assert "1.machine waits: " in output, output
    assert "ncpus" in output, output


def test_by_munge_it_needs_no_capability_and_the_doctor_proves_both(service: Service) -> None:
    machine = service.machine
    machine.run("systemctl", "stop", UNIT)
    before = machine.run("sh", "-c", f"{COMMAND} doctor --config {CONFIG}; echo $?")
    assert "ok    as the service: examined with its user, in its sandbox" in before, before
    assert before.endswith("0\n"), before
    machine.run("rm", f"/{DROP_INS}/50-capabilities.conf")
    machine.run("systemctl", "daemon-reload")
    barred = machine.run("sh", "-c", f"{COMMAND} doctor --config {CONFIG}; echo $?")
    assert "fail  adapter pbs" in barred, barred
    assert barred.endswith("1\n"), barred
    machine.put("etc/pbs.conf", PBS_CONF + MUNGE)
    machine.run("bash", "-c", RESTART)
    service.install()
    assert not (machine.root / DROP_INS / "50-capabilities.conf").exists()
    machine.wait_until("node and jobs", partial(sees_pbs, service), SEEN_WITHIN_S)
    assert int(service.of_process()["CapEff"], 16) == 0
    assert exposure(service) <= 1.2
