"""Tests of the service next to Debian's Slurm and Mosquitto, each with its unit, with jobs."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from outrider.journal import Journal
from outrider.model.events import COMPLETED, STARTED
from tests.cli.running import COMMAND
from tests.conftest import REPOSITORY
from tests.peers.as_a_service import site as sites
from tests.peers.as_a_service.machine import Machine
from tests.peers.as_a_service.service import CONFIG, STATE, UNIT, Service
from tests.peers.as_a_service.site import MQTT_PASSWORD, MQTT_USER, UNITS, Site
from tests.peers.presence import require_peer

pytestmark = [pytest.mark.systemd, pytest.mark.slurm, pytest.mark.mosquitto]

SETTINGS = f"""\
[adapters.slurm]
look_s = 1.0
nodes_s = 1.0

[policies.bandit]

[mqtt]
host = "127.0.0.1"
username = "{MQTT_USER}"
password_file = "$CREDENTIALS_DIRECTORY/mqtt-password"
site = "campus"
health_every_s = 5.0
"""
HEARD = "root/heard"
PRIVATE_USERS = REPOSITORY / "systemd/outrider.service.d/private-users.conf.example"


@pytest.fixture(scope="module")
def site(machine: Machine) -> Site:
    """Provide Slurm and the broker, and a client of all topics that Outrider publishes."""
    require_peer("site of Debian's packages", sites.missing_reason())
    machine.boot()
    site = Site(machine)
    machine.run(
        "systemd-run", "--unit=listener", "-p", f"StandardOutput=file:/{HEARD}",
        "-p", "Restart=always", "mosquitto_sub", "-v", "-q", "1", "-i", "listener", "-c",
        "-u", MQTT_USER, "-P", MQTT_PASSWORD, "-t", "outrider/#",
    )  # fmt: skip
    return site


@pytest.fixture(scope="module")
def found(site: Site) -> Service:
    """Provide Outrider, set up by its command on a host without a configuration."""
    service = Service(site.machine)
    output = service.install()
    assert f"written    {CONFIG}\n" in output
    assert f"review     {CONFIG}: written for Slurm (/etc/slurm/slurm.conf), mode" in output
    return service


@pytest.fixture(scope="module")
def service(found: Service) -> Service:
    """Provide the service with changes: a broker, shorter intervals, hidden users."""
    found.configure(SETTINGS)
    found.machine.put("etc/credstore/mqtt-password", f"{MQTT_PASSWORD}\n", 0o600)
    found.drop_in("90-soon", "[Service]\nRestartSec=500ms\n")
    found.drop_in("91-private-users", PRIVATE_USERS.read_text())
    assert "review " not in found.install(), "it touches no configuration that is there"
    found.machine.run("systemctl", "restart", UNIT)
    wait_for_node(found)
    return found


def wait_for_node(service: Service) -> None:
    """Wait until the daemon knows Slurm's node."""
    wait_for(service, "the node", lambda s: sum(c["machines"] for c in s["clusters"]) == 1)


def wait_for(service: Service, what: str, holds: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until the answer of `outrider status` fulfils a condition."""
    service.machine.wait_until(what, lambda: holds(service.status()))


def heard(machine: Machine, topic: str) -> list[dict[str, Any]]:
    """Return the messages at a topic of the site, oldest first."""
    lines = (machine.root / HEARD).read_text().splitlines()
    parted = (line.partition(" ") for line in lines if line.endswith("}"))
    return [json.loads(text) for name, _, text in parted if name == f"outrider/campus/{topic}"]


def decided(machine: Machine) -> set[str]:
    """Return the jobs with a published decision."""
    return {message["job"] for message in heard(machine, "decisions")}


def test_without_a_configuration_it_is_set_up_for_the_slurm_that_is_here(found: Service) -> None:
    wait_for_node(found)
    status = found.status()
    assert (status["mode"], next(iter(status["adapters"][0].values()))) == ("shadow", "slurm")
    assert [one["name"] for one in status["policies"]] == ["bandit"]
    output = found.machine.run(COMMAND, "doctor", "--config", CONFIG)
    assert " fail " not in output, output


def test_it_follows_slurm_and_publishes_while_jobs_run(
    site: Site, service: Service, tmp_path: Path
) -> None:
    machine = site.machine
    users = machine.run("cat", f"/proc/{service.pid()}/uid_map").splitlines()
    assert len(users) == 2, "root and its own"
    jobs = [site.submit(2) for _ in range(4)]  # on two CPUs
    names = {f"site:{job}" for job in jobs}
    wait_for(service, "queue", lambda s: s["jobs"]["queued"] >= 1 and s["jobs"]["running"] >= 1)
    wait_for(service, "ends", lambda s: s["jobs"]["completed"] == len(jobs))
    machine.wait_until("decisions by MQTT", lambda: decided(machine) >= names)
    assert all(message["would"] is True for message in heard(machine, "decisions"))
    assert heard(machine, "status")[-1]["state"] == "online"
    assert heard(machine, "health")[-1]["adapters"]["slurm"]["up"] is True
    machine.run(COMMAND, "ledger", "backup", f"/{STATE}/journal.sqlite", "/root/copy.sqlite")
    shutil.copy(machine.root / "root/copy.sqlite", tmp_path / "copy.sqlite")
    with Journal(tmp_path / "copy.sqlite", read_only=True) as journal:
        events = [event for _, _, event in journal.inputs_after(0)]
    for job in jobs:
        reported = site.job(job)
        at_s = {event[1]: event[0] for event in events if event[2].endswith(f":{job}")}
        assert at_s[STARTED] == seconds(reported["StartTime"])
        assert at_s[COMPLETED] == seconds(reported["EndTime"])


def seconds(time: str) -> float:
    """Return Slurm's time, of a machine in UTC, as Unix seconds."""
    return datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp()


def test_it_outlives_restarts_of_its_neighbours(site: Site, service: Service) -> None:
    machine = site.machine
    before, pid = service.status()["jobs"]["completed"], service.pid()
    job = site.submit(4)
    machine.run("systemctl", "restart", "slurmctld", "mosquitto")
    machine.wait_until("end of the job", lambda: site.job(job)["JobState"] == "COMPLETED")
    wait_for(service, "its end", lambda s: s["jobs"]["completed"] == before + 1)
    machine.wait_until("decision by MQTT", lambda: f"site:{job}" in decided(machine))
    assert (service.pid(), service.told("NRestarts")) == (pid, "0")


def test_a_killed_daemon_misses_no_end_and_disturbs_no_job(site: Site, service: Service) -> None:
    machine = site.machine
    before = service.status()["jobs"]["completed"]
    job = site.submit(3)
    wait_for(service, "run", lambda s: s["jobs"]["running"] == 1)
    machine.run("kill", "-KILL", service.pid())
    machine.wait_until("restart", lambda: service.told("NRestarts") == "1")
    machine.wait_until("new start", service.is_active)
    wait_for(service, "its end", lambda s: s["jobs"]["completed"] == before + 1)
    assert (site.job(job)["JobState"], site.job(job)["Restarts"]) == ("COMPLETED", "0")


def test_it_takes_leave_and_has_changed_nothing(site: Site, service: Service) -> None:
    machine = site.machine
    machine.run("systemctl", "stop", UNIT)
    machine.wait_until("leave", lambda: heard(machine, "status")[-1]["state"] == "offline")
    shown = machine.run("scontrol", "-o", "show", "jobs").splitlines()
    assert shown
    for job in shown:
        assert "Nice=0 " in job
        assert "AdminComment" not in job
    active = machine.run("systemctl", "is-active", *UNITS).split()
    assert active == ["active"] * len(UNITS)
