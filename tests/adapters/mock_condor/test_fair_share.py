"""Users get what HTCondor's priorities say, in the long run and at each cycle."""

import pytest

from tests.adapters.mock_condor.made_pool import (
    BEGIN_S,
    JOB,
    JobAction,
    Machine,
    MockPool,
    made_pool,
    running_of,
)

DAY_S = 86_400.0


def priorities(pool: MockPool) -> dict[str, float]:
    return {ad["Name"]: ad["Priority"] for ad in pool.negotiator("condor").getPriorities()}


def mean_running(pool: MockPool, user: str, users: tuple[str, ...], days: int) -> float:
    """Slots that a user has on the last of these days, while all want more than there are."""
    for _ in range(days):
        for each in users:
            waiting = pool.schedd(each).query(f'Owner == "{each}"', ["ProcId"])
            pool.submit(each, JOB, 3000, 600 - len(waiting))
        seen = []
        for _ in range(24):
            pool.advance(pool.now_s + 3600)
            seen.append(running_of(pool, user))
    return sum(seen) / len(seen)


def test_a_priority_halves_the_way_to_its_usage_in_a_half_life() -> None:
    pool = made_pool(8, update_interval_s=DAY_S, negotiator_interval_s=DAY_S)
    pool.submit("alice", JOB, 10 * DAY_S, 8)
    pool.negotiate()
    pool.advance(BEGIN_S + DAY_S)
    assert priorities(pool)["alice@mock.local"] == pytest.approx(1000 * (0.5 * 0.5 + 0.5 * 8))
    pool.schedd("alice").act(JobAction.Remove, "true")
    pool.advance(BEGIN_S + 2 * DAY_S)
    assert priorities(pool)["alice@mock.local"] == pytest.approx(1000 * 2.125)
    pool.advance(BEGIN_S + 30 * DAY_S)
    assert priorities(pool)["alice@mock.local"] == 500, "the best there is"


def test_users_of_equal_factor_come_to_use_the_same() -> None:
    pool = made_pool(20, negotiator_interval_s=600.0)
    assert mean_running(pool, "alice", ("alice",), 2) == pytest.approx(20, abs=1)
    both = ("alice", "bob")
    assert mean_running(pool, "bob", both, 1) > 11, "bob has used nothing so far and gets more"
    assert mean_running(pool, "bob", both, 6) == pytest.approx(10, abs=0.7)


def test_a_factor_of_four_halves_what_a_user_gets() -> None:
    """Share ~ 1 / (factor x usage), and usage is the share itself: it goes with the root."""
    pool = made_pool(20, negotiator_interval_s=600.0)
    pool.negotiator("condor").setFactor("bob@mock.local", 4000)
    alice = mean_running(pool, "alice", ("alice", "bob"), 6)
    assert alice == pytest.approx(20 * 2 / 3, abs=0.75)


def test_a_better_priority_is_served_first() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 60)
    pool.submit("bob", JOB, 60)
    pool.negotiator("condor").setPriority("alice@mock.local", 50)
    pool.negotiate()
    assert (running_of(pool, "alice"), running_of(pool, "bob")) == (0, 1)


def test_what_one_user_cannot_use_goes_to_the_others() -> None:
    pool = made_pool(20)
    pool.submit("alice", JOB, 60, 2)
    pool.submit("bob", JOB, 60, 100)
    pool.submit("carol", {**JOB, "requirements": "false"}, 60, 100)
    assert pool.negotiate() == 20
    assert (running_of(pool, "alice"), running_of(pool, "bob")) == (2, 18)


def test_a_slot_counts_by_its_cpus() -> None:
    pool = made_pool([Machine(name="big", cpus=8), Machine(name="small")])
    pool.submit("alice", JOB, 600, 2)
    pool.negotiate()
    (ad,) = pool.negotiator("condor").getPriorities()
    assert (ad["ResourcesUsed"], ad["WeightedResourcesUsed"]) == (2, 9)
    pool.advance(BEGIN_S + 3600)
    (ad,) = pool.negotiator("condor").getPriorities()
    assert (ad["ResourcesUsed"], ad["WeightedAccumulatedUsage"]) == (0, 9 * 600)


def test_a_ceiling_is_kept() -> None:
    pool = made_pool(5)
    pool.negotiator("condor").setCeiling("alice@mock.local", 3)
    pool.submit("alice", JOB, 60, 5)
    assert pool.negotiate() == 3


def test_an_accounting_group_is_a_user_of_its_own() -> None:
    pool = made_pool(2)
    pool.submit("alice", {**JOB, "accounting_group": "physics"}, 60)
    pool.submit("alice", JOB, 60)
    pool.negotiate()
    assert set(priorities(pool)) == {"physics.alice@mock.local", "alice@mock.local"}


def test_who_has_no_right_sets_no_priority_and_is_not_told() -> None:
    pool = made_pool(1)
    pool.submit("bob", JOB, 60)
    pool.negotiate()
    pool.negotiator("bob").setFactor("bob@mock.local", 1.0)
    assert priorities(pool)["bob@mock.local"] == 500
    with pytest.raises(ValueError, match=r"user@uid.domain"):
        pool.negotiator("condor").setFactor("bob", 1.0)
