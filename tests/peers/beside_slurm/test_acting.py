"""Tests of a daemon that acts next to a real Slurm: waiting, running and remaining jobs."""

import time
from functools import partial
from pathlib import Path

import pytest

from outrider.journal import Journal
from outrider.model.events import KIND_NAMES
from tests.cli.running import shell
from tests.peers.beside_slurm.acting_daemon import LEASE_S, SLACK_S, acting, begins_s, kept, runs
from tests.peers.beside_slurm.watched import of_slurm, submit
from tests.peers.slurm import Slurm

pytestmark = pytest.mark.slurm


def test_deferred_jobs_wait_beside_free_nodes_until_the_daemon_is_killed(
    slurm: Slurm, folder: Path, tmp_path: Path, full: list[str]
) -> None:
    with acting(slurm, tmp_path) as daemon:
        waits = [submit(slurm, folder, "-A", "alice", sleep_s=600) for _ in range(2)]
        goes = submit(slurm, folder, "-A", "bob", sleep_s=600)
        since_s = [begins_s(slurm, job) for job in waits]
        kept(daemon, 3)  # all, until the policy starts one
        slurm.run("scancel", *full)
        slurm.wait_until("bob's run", lambda: runs(slurm, goes))
        time.sleep(1.5 * LEASE_S)
        assert not any(runs(slurm, job) for job in waits), "nodes are free, and they are to wait"
        reported = daemon.get(f"/api/v1/explain/outrider:{waits[0]}")
        assert reported["lease"]["action"] == "defer"
        assert reported["batch_system"]["code"] == "BeginTime (Outrider's)"
        assert (
            "because Outrider asked for that: no user did" in reported["batch_system"]["sentence"]
        )
        assert reported["state"] == "queued"
        [lever] = daemon.status()["levers"]
        assert lever["changes"]["renewed"] >= 2
        assert lever["changes"]["refused"] == lever["changes"]["failed"] == 0
        daemon.kill()
        killed_s = time.monotonic()
        slurm.wait_until("alice's runs", lambda: runs(slurm, *waits), LEASE_S + SLACK_S)
        assert time.monotonic() - killed_s <= LEASE_S + SLACK_S
        daemon.start()
        daemon.wait_until("their starts", lambda s: s["jobs"]["running"] == 3)
        assert daemon.stop() == 0
    with Journal(tmp_path / "state" / "journal.sqlite", read_only=True) as journal:
        told_of = {job: [e for _, _, e in journal.inputs_after(0) if e[2] == f"outrider:{job}"]
                   for job in waits}  # fmt: skip
    for job, begun_s in zip(waits, since_s, strict=True):
        assert [KIND_NAMES[e[1]] for e in told_of[job]] == ["submitted", "started"], "no edit"
        submitted, started = told_of[job]
        assert submitted[3].eligible_s is None, "its wait is counted from its submission"
        assert submitted[0] == begun_s < begins_s(slurm, job) <= started[0]


def test_a_clean_stop_lets_all_begin_at_once(
    slurm: Slurm, folder: Path, tmp_path: Path, full: list[str]
) -> None:
    with acting(slurm, tmp_path) as daemon:
        job = submit(slurm, folder, "-A", "alice", sleep_s=600)
        kept(daemon, 1)
        slurm.run("scancel", *full)
        assert daemon.stop() == 0
        assert begins_s(slurm, job) <= time.time() + 1
        slurm.wait_until("its run", lambda: runs(slurm, job), SLACK_S)


def test_release_lets_go_what_a_killed_daemon_left(
    slurm: Slurm, folder: Path, tmp_path: Path, full: list[str]
) -> None:
    with acting(slurm, tmp_path) as daemon:
        jobs = [submit(slurm, folder, "-A", "alice", sleep_s=600) for _ in range(3)]
        kept(daemon, 3)
        daemon.kill()
        message = shell("release", "--config", str(daemon.config), **daemon.environ)
        assert (message.code, message.out) == (
            0,
            "slurm: leased_start_times: reverted for 3 jobs.\n",
        ), message
        assert all(begins_s(slurm, job) <= time.time() + 1 for job in jobs)
    assert full


