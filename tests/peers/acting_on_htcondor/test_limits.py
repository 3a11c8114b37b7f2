"""Tests of what Outrider may not change in a pool, and of users' limits."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.running import shell
from tests.peers.acting_on_htcondor.acting_pool import (
    CYCLE_S,
    SLEEP,
    acting,
    acting_daemon,
    after_a_cycle,
    leased,
    queue,
    running,
)
from tests.peers.pool import HTCondorPool

pytestmark = pytest.mark.htcondor

ATTRIBUTES = (
    "OutriderBy",
    "OutriderFirst",
    "OutriderHeld",
    "OutriderHold",
    "OutriderPin",
    "OutriderPrefer",
    "OutriderUntil",
)


def test_in_shadow_not_one_attribute_of_any_job_changes(pool: HTCondorPool, tmp_path: Path) -> None:
    """Test with the right to edit every job, and with leases installed."""
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
        assert "lever_changes_refused" in daemon.log.read_text()


def test_doctor_says_whether_leases_are_installed_and_who_heeds_them(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    pool.submit(f"{SLEEP}requirements = false\nqueue\n", "alice")
    daemon = acting_daemon(pool, tmp_path)
    told = shell("doctor", "--config", str(daemon.config), **daemon.environ).out
    assert "leases at host.pool.test: installed; 1 of 1 waiting jobs support them" in told
    assert "may be set by root, condor, outrider@pool.test" in told


@contextmanager
def superuser(pool: HTCondorPool, user: str) -> Iterator[None]:
    """Let a user edit all users' jobs inside this context."""
    more = pool.run_dir / "config" / "90-superuser.config"
    more.write_text(f"QUEUE_SUPER_USERS = $(QUEUE_SUPER_USERS) {user}@pool.test\n")
    pool.run("root", "condor_reconfig")
    try:
        yield
    finally:
        more.unlink()
        pool.run("root", "condor_reconfig")


def test_doctor_proves_leases_on_a_job_of_its_own_and_leaves_nothing_behind(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    job = pool.submit(f"{SLEEP}requirements = false\nqueue\n", "alice")
    before = pool.run("root", "condor_q", "-allusers", "-long")
    more = 'defer_by = "hold"\nstart_first = true'
    daemon = acting_daemon(pool, tmp_path, user="bob", adapter=more)
    with superuser(pool, "bob"):  # who, unlike outrider, has an account there
        told = shell("doctor", "--levers", "--config", str(daemon.config), **daemon.environ)
    assert told.code == 0, told.out
    proof = "ok    lever htcondor: leased_attributes: lever at host.pool.test: test job"
    assert proof in told.out
    assert "was held back by a lease, released and removed" in told.out
    assert list(queue(pool, "JobStatus")) == [job]
    assert _lasting(pool.run("root", "condor_q", "-allusers", "-long")) == _lasting(before)


def test_without_an_account_doctor_says_that_it_cannot_try(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    """Test that editing other users' jobs needs no account."""
    daemon = acting_daemon(pool, tmp_path)
    told = shell("doctor", "--levers", "--config", str(daemon.config), **daemon.environ)
    assert told.code == 0, told.out
    assert (
        "warn  lever htcondor: leased_attributes: lever at host.pool.test: cannot be tr" in told.out
    )
    assert "not a valid user account" in told.out


def test_doctor_says_who_may_not_act_and_what_would_let_it(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    daemon = acting_daemon(pool, tmp_path, user="bob")
    told = shell("doctor", "--levers", "--config", str(daemon.config), **daemon.environ)
    assert told.code == 1
    assert (
        "fail  lever htcondor: leased_attributes: lever at host.pool.test: a lease is" in told.out
    )
    assert "QUEUE_SUPER_USERS" in told.out
    assert queue(pool, "JobStatus") == {}
