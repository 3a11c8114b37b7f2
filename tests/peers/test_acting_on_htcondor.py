"""A real pool heeds what Outrider decides, and forgets it when Outrider is gone."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import shell
from tests.peers.acting_pool import (
    CYCLE_S,
    LEASE_S,
    acting_daemon,
    acting_pool,
    add_outrider,
    after_a_cycle,
)
from tests.peers.pool import HTCondorPool, missing_reason
from tests.peers.presence import require_peer
from tests.service.running.process import DaemonProcess

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor

ATTRIBUTES = ("OutriderBy", "OutriderHold", "OutriderPin", "OutriderPrefer", "OutriderUntil")
SLEEP = "executable = /bin/sleep\narguments = 600\nrequest_memory = 64\n"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HTCondorPool]:
    require_peer("HTCondor pool", missing_reason())
    folder = tmp_path_factory.mktemp("acting")
    with acting_pool(folder / "pool") as running:
        add_outrider(running, folder)
        running.submit("executable = /bin/true\nqueue\n")  # with it the event log begins
        running.wait_until("its end", lambda: not queue(running, "JobStatus"))
        yield running


@pytest.fixture(autouse=True)
def _no_jobs_are_left(pool: HTCondorPool) -> Iterator[None]:
    yield
    with suppress(RuntimeError):  # it takes it for an error that there was none
        pool.run("root", "condor_rm", "-all")
    pool.wait_until("the end of all jobs", lambda: not queue(pool, "JobStatus"))


@contextmanager
def acting(
    pool: HTCondorPool, folder: Path, mode: str = "active", **settings: Any
) -> Iterator[DaemonProcess]:
    """A daemon that has seen the machines; `settings` as of `acting_daemon`."""
    with acting_daemon(pool, folder, mode, **settings) as daemon:
        daemon.wait_until("machines", lambda s: sum(c["machines"] for c in s["clusters"]) == 4)
        yield daemon


def queue(pool: HTCondorPool, attribute: str) -> dict[int, str]:
    """An attribute of all jobs, by their job cluster."""
    said = pool.run("root", "condor_q", "-allusers", "-af", "ClusterId", attribute)
    return {int(line.split()[0]): line.split(maxsplit=1)[1] for line in said.splitlines()}


def running(pool: HTCondorPool) -> set[int]:
    """The job clusters that run."""
    return {job for job, status in queue(pool, "JobStatus").items() if status == "2"}


def sorted_labels(metrics: str) -> str:
    """An exposition whose labels are in the order of their names."""

    def ordered(found: re.Match[str]) -> str:
        return "{" + ",".join(sorted(found[1].split(","))) + "}"

    return re.sub(r"\{([^}]*)\}", ordered, metrics)


def leased(pool: HTCondorPool, n: int) -> None:
    """Wait until so many jobs have a lease."""

    def known() -> int:
        return sum(until != "undefined" for until in queue(pool, "OutriderUntil").values())

    pool.wait_until(f"{n} leases", lambda: known() >= n, within_s=CYCLE_S)


def test_deferred_jobs_wait_and_others_run_where_it_was_decided_until_the_daemon_is_killed(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    with acting(pool, tmp_path) as daemon:
        after_a_cycle(pool)
        waits = [pool.submit(f"{SLEEP}queue\n", "alice") for _ in range(2)]
        goes = [pool.submit(f"{SLEEP}queue\n", "bob") for _ in range(2)]
        leased(pool, 4)
        pool.wait_until("bob's runs", lambda: running(pool) >= set(goes))
        assert {pool.machine_of(job) for job in goes} == {"m3", "m4"}, "cluster B, not A"
        time.sleep(LEASE_S + CYCLE_S)  # longer than a lease: it is renewed
        assert running(pool) == set(goes), "m1 and m2 are free, and alice's jobs are to wait"
        told = daemon.get(f"/api/v1/explain/host.pool.test%23{waits[0]}.0")
        assert told["lease"]["action"] == "defer"
        assert "Outrider keeps it in the queue until it decides otherwise." in told["sentence"]
        [lever] = daemon.status()["levers"]
        assert lever["standing"] == {"start": 0, "defer": 2}
        assert lever["changes"]["applied"] == 4
        assert lever["changes"]["renewed"] >= 4
        assert lever["changes"]["refused"] == lever["changes"]["failed"] == 0
        assert (
            'outrider_leases{action="defer",adapter="htcondor",lever="leased_attributes"} 2.0'
            in sorted_labels(daemon.text("/metrics"))
        )
        daemon.kill()
        killed_s = time.monotonic()
        pool.wait_until("alice's runs", lambda: running(pool) >= set(waits), LEASE_S + 3 * CYCLE_S)
        assert time.monotonic() - killed_s < LEASE_S + 2 * CYCLE_S + 5.0
        assert {pool.machine_of(job) for job in waits} == {"m1", "m2"}


def test_jobs_start_in_the_policys_order_whoever_they_belong_to(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    """Youngest first, which HTCondor never does by itself; one machine, so that it is seen."""
    fillers = [pool.submit(f"{SLEEP}queue\n", "alice") for _ in pool.machines]
    pool.wait_until("full machines", lambda: running(pool) == set(fillers))
    with acting(pool, tmp_path, policy="youngest_first", admits=True):
        jobs = []
        for n in range(4):
            jobs.append(pool.submit_sleepers(1, 2, ("alice", "bob")[n % 2]))
            time.sleep(1.1)  # HTCondor's times are whole seconds
        leased(pool, len(jobs))
        pool.run("root", "condor_rm", str(fillers[0]))
        for job in jobs:
            pool.wait_for_events(5, 1, job, within_s=12.0 * CYCLE_S)
    began = [cluster for cluster, _ in pool.events(1) if cluster in jobs]
    assert began == jobs[::-1]


def test_doctor_says_whether_leases_are_installed_and_who_heeds_them(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    pool.submit(f"{SLEEP}requirements = false\nqueue\n", "alice")
    daemon = acting_daemon(pool, tmp_path)
    told = shell("doctor", "--config", str(daemon.config), **daemon.environ).out
    assert "leases at host.pool.test: installed; 1 of 1 waiting jobs heed them" in told
    assert "may be set by root, condor, outrider@pool.test" in told


def test_a_clean_stop_takes_everything_back_at_once(pool: HTCondorPool, tmp_path: Path) -> None:
    with acting(pool, tmp_path) as daemon:
        after_a_cycle(pool)
        pool.submit(f"{SLEEP}queue\n", "alice")
        leased(pool, 1)
        assert daemon.stop() == 0
        assert set(queue(pool, "OutriderUntil").values()) == {"0"}


def test_release_takes_back_what_a_killed_daemon_left(pool: HTCondorPool, tmp_path: Path) -> None:
    with acting(pool, tmp_path) as daemon:
        after_a_cycle(pool)
        for _ in range(3):
            pool.submit(f"{SLEEP}queue\n", "alice")
        leased(pool, 3)
        daemon.kill()
        said = shell("release", "--config", str(daemon.config), **daemon.environ)
        assert (said.code, said.out) == (
            0,
            "htcondor: leased_attributes: taken back for 3 jobs.\n",
        ), said
        assert set(queue(pool, "OutriderUntil").values()) == {"0"}


def test_in_shadow_not_one_attribute_of_any_job_changes(pool: HTCondorPool, tmp_path: Path) -> None:
    """With the rights to edit every job, and leases installed."""
    for number in range(40):
        held = "hold = true" if number % 2 else "requirements = false"
        pool.submit(f"{SLEEP}{held}\nqueue 5\n", "alice" if number % 3 else "bob")
    before = pool.run("root", "condor_q", "-allusers", "-long")
    assert before.count("GlobalJobId") == 200
    with acting(pool, tmp_path, "shadow") as daemon:
        daemon.wait_until("all jobs", lambda s: s["jobs"]["queued"] + s["jobs"]["held"] >= 200)
        daemon.wait_until("decisions", lambda s: s["policies"][0]["decisions"] >= 100)
        time.sleep(CYCLE_S)
        assert daemon.status()["levers"] == []
        assert daemon.stop() == 0
    after = pool.run("root", "condor_q", "-allusers", "-long")
    assert _lasting(after) == _lasting(before)


def _lasting(dump: str) -> list[str]:
    """The lines of a dump but for those of the clock, and of the negotiator's own notes."""
    own = ("ServerTime", "LastRejMatch", "AutoCluster")
    return [line for line in dump.splitlines() if not line.startswith(own)]


