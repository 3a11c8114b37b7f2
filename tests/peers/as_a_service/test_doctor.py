"""`outrider doctor` under a real systemd: in a unit like the service, then by the daemon."""

import os

import pytest

from tests.cli.running import COMMAND
from tests.peers.as_a_service.machine import Machine
from tests.peers.as_a_service.service import CONFIG, Service

pytestmark = pytest.mark.systemd

SETTINGS = """\
[adapters.pool]
type = "logtail"
paths = ["/var/log/condor/EventLog"]
"""
LOG = "var/log/condor/EventLog"


def doctor(machine: Machine) -> str:
    """Return what root's doctor prints; its exit code is the last line."""
    return machine.run("sh", "-c", f"{COMMAND} doctor --config {CONFIG}; echo $?")


def test_root_examines_as_the_service_until_a_daemon_answers(machine: Machine) -> None:
    service = Service(machine)
    service.configure(SETTINGS)
    machine.put(LOG, "", 0o640)
    log = machine.root / LOG
    groups = (machine.root / "etc/group").read_text().splitlines()
    os.chown(log, 0, next(int(one.split(":")[2]) for one in groups if one.startswith("adm:")))
    machine.boot()
    service.install()
    machine.run("systemctl", "stop", "outrider.service")

    well = doctor(machine)
    assert "ok    as the service: examined with its user, in its sandbox" in well, well
    assert "ok    adapter pool: " in well
    assert well.endswith("0\n"), well
    units = machine.run("systemctl", "list-units", "--all", "--plain", "outrider-doctor*")
    assert "0 loaded units" in units
    assert not list((machine.root / "run/systemd/system").glob("outrider-doctor*"))

    log.chmod(0o600)  # root may read it, and the service may not
    barred = doctor(machine)
    assert barred.endswith("1\n"), barred
    assert "fail  adapter pool: /var/log/condor/EventLog: permission denied" in barred

    log.chmod(0o640)
    machine.run("systemctl", "start", "outrider.service")
    told = doctor(machine)
    assert "ok    adapter pool: the running daemon: up" in told
    assert "as the service" not in told
    assert told.endswith("0\n"), told
