"""Tests of the service next to Debian's minicondor, with its own configuration and no token."""

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest

from tests.cli.running import COMMAND
from tests.peers.as_a_service.machine import Machine, missing_reason
from tests.peers.as_a_service.rules import forbidden_reason
from tests.peers.as_a_service.service import CONFIG, UNIT, Service
from tests.peers.presence import PEERS_DIR, require_allowed, require_peer

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = [pytest.mark.systemd, pytest.mark.htcondor]

ROOT: Final = PEERS_DIR / "htcondor"
SEEN_WITHIN_S: Final = 90.0
USER: Final = "alice"
JOBS: Final = """\
executable = /bin/sleep
arguments = 600
request_memory = 900000
queue
request_memory = 16
hold = true
queue
"""
ADD_USER: Final = """\
import htcondor2
htcondor2.param["SEC_FS_ENFORCE_CHANNEL_BINDING"] = "false"
htcondor2.Schedd().addUserRec("outrider@machine")
"""
DROP_INS: Final = "etc/systemd/system/outrider.service.d"


def missing_pool() -> str | None:
    """Return why no Debian with HTCondor and a systemd can be booted, or None if one can."""
    if not all(
        (ROOT / path).exists() for path in ("usr/sbin/condor_master", "lib/systemd/systemd")
    ):
        return f"{ROOT} holds no HTCondor with a systemd"
    return missing_reason()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Provide a booted Debian 13 with a pool of one machine, and two jobs of a user."""
    require_peer("systemd as process 1, next to HTCondor", missing_pool())
    require_allowed("systemd as process 1", forbidden_reason())
    with Machine(tmp_path_factory.mktemp("pool"), ROOT) as made:
        made.want("condor.service", "/lib/systemd/system/condor.service")
        (made.root / "root").chmod(0o711)  # a user's command runs this test's Python
        made.boot()
        made.wait_until("slot", lambda: bool(slots(made)))
        made.put("home/alice/jobs", JOBS)
        made.run("runuser", "-u", USER, "--", "sh", "-c", "cd && condor_submit jobs")
        yield made


@pytest.fixture(scope="module")
def service(machine: Machine) -> Service:
    """Provide Outrider as its command sets it up without a configuration; it sees the pool."""
    service = Service(machine)
    service.install()
    machine.wait_until("pool", partial(sees_pool, service), SEEN_WITHIN_S)
    return service


def slots(machine: Machine) -> list[str]:
    """Return the slots that the pool's collector knows."""
    return machine.run("condor_status", "-af", "Name", fails=True).split()


def adapter(service: Service) -> dict[str, Any]:
    """Return the state of the only adapter; empty while the daemon starts."""
    found: list[dict[str, Any]] = service.status().get("adapters", [])
    return found[0] if found else {}


def sees_pool(service: Service) -> bool:
    """Return whether the daemon has the pool's machine and both jobs."""
    status = service.status()
    machines = sum(cluster["machines"] for cluster in status.get("clusters", []))
    jobs = status.get("jobs", {})
    return machines == 1 and (jobs["queued"], jobs["held"]) == (1, 1)


def explained(service: Service, job: str, user: str = "root") -> str:
    """Return the output of `outrider explain` for a user."""
    return service.machine.run(
        "runuser", "-u", user, "--", COMMAND, "explain", job, "--config", CONFIG
    )


def test_the_documented_service_sees_the_pool_and_stays_closed(service: Service) -> None:
    assert adapter(service)["up"] is True
    shown = service.machine.run("systemd-analyze", "security", UNIT).splitlines()[-1]
    exposure = float(shown.partition(f"{UNIT}: ")[2].split()[0])
    assert exposure <= 1.3
    output = service.machine.run(COMMAND, "doctor", "--config", CONFIG)
    assert "fail" not in output, output


def test_it_says_which_request_no_machine_meets_and_why_a_job_is_held(service: Service) -> None:
    for user in ("root", USER):
        memory, held = explained(service, "1.0", user), explained(service, "1.1", user)
        assert "Memory >= 900000" in memory, memory
        assert "submitted on hold at user's request" in held, held


def test_a_stopped_pool_is_noticed_and_followed_again_without_a_restart(service: Service) -> None:
    machine, pid = service.machine, service.pid()
    silent = "does not answer"
    machine.run("systemctl", "stop", "condor")
    machine.wait_until("word of it", lambda: silent in adapter(service)["note"], SEEN_WITHIN_S)
    machine.run("systemctl", "start", "condor")
    machine.wait_until("the pool", lambda: silent not in adapter(service)["note"], SEEN_WITHIN_S)
    machine.wait_until("its machine and jobs", partial(sees_pool, service), SEEN_WITHIN_S)
    assert service.pid() == pid


def test_the_services_user_can_set_and_revoke_a_lease_once_the_site_allows_it(
    service: Service,
) -> None:
    machine = service.machine
    leases = machine.run(COMMAND, "levers", "htcondor")
    machine.put("etc/condor/config.d/50-outrider-leases.config", leases)
    machine.run("condor_reconfig")
    machine.run(sys.executable, "-c", ADD_USER)
    output = machine.run(
        "runuser", "-u", "outrider", "--", COMMAND, "doctor", "--levers", "--config", CONFIG
    )
    assert "was held back by a lease, released and removed" in output, output


def test_a_token_that_root_alone_may_read_serves_in_place_of_the_hosts_tmp(
    service: Service,
) -> None:
    machine, folder = service.machine, "/etc/outrider/tokens.d"
    machine.put("etc/condor/config.d/99-token.config", f"SEC_TOKEN_DIRECTORY = {folder}\n")
    machine.run("mkdir", "-m", "700", folder)
    token = machine.run("condor_token_create", "-identity", "outrider@machine")
    machine.put(f"{folder}/outrider", token, 0o600)
    machine.run("systemctl", "stop", UNIT)
    assert "removed" in service.install(), "its drop-in for /tmp"
    machine.wait_until("pool", partial(sees_pool, service), SEEN_WITHIN_S)
    assert service.told("PrivateTmp") != "no"


def test_installed_while_the_pool_is_down_it_reaches_the_pool_later(service: Service) -> None:
    machine = service.machine
    machine.run("systemctl", "stop", "condor", UNIT)
    machine.run("rm", "-r", f"/{DROP_INS}", f"/etc/systemd/system/{UNIT}")
    service.install()
    assert "IPAddressAllow=any" in (machine.root / DROP_INS / "50-network.conf").read_text()
    machine.run("systemctl", "start", "condor")
    machine.wait_until("the pool", partial(sees_pool, service), SEEN_WITHIN_S)
