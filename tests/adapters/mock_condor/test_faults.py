"""Tests that injected faults occur, and no others."""

import pytest

from outrider_adapters.htcondor.pool_calls import HTCondorException
from tests.adapters.mock_condor.made_pool import (
    BEGIN_S,
    JOB,
    AdType,
    Faults,
    JobAction,
    hosts,
    job_ad,
    made_pool,
    slot_ad,
)


def test_a_refused_edit_returns_success_and_changes_nothing() -> None:
    pool = made_pool(1, faults=Faults(refused_edit_ratio=0.3))
    pool.submit("alice", JOB, 100, 200)
    assert pool.schedd("alice").edit("true", "JobPrio", "7") == 200
    changed = len(pool.schedd("alice").query("JobPrio == 7"))
    assert 100 < changed < 180


def test_the_collector_is_behind_by_so_many_seconds() -> None:
    pool = made_pool(1, faults=Faults(stale_s=100))
    assert pool.collector().query(AdType.Startd) == []
    pool.advance(BEGIN_S + 200)
    pool.owner_came("m0")
    pool.advance(BEGIN_S + 299)
    ad = slot_ad(pool, "slot1@m0")
    assert (ad["State"], ad["LastHeardFrom"]) == ("Unclaimed", int(BEGIN_S))
    pool.advance(BEGIN_S + 300)
    ad = slot_ad(pool, "slot1@m0")
    assert (ad["State"], ad["LastHeardFrom"]) == ("Owner", int(BEGIN_S) + 200)


def test_an_answer_takes_as_long_as_it_is_told_to() -> None:
    slept: list[float] = []
    pool = made_pool(1, faults=Faults(answer_delay_s=2.5), sleep=slept.append)
    pool.submit("alice", JOB, 100)
    pool.schedd("alice").query()
    pool.schedd("alice").edit("true", "JobPrio", "1")
    pool.schedd("alice").act(JobAction.Hold, "true")
    pool.collector().query()
    pool.negotiator("condor").getPriorities()
    assert slept == [2.5] * 5


def test_during_an_outage_every_call_raises_what_htcondor_raises() -> None:
    faults = Faults(outage_from_s=BEGIN_S + 10, outage_until_s=BEGIN_S + 20)
    pool = made_pool(1, faults=faults)
    pool.submit("alice", JOB, 100)
    pool.advance(BEGIN_S + 10)
    schedd = pool.schedd("alice")
    for call in (
        schedd.query,
        schedd.history,
        schedd.reschedule,
        lambda: schedd.edit("true", "JobPrio", "1"),
        lambda: schedd.act(JobAction.Remove, "true"),
        lambda: schedd.submit({"executable": "/bin/sleep", "arguments": "1"}),
        pool.collector().query,
        pool.negotiator("condor").getPriorities,
        lambda: pool.negotiator("condor").setFactor("a@b", 2.0),
    ):
        with pytest.raises(HTCondorException):
            call()
    pool.advance(BEGIN_S + 20)
    assert [ad["JobPrio"] for ad in schedd.query()] == [0], "nothing was done meanwhile"


def test_some_calls_fail_at_random() -> None:
    pool = made_pool(1, faults=Faults(outage_ratio=0.2))
    failed = 0
    for _ in range(500):
        try:
            pool.schedd("alice").query()
        except HTCondorException:
            failed += 1
    assert 60 < failed < 140


def test_some_ads_come_twice() -> None:
    pool = made_pool(100, faults=Faults(duplicate_ad_ratio=0.5))
    names = [ad["Name"] for ad in pool.collector().query(AdType.Startd)]
    assert 120 < len(names) < 180
    assert len(set(names)) == 100


def test_faults_change_nothing_of_what_happens() -> None:
    def placed(faults: Faults) -> dict[str, str]:
        pool = made_pool(30, faults=faults)
        pool.submit("alice", JOB, 1000, 20)
        for _ in range(7):
            pool.collector().query()
        pool.negotiate()
        pool.owner_came("m3")
        pool.negotiate()
        return {f"{job.name}": job.slot.name for job in pool.queue.jobs.values() if job.slot}

    assert placed(Faults()) == placed(Faults(duplicate_ad_ratio=0.5, stale_s=30))


def test_no_fault_is_the_default() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 100)
    pool.schedd("alice").edit("true", "JobPrio", "3")
    pool.negotiate()
    assert (job_ad(pool, "1.0")["JobPrio"], hosts(pool)) == (3, {"1.0": "slot1@m0"})
