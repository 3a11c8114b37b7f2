"""Tests of deferred jobs of a real pool when Outrider, the pool or the network fails."""

import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.peers.acting_on_htcondor.acting_pool import (
    CYCLE_S,
    LEASE_S,
    SLEEP,
    acting,
    acting_daemon,
    after_a_cycle,
    leased,
    queue,
    running,
)
from tests.peers.pool import HTCondorPool
from tests.service.running.disks import fill, small_disk
from tests.service.running.process import DaemonProcess

pytestmark = pytest.mark.htcondor

RUNS_WITHIN_S = LEASE_S + 3 * CYCLE_S


def kept(pool: HTCondorPool) -> int:
    """A job of alice's that stays in the queue; its number."""
    after_a_cycle(pool)
    job = pool.submit(f"{SLEEP}queue\n", "alice")
    leased(pool, 1)
    return job


def problem_of(daemon: DaemonProcess) -> str:
    """Return the error of the lever's last call."""
    said: str = daemon.status()["levers"][0]["problem"]
    return said


def test_a_right_that_is_taken_away_lets_every_job_run_within_a_lease(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    with acting(pool, tmp_path) as daemon:
        job = kept(pool)
        more = pool.run_dir / "config" / "90-superusers.config"
        more.write_text("QUEUE_SUPER_USERS = root, condor\n")
        pool.run("root", "condor_reconfig")
        try:
            daemon.wait_until("the refusal", lambda s: s["levers"][0]["changes"]["refused"] > 0)
            assert "Outrider" in problem_of(daemon)
            pool.wait_until("its run", lambda: running(pool) == {job}, RUNS_WITHIN_S)
        finally:
            more.unlink()
            pool.run("root", "condor_reconfig")


def signal_schedd(pool: HTCondorPool, name: str) -> None:
    pool.run("root", "sh", "-c", f"kill -{name} $(pidof condor_schedd)")


def test_an_access_point_that_is_silent_for_longer_than_a_lease_holds_no_job_back(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    """Test that a stopped schedd, which accepts connections and never answers, blocks nothing."""
    with acting(pool, tmp_path, adapter="answer_within_s = 5") as daemon:
        job = kept(pool)
        signal_schedd(pool, "STOP")
        try:
            daemon.wait_until(
                "the silence", lambda s: s["levers"][0]["changes"]["failed"] > 0, 60.0
            )
            time.sleep(LEASE_S)
            began_s = time.monotonic()
            daemon.get("/healthz")
            assert time.monotonic() - began_s < 2.0
            daemon.kill()
        finally:
            signal_schedd(pool, "CONT")
        pool.wait_until("its run", lambda: _runs(pool, job), RUNS_WITHIN_S + 60.0)


def _runs(pool: HTCondorPool, job: int) -> bool:
    with suppress(RuntimeError):  # it has much to catch up with
        return running(pool) == {job}
    return False


def test_a_full_disk_renews_nothing(pool: HTCondorPool, tmp_path: Path) -> None:
    """Test that a decision that cannot be recorded is not applied."""
    with small_disk(tmp_path / "state", 8) as disk, acting(pool, tmp_path) as daemon:
        job = kept(pool)
        fill(disk)
        daemon.wait_until("the full disk", lambda s: not s["ledger"]["recording"], 60.0)
        pool.wait_until("its run", lambda: running(pool) == {job}, RUNS_WITHIN_S)


def test_of_two_outriders_the_second_changes_nothing_and_says_who_acts(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    """Test two daemons on one host that differ only in their state directory."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with acting(pool, first) as daemon:
        kept(pool)
        with acting_daemon(pool, second) as other:
            other.wait_until("its try", lambda s: s["levers"][0]["changes"]["failed"] > 0, 60.0)
            assert "another Outrider acts here" in problem_of(other)
            assert str(first / "state") in problem_of(other)
            others = queue(pool, "OutriderBy")
            assert all(str(first / "state") in by for by in others.values())
            assert daemon.status()["levers"][0]["changes"]["failed"] == 0


def test_a_daemon_that_is_killed_goes_on_with_its_own_leases(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    """Test that a daemon's own leases are not taken for another's."""
    with acting(pool, tmp_path) as daemon:
        kept(pool)
        daemon.kill()
        daemon.start()
        after_a_cycle(pool)  # or the job might run before it is seen
        job = pool.submit(f"{SLEEP}queue\n", "alice")
        leased(pool, 2)
        assert queue(pool, "OutriderHold")[job] == "true"
        assert daemon.status()["levers"][0]["changes"]["failed"] == 0
