"""Tests of the unit of `outrider install-service` under a real systemd, from start to stop."""

import os
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from outrider.journal import Journal
from outrider.model.events import KIND_NAMES, TICK
from tests.cli.running import COMMAND
from tests.peers.as_a_service.machine import UNITS, Machine
from tests.peers.as_a_service.service import STATE, UNIT, Service
from tests.service.running.event_log import EventLog

pytestmark = pytest.mark.systemd

SETTINGS = """\
token_file = "$CREDENTIALS_DIRECTORY/http-token"

[adapters.pool]
type = "logtail"
paths = ["/var/log/condor/EventLog"]
start_at = "beginning"

[policies.bandit]
"""
WATCHDOG_S = 3.0
STOPS_WITHIN_S = 10.0
"""Seconds of TimeoutStopSec= of the unit, after which systemd kills."""
TOKEN = "a-token-of-this-machine"
BUSY_PORT = "import socket, time; s = socket.create_server(('127.0.0.1', 9690)); time.sleep(300)"
ASK = """\
import sys, urllib.error, urllib.request
asked = urllib.request.Request("http://127.0.0.1:9690/api/v1/status")
if sys.argv[1:]:
    asked.add_header("Authorization", f"Bearer {sys.argv[1]}")
try:
    print(urllib.request.urlopen(asked, timeout=10).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


@pytest.fixture(scope="module")
def log(machine: Machine) -> EventLog:
    """Return a pool's event log that only root and a group may read."""
    machine.put("var/log/condor/EventLog", "", 0o640)
    path = machine.root / "var/log/condor/EventLog"
    groups = (machine.root / "etc/group").read_text().splitlines()
    os.chown(path, 0, next(int(one.split(":")[2]) for one in groups if one.startswith("adm:")))
    return EventLog(path)


@pytest.fixture(scope="module")
def installed(machine: Machine, log: EventLog) -> Service:
    """Provide its service, set up as by an administrator; only RestartSec= is changed."""
    service = Service(machine)
    service.configure(SETTINGS)
    machine.put("etc/credstore/http-token", f"{TOKEN}\n", 0o600)
    service.drop_in("90-soon", "[Service]\nRestartSec=500ms\n")
    machine.boot()
    service.install()
    return service


@pytest.fixture
def service(installed: Service) -> Service:
    """Provide the service, running when a test begins."""
    installed.machine.run("systemctl", "start", UNIT)
    return installed


def test_it_listens_as_soon_as_the_printed_commands_have_run(service: Service) -> None:
    assert service.machine.run(sys.executable, "-c", ASK, TOKEN) == "200\n", "ready too early"
    assert service.is_active()
    assert service.machine.run("systemctl", "is-enabled", UNIT).strip() == "enabled"
    assert service.told("NRestarts") == "0"
    twin = service.machine.run("systemctl", "is-active", "outrider-twin.service").strip()
    assert twin == "active"
    assert service.machine.run(COMMAND, "status").startswith("mode "), "by itself at the socket"
    assert service.machine.run("systemctl", "is-system-running").strip() == "running"


