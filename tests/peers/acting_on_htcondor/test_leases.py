"""Tests that a real pool honours leases, and that they expire without Outrider."""

import re
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.running import shell
from tests.peers.acting_on_htcondor.acting_pool import (
    CYCLE_S,
    LEASE_S,
    SLEEP,
    acting,
    after_a_cycle,
    leased,
    queue,
    running,
)
from tests.peers.pool import HTCondorPool

pytestmark = pytest.mark.htcondor


def sorted_labels(metrics: str) -> str:
    """An exposition whose labels are in the order of their names."""

    def ordered(found: re.Match[str]) -> str:
        return "{" + ",".join(sorted(found[1].split(","))) + "}"

    return re.sub(r"\{([^}]*)\}", ordered, metrics)


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
            "htcondor: leased_attributes: reverted for 3 jobs.\n",
        ), said
        assert set(queue(pool, "OutriderUntil").values()) == {"0"}


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
