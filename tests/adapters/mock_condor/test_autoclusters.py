"""Alike jobs are matched once, and never with jobs that only look alike."""

import random

import pytest

from tests.adapters.mock_condor.made_pool import JOB, Machine, MockPool, job_ad, made_pool, slot_ad


def autocluster(pool: MockPool, name: str) -> int:
    return int(job_ad(pool, name)["AutoClusterId"])


def test_jobs_that_no_machine_can_tell_apart_form_one_autocluster() -> None:
    pool = made_pool(2)
    pool.submit("alice", {**JOB, "arguments": "1", "priority": "3"}, 60)
    pool.submit("bob", {**JOB, "arguments": "2", "+Colour": '"red"'}, 60)
    pool.negotiate()
    assert autocluster(pool, "1.0") == autocluster(pool, "2.0")


def test_what_a_machine_reads_of_jobs_tells_them_apart() -> None:
    pool = made_pool([Machine(name="m", start='TARGET.Colour == "red"')])
    pool.submit("alice", {**JOB, "+Colour": '"blue"'}, 60)
    pool.submit("alice", {**JOB, "+Colour": '"red"'}, 60)
    assert pool.negotiate() == 1
    assert autocluster(pool, "1.0") != autocluster(pool, "2.0")
    assert "colour" in job_ad(pool, "1.0")["AutoClusterAttrs"].split(",")


def test_a_machine_that_reads_something_new_parts_jobs_that_were_alike() -> None:
    pool = made_pool([Machine(name="m", start="false")])
    for colour in ("blue", "red"):
        pool.submit("alice", {**JOB, "+Colour": f'"{colour}"'}, 60)
    pool.negotiate()
    assert autocluster(pool, "1.0") == autocluster(pool, "2.0")
    pool.publish("m", "Start", 'TARGET.Colour == "red"')
    assert pool.negotiate() == 1
    assert autocluster(pool, "1.0") != autocluster(pool, "2.0")
    assert job_ad(pool, "2.0")["RemoteHost"] == "slot1@m"


def test_an_attribute_behind_an_attribute_counts() -> None:
    pool = made_pool(1)
    nested = {**JOB, "request_memory": "MY.Base * 2"}
    pool.submit("alice", {**nested, "+Base": "4096"}, 60)
    pool.submit("alice", {**nested, "+Base": "64"}, 60)
    assert pool.negotiate() == 1
    assert job_ad(pool, "2.0")["JobStatus"] == 2


def test_so_does_one_behind_what_a_machine_reads() -> None:
    pool = made_pool([Machine(name="m", start="TARGET.Wanted is true")])
    for shade in ("dark", "light"):
        wanted = {"+Wanted": 'MY.Shade == "light"', "+Shade": f'"{shade}"'}
        pool.submit("alice", {**JOB, **wanted}, 60)
    assert pool.negotiate() == 1
    assert job_ad(pool, "2.0")["RemoteHost"] == "slot1@m"


def test_an_edited_job_is_sorted_anew() -> None:
    pool = made_pool(1)
    pool.submit("alice", {**JOB, "request_memory": "1TB"}, 60)
    assert pool.negotiate() == 0
    before = autocluster(pool, "1.0")
    pool.schedd("alice").edit("1.0", "RequestMemory", "1")
    assert pool.negotiate() == 1
    assert autocluster(pool, "1.0") != before


@pytest.mark.parametrize("seed", range(8))
def test_a_job_is_left_waiting_only_if_no_free_slot_matches_it(seed: int) -> None:
    """Against matching every waiting job with every free slot one by one."""
    rng = random.Random(seed)
    machines = [
        Machine(
            name=f"m{n}",
            cluster=rng.choice("ABC"),
            memory_mb=rng.choice((512, 2048, 8192)),
            start=rng.choice(("true", "TARGET.RequestMemory < 1000", 'TARGET.Owner != "bob"')),
        )
        for n in range(25)
    ]
    pool = made_pool(machines, seed=seed)
    for _ in range(60):
        wish = rng.choice(("true", 'MachineCluster == "A"', "MachineCluster != MY.Not"))
        asks = {"request_memory": rng.choice(("100", "1000", "4000")), "+Not": '"C"'}
        pool.submit(rng.choice(("alice", "bob", "carol")), {**JOB, "requirements": wish, **asks}, 9)
    started = pool.negotiate()
    jobs = pool.schedd("alice").query()
    running = [ad for ad in jobs if ad["JobStatus"] == 2]
    waiting = [ad for ad in jobs if ad["JobStatus"] == 1]
    slots = [slot_ad(pool, f"slot1@m{n}") for n in range(25)]
    free = [ad for ad in slots if ad["State"] in ("Unclaimed", "Owner")]
    assert started == len(running) == 25 - len(free)
    assert not any(job.symmetricMatch(slot) for job in waiting for slot in free)
    by_name = {ad["Name"]: ad for ad in slots}
    assert all(job.symmetricMatch(by_name[job["RemoteHost"]]) for job in running)