def test_who_it_is_and_what_it_may(service: Service) -> None:
    process = service.of_process()
    uid = process["Uid"].split()[0]
    assert service.machine.run("id", "-u", "outrider").strip() == uid != "0"
    nothing = "0" * 16
    assert {process[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {nothing}
    assert (process["NoNewPrivs"], process["Seccomp"]) == ("1", "2")
    adm = service.machine.run("getent", "group", "adm").split(":")[2]
    assert adm in process["Groups"].split(), "the group of the log"
    mounts = service.machine.run("cat", f"/proc/{service.pid()}/mountinfo").splitlines()
    options = {line.split()[4]: line.split()[5].split(",") for line in mounts}
    assert "ro" in options["/"], "ProtectSystem=strict"
    assert "rw" in options["/var/lib/private/outrider"]


def test_its_state_is_dynamic_users_own_and_closed(service: Service) -> None:
    machine = service.machine
    assert service.told("DynamicUser") == "yes"
    assert machine.run("readlink", "/var/lib/outrider").strip() == "private/outrider"
    found = machine.run("stat", "-c", "%a %U", f"/{STATE}", f"/{STATE}/journal.sqlite")
    assert found.split("\n")[:2] == ["700 outrider", "600 outrider"]
    assert machine.run("stat", "-c", "%a", "/var/lib/private").strip() == "700"


def test_the_secret_is_systemds_and_works(service: Service) -> None:
    ask = (sys.executable, "-c", ASK)
    assert service.machine.run(*ask) == "401\n"
    assert service.machine.run(*ask, TOKEN) == "200\n"
    environment = service.machine.run("cat", f"/proc/{service.pid()}/environ")
    assert f"CREDENTIALS_DIRECTORY=/run/credentials/{UNIT}" in environment.split("\0")
    assert TOKEN not in environment


def test_its_status_line_tells_of_the_site(service: Service, log: EventLog) -> None:
    assert service.told("StatusText").startswith("shadow")
    log.run(range(1, 6))
    service.machine.wait_until(
        "jobs in the status line", lambda: "5 jobs seen" in service.told("StatusText")
    )


def test_its_lines_have_priorities_names_and_fields(service: Service) -> None:
    lines = [line for line in service.lines() if line["_COMM"] != "systemd"]
    (started, *_) = [one for one in lines if one["MESSAGE"].startswith("daemon_started ")]
    assert started["PRIORITY"] == "6"
    assert started["SYSLOG_IDENTIFIER"] == "outrider"
    assert {"mode=shadow", "url=http://127.0.0.1:9690"} < set(started["MESSAGE"].split())
    assert not [one["MESSAGE"] for one in lines if one["MESSAGE"].startswith("<")]
    service.configure(SETTINGS + "\n[policies.no_such_policy]\n")
    service.machine.run("systemctl", "reload", UNIT, fails=True)
    service.machine.wait_until(
        "line of a worse priority",
        lambda: any("no_such_policy" in one["MESSAGE"] for one in service.lines("-p", "warning")),
    )
    service.configure(SETTINGS)
    service.machine.run("systemctl", "reload", UNIT)  # returns while the daemon still reloads
    service.machine.wait_until("ready again", service.is_active)


def test_a_reload_puts_another_configuration_in_force_in_the_same_process(
    service: Service,
) -> None:
    before = service.pid()
    service.configure(SETTINGS + "\n[policies.fifo]\n")
    service.machine.run("systemctl", "reload", UNIT)

    def policies() -> set[str]:
        return {one["name"] for one in service.status()["policies"]}

    service.machine.wait_until("the other policy", lambda: policies() == {"bandit", "fifo"})
    assert service.pid() == before
    service.machine.wait_until("ready again", service.is_active)


def wait_for_restart(service: Service, restarts: int) -> None:
    """Wait until systemd has restarted it once more, and it is ready."""
    count = str(restarts + 1)
    service.machine.wait_until("restart", lambda: service.told("NRestarts") == count)
    service.machine.wait_until("new start", service.is_active)


def test_the_watchdog_ends_a_daemon_that_stands_still(service: Service) -> None:
    machine = service.machine
    service.drop_in("91-watchdog", f"[Service]\nWatchdogSec={WATCHDOG_S:g}\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", UNIT)
    before, began_s = service.pid(), time.monotonic()
    machine.run("kill", "-STOP", before)
    wait_for_restart(service, 0)
    assert time.monotonic() - began_s >= WATCHDOG_S / 2, "sooner than it is allowed to be silent"
    assert service.pid() != before
    message = [line["MESSAGE"] for line in service.lines()]
    assert [line for line in message if "Watchdog timeout" in line]
    assert [line for line in message if "Failed with result 'watchdog'" in line]
    (machine.root / UNITS / f"{UNIT}.d/91-watchdog.conf").unlink()
    machine.run("systemctl", "daemon-reload")


def test_after_kill_9_nothing_is_lost_and_nothing_doubled(
    service: Service, log: EventLog, tmp_path: Path
) -> None:
    machine = service.machine
    restarts = int(service.told("NRestarts"))
    for jobs in (range(100, 400), range(400, 700)):
        log.run(jobs)
        machine.run("kill", "-KILL", service.pid())
        log.run(range(jobs.start + 1000, jobs.start + 1050))  # while it is dead
        wait_for_restart(service, restarts)
        restarts += 1
    ended = log.counts["completed"]
    machine.wait_until("all jobs", lambda: service.status()["jobs"]["completed"] == ended)
    copy = "/root/copy.sqlite"
    machine.run(COMMAND, "ledger", "verify", f"/{STATE}/journal.sqlite")
    machine.run(COMMAND, "ledger", "backup", f"/{STATE}/journal.sqlite", copy)
    shutil.copy(machine.root / copy.lstrip("/"), tmp_path / "copy.sqlite")
    with Journal(tmp_path / "copy.sqlite", read_only=True) as journal:
        kinds = Counter(
            KIND_NAMES[event[1]] for _, _, event in journal.inputs_after(0) if event[1] != TICK
        )
    assert {name: kinds[name] for name in log.counts} == dict(log.counts)


def test_it_stops_by_itself_in_time(service: Service) -> None:
    began_s = time.monotonic()
    service.machine.run("systemctl", "stop", UNIT)
    assert time.monotonic() - began_s < STOPS_WITHIN_S
    assert (service.told("Result"), service.told("ExecMainStatus")) == ("success", "0")
    assert not list((service.machine.root / "run/outrider").glob("*"))
    assert (service.machine.root / STATE / "snapshots").is_dir()
    left = service.machine.run("systemctl", "is-active", "outrider-twin.service", fails=True)
    assert left.strip() == "inactive", "it stops with the daemon"


def test_it_is_never_ready_where_it_cannot_listen(installed: Service) -> None:
    machine = installed.machine
    machine.run("systemctl", "stop", UNIT)
    machine.run("systemd-run", "--unit=busy-port", "--collect", sys.executable, "-c", BUSY_PORT)
    with pytest.raises(RuntimeError, match=r"Job for outrider\.service failed"):
        machine.run("systemctl", "start", UNIT)
    assert not installed.is_active()
    reported = [line["MESSAGE"] for line in installed.lines() if line["_COMM"] != "systemd"]
    assert "127.0.0.1:9690" in reported[-1], reported
    assert installed.told("ExecMainStatus") == "2", "not tried again: configured so"
    machine.run("systemctl", "stop", "busy-port")