def test_the_canary_acts_on_its_jobs_alone(pool: HTCondorPool, tmp_path: Path) -> None:
    with acting(pool, tmp_path, "canary"):
        after_a_cycle(pool)
        alices = pool.submit(f"{SLEEP}queue\n", "alice")
        bobs = pool.submit(f"{SLEEP}queue\n", "bob")
        leased(pool, 1)
        pool.wait_until("both runs", lambda: running(pool) == {alices, bobs})
        until = queue(pool, "OutriderUntil")
        assert until[alices] == "undefined"
        assert until[bobs] != "undefined"


def test_jobs_queued_before_leases_were_installed_are_left_alone(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    with acting(pool, tmp_path) as daemon:
        after_a_cycle(pool)
        edited = pool.submit(f"{SLEEP}queue\n", "alice")
        pool.run("alice", "condor_qedit", f"{edited}", "Requirements", "true")  # heeds nothing now
        pool.wait_until("its run", lambda: running(pool) == {edited})
        assert queue(pool, "OutriderUntil")[edited] == "undefined"
        assert "do not read OutriderUntil" in daemon.log.read_text()


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_a_user_can_neither_submit_nor_edit_what_is_outriders(
    pool: HTCondorPool, attribute: str
) -> None:
    job = pool.submit(f"{SLEEP}hold = true\n+{attribute} = 1\nqueue\n", "alice")
    assert queue(pool, attribute) == {job: "undefined"}, "it was taken away at submission"
    with pytest.raises(RuntimeError, match="No attributes were set"):
        pool.run("alice", "condor_qedit", f"{job}", attribute, "1")
    assert queue(pool, attribute) == {job: "undefined"}


def test_without_the_right_to_edit_nothing_is_changed_and_that_is_told(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    daemon = acting_daemon(pool, tmp_path, user="bob")
    with daemon:
        daemon.wait_until("machines", lambda s: sum(c["machines"] for c in s["clusters"]) == 4)
        after_a_cycle(pool)
        job = pool.submit(f"{SLEEP}queue\n", "alice")
        pool.wait_until("its run", lambda: running(pool) == {job})
        assert queue(pool, "OutriderUntil")[job] == "undefined"
        assert "refuse_lever" in daemon.log.read_text()


def test_leases_outlive_a_schedd_that_is_killed_and_lapse_all_the_same(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    with acting(pool, tmp_path) as daemon:
        after_a_cycle(pool)
        job = pool.submit(f"{SLEEP}queue\n", "alice")
        leased(pool, 1)
        daemon.kill()
        pool.run("root", "sh", "-c", "kill -9 $(pidof condor_schedd)")
        pool.wait_until("the schedd", lambda: _answers(pool), 120.0)
        assert queue(pool, "OutriderUntil")[job] != "undefined"
        pool.wait_until("its run", lambda: _answers(pool) and running(pool) == {job}, 120.0)


def _answers(pool: HTCondorPool) -> bool:
    with suppress(RuntimeError):
        return bool(pool.run("root", "condor_q", "-allusers", "-af", "ClusterId").split())
    return False