def test_leases_outlive_a_controller_that_is_killed_and_lapse_all_the_same(
    slurm: Slurm, folder: Path, tmp_path: Path, full: list[str]
) -> None:
    with acting(slurm, tmp_path) as daemon:
        job = submit(slurm, folder, "-A", "alice", sleep_s=600)
        kept(daemon, 1)
        slurm.run("scancel", *full)
        time.sleep(6)  # what Slurm was told in the last seconds before a kill it may forget
        slurm.kill_controller()
        slurm.start_controller()
        assert not runs(slurm, job)
        renewed = daemon.status()["levers"][0]["changes"]["renewed"]
        daemon.wait_until("renewals", lambda s: s["levers"][0]["changes"]["renewed"] > renewed + 1)
        assert not runs(slurm, job)
        daemon.kill()
        slurm.wait_until("its run", lambda: runs(slurm, job), LEASE_S + SLACK_S)


def test_the_canary_acts_on_its_jobs_alone(
    slurm: Slurm, folder: Path, tmp_path: Path, full: list[str]
) -> None:
    with acting(slurm, tmp_path, "canary") as daemon:
        job = submit(slurm, folder, "-A", "alice", sleep_s=600)
        begun_s = begins_s(slurm, job)
        daemon.wait_until("its decision", lambda s: s["policies"][0]["decisions"] > 0)
        time.sleep(2)
        assert begins_s(slurm, job) == begun_s
        assert daemon.status()["levers"][0]["standing"] == {"start": 0, "defer": 0}
    assert full


def test_jobs_start_in_the_policys_order_whoever_they_belong_to(
    slurm: Slurm, folder: Path, tmp_path: Path, full: list[str]
) -> None:
    """Start the youngest job first, which Slurm never does; one node shows the order."""
    with acting(slurm, tmp_path, policy="youngest_first") as daemon:
        jobs = []
        for n in range(6):
            account = ("alice", "bob")[n % 2]
            jobs.append(submit(slurm, folder, "-A", account, "-w", "n1", "-c4"))
            time.sleep(1.1)  # Slurm's times are whole seconds
        kept(daemon, 6)
        slurm.run("scancel", full[0], full[1], full[2])
        slurm.wait_until("all ends", lambda: set(jobs) <= set(slurm.jobs("CD")), 120.0)
        started_s = {job: float(of_slurm(slurm, job)["StartTime"]) for job in jobs}
    assert sorted(jobs, key=started_s.__getitem__) == jobs[::-1], started_s


def test_in_shadow_not_one_attribute_of_any_job_changes(
    slurm: Slurm, folder: Path, tmp_path: Path, full: list[str]
) -> None:
    jobs = [submit(slurm, folder, "-A", "alice", "--hold", sleep_s=600) for _ in range(20)]
    jobs += [submit(slurm, folder, "-A", "bob", "--begin=now+900", sleep_s=600) for _ in range(20)]
    settled = partial(_all_looked_at, slurm, jobs)
    slurm.wait_until("a look of the scheduler at each", settled)
    before = {job: of_slurm(slurm, job) for job in jobs}
    with acting(slurm, tmp_path, "shadow") as daemon:
        waiting = submit(slurm, folder, "-A", "alice", sleep_s=600)
        daemon.wait_until("decisions", lambda s: s["policies"][0]["decisions"] > 0)
        time.sleep(LEASE_S)
        assert daemon.status()["levers"] == []
    after = {job: of_slurm(slurm, job) for job in jobs}
    changed = {(job, name): (value, after[job].get(name)) for job in jobs
               for name, value in before[job].items() if after[job].get(name) != value}  # fmt: skip
    assert {name for _, name in changed} <= {"LastSchedEval"}, changed
    assert begins_s(slurm, waiting) < time.time()
    assert full


def _all_looked_at(slurm: Slurm, jobs: list[str]) -> bool:
    shown = [of_slurm(slurm, job) for job in jobs]
    return all(
        one["Reason"].startswith("JobHeld")
        or (one["Reason"] == "BeginTime" and one["AccrueTime"] != "Unknown")
        for one in shown
    )
