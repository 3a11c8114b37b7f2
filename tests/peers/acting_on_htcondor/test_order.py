"""Test of the job that starts first in a pool."""

import time
from pathlib import Path

import pytest

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


def test_what_the_policy_starts_comes_before_the_other_jobs_of_its_user(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    """Test the order without deferred jobs, against a different order of the users."""
    fillers = [pool.submit(f"{SLEEP}queue\n", "alice") for _ in pool.machines]
    pool.wait_until("full machines", lambda: running(pool) == set(fillers))
    with acting(pool, tmp_path, policy="youngest_first", adapter="start_first = true"):
        jobs = []
        for priority in (3, 2, 1):
            more = f"{SLEEP}priority = {priority}\nqueue\n"
            jobs.append(pool.submit(more.replace("600", "2"), "alice"))
            time.sleep(1.1)  # HTCondor's times are whole seconds
        assert set(queue(pool, "OutriderUntil").values()) == {"undefined"}, "nothing is kept"
        after_a_cycle(pool)
        pool.run("root", "condor_rm", str(fillers[0]))
        for job in jobs:
            pool.wait_for_events(5, 1, job, within_s=120.0)
    began = [cluster for cluster, _ in pool.events(1) if cluster in jobs]
    assert began[0] == jobs[-1], "the youngest, although its user gave it the least priority"


def test_a_job_that_is_kept_may_be_shown_as_held_and_is_let_go_without_outrider(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    with acting(pool, tmp_path, adapter='defer_by = "hold"') as daemon:
        after_a_cycle(pool)
        job = pool.submit(f"{SLEEP}queue\n", "alice")
        pool.wait_until("the hold", lambda: queue(pool, "JobStatus") == {job: "5"})
        assert queue(pool, "HoldReason") == {job: "Outrider keeps it in the queue for a while"}
        daemon.wait_until("more than a lease", lambda s: s["levers"][0]["changes"]["renewed"] > 3)
        assert daemon.status()["jobs"]["queued"] == 1, "for its policy it waits"
        assert daemon.status()["jobs"]["held"] == 0
        told = daemon.get(f"/api/v1/explain/host.pool.test%23{job}.0")
        assert "Outrider keeps it in the queue" in told["batch_system"]["sentence"]
        daemon.kill()
        pool.wait_until("its run", lambda: running(pool) == {job}, LEASE_S + 4 * CYCLE_S)
