"""Owners of machines come and go, and jobs have to make room."""

from tests.adapters.mock_condor.made_pool import (
    BEGIN_S,
    IDLE,
    JOB,
    RUNNING,
    Machine,
    MockPool,
    host,
    job_ad,
    made_pool,
    slot_ad,
    status,
)


def states(pool: MockPool, name: str = "slot1@m0") -> tuple[str, str]:
    ad = slot_ad(pool, name)
    return ad["State"], ad["Activity"]


def test_an_owners_return_evicts_the_job_as_in_a_real_pool() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 1000)
    pool.negotiate()
    pool.advance(BEGIN_S + 400)
    pool.owner_came("m0")
    ad = job_ad(pool, "1.0")
    assert (ad["JobStatus"], ad["LastJobStatus"]) == (IDLE, RUNNING)
    assert (ad["VacateReasonCode"], ad["VacateReason"]) == (1005, "")
    assert ad["LastVacateTime"] == ad["EnteredCurrentStatus"] == int(BEGIN_S) + 400
    assert ad["LastRemoteHost"] == "slot1@m0"
    assert "RemoteHost" not in ad
    assert ad["LastRemoteWallClockTime"] == ad["RemoteWallClockTime"] == 400
    assert ad["CumulativeSlotTime"] == 400
    assert ad["ExitReason"].startswith("died on signal 15")
    assert (ad["JobRunCount"], ad["NumShadowStarts"], ad["NumJobStarts"]) == (1, 1, 1)


def test_an_evicted_job_runs_again_elsewhere_from_the_beginning() -> None:
    pool = made_pool(2)
    pool.submit("alice", JOB, 1000)
    pool.negotiate()
    first = host(pool, "1.0")
    assert first is not None
    pool.advance(BEGIN_S + 400)
    pool.owner_came(first.removeprefix("slot1@"))
    pool.negotiate()
    second = host(pool, "1.0")
    assert second not in (None, first)
    ad = job_ad(pool, "1.0")
    assert (ad["JobRunCount"], ad["NumShadowStarts"], ad["NumJobStarts"]) == (2, 2, 2)
    pool.advance(BEGIN_S + 400 + 999)
    assert status(pool, "1.0") == RUNNING
    pool.advance(BEGIN_S + 400 + 1000)
    ad = job_ad(pool, "1.0")
    assert ad["CompletionDate"] == int(BEGIN_S) + 1400
    assert (ad["RemoteWallClockTime"], ad["LastRemoteWallClockTime"]) == (1400, 1000)


def test_a_slot_tells_of_its_owner_and_its_claims() -> None:
    pool = made_pool(1)
    assert states(pool) == ("Unclaimed", "Idle")
    pool.submit("alice", JOB, 1000)
    pool.advance(BEGIN_S + 100)
    ad = slot_ad(pool, "slot1@m0")
    assert states(pool) == ("Claimed", "Busy")
    assert (ad["RemoteOwner"], ad["JobId"]) == ("alice@mock.local", "1.0")
    assert ad["EnteredCurrentState"] == int(BEGIN_S) + 60, "one negotiation cycle later"
    pool.owner_came("m0")
    ad = slot_ad(pool, "slot1@m0")
    assert states(pool) == ("Owner", "Idle")
    assert (ad["OwnerActive"], ad["KeyboardIdle"]) == (True, 0)
    assert not {"RemoteOwner", "JobId", "JobStart", "PublicClaimId"} & set(ad)
    pool.advance(BEGIN_S + 130)
    pool.owner_went("m0")
    ad = slot_ad(pool, "slot1@m0")
    assert states(pool) == ("Unclaimed", "Idle")
    assert (ad["TotalTimeUnclaimedIdle"], ad["TotalTimeClaimedBusy"]) == (60, 40)
    assert (ad["TotalTimeOwnerIdle"], ad["JobStarts"]) == (30, 1)


def test_a_machine_that_waits_for_a_quiet_keyboard_opens_by_its_next_update() -> None:
    patient = Machine(name="m0", start="OwnerActive isnt true && KeyboardIdle > 900")
    pool = made_pool([patient], update_interval_s=300)
    pool.owner_came("m0")
    pool.advance(BEGIN_S + 100)
    pool.owner_went("m0")
    pool.submit("alice", JOB, 10)
    pool.advance(BEGIN_S + 1199)
    assert states(pool) == ("Owner", "Idle")
    pool.advance(BEGIN_S + 1200)
    assert slot_ad(pool, "slot1@m0")["KeyboardIdle"] == 1100
    assert status(pool, "1.0") == RUNNING


def test_an_owner_takes_all_slots_of_the_machine_and_no_other() -> None:
    pool = made_pool([Machine(name="m0", slots=2), Machine(name="m1")])
    pool.submit("alice", JOB, 1000, 3)
    assert pool.negotiate() == 3
    pool.owner_came("m0")
    assert {states(pool, f"slot{n}@m0") for n in (1, 2)} == {("Owner", "Idle")}
    assert states(pool, "slot1@m1") == ("Claimed", "Busy")


def test_a_job_that_the_machine_puts_up_with_stays() -> None:
    kind = Machine(name="m0", start='OwnerActive isnt true || TARGET.Owner == "alice"')
    pool = made_pool([kind])
    pool.owner_came("m0")
    pool.submit("alice", JOB, 1000)
    pool.submit("bob", JOB, 1000)
    assert pool.negotiate() == 1, "the slot is its owner's, and still takes this job"
    pool.advance(BEGIN_S + 700)
    assert status(pool, "1.0") == RUNNING


def test_a_machine_that_leaves_gives_its_job_back() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 1000)
    pool.negotiate()
    pool.leave("m0")
    assert status(pool, "1.0") == IDLE
    assert pool.collector().query(constraint='MyType == "Machine"') == []
    pool.join(Machine(name="m0"))
    assert pool.negotiate() == 1


def test_a_run_that_ends_as_the_owner_comes_is_over_first() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 500)
    pool.negotiate()
    pool.advance(BEGIN_S + 500)
    pool.owner_came("m0")
    assert "CompletionDate" in job_ad(pool, "1.0")
