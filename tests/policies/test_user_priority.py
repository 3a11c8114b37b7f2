"""HTCondor's user priorities: who used less is served first, each up to a slice of the pool."""

from typing import Any

import pytest

from outrider.model.modes import FIRST_FIT
from outrider.testing.fixtures import HandSite
from outrider_policies.rules.user_priority import UserPriority

DAY_S = 86_400.0


def pool(machines: int, **settings: Any) -> HandSite:
    site = HandSite(UserPriority, FIRST_FIT, **settings)
    site.machines(*[1] * machines)
    return site


def priority_of(site: HandSite, job: int) -> float:
    """Return the priorities from the policy's explanations."""
    said = site.policy.explain(site.site.jobs[job], site.site)
    return float(said.split(" is ")[1].split()[0])


def test_a_priority_comes_half_the_way_to_the_cpus_of_its_user_in_a_half_life() -> None:
    site = pool(9)
    for job in range(8):
        site.submit(job, user="ann")
    site.tick()
    site.tick(DAY_S)
    assert priority_of(site, 0) == 4.0
    site.tick(DAY_S)
    assert priority_of(site, 0) == 6.0
    for job in range(8):
        site.complete(job)
    site.tick(DAY_S)
    site.submit(9, user="ann")
    assert priority_of(site, 9) == 3.0
    site.tick(30 * DAY_S)
    assert priority_of(site, 9) == 0.5


def test_nobody_is_better_than_a_half() -> None:
    site = pool(1)
    site.submit(0, user="ann")
    assert priority_of(site, 0) == 0.5


@pytest.mark.parametrize(("half_life_s", "first"), [(DAY_S, 1), (1000.0, 2)])
def test_who_used_less_lately_comes_first(half_life_s: float, first: int) -> None:
    """Ann had ten CPUs for a day, some days ago; bob had five until now."""
    site = pool(10, half_life_s=half_life_s)
    for job in range(10, 20):
        site.submit(job, user="ann")
    site.tick()
    site.tick(DAY_S)
    for job in range(10, 20):
        site.complete(job)
    site.tick(DAY_S / 4)
    for job in range(20, 25):
        site.submit(job, user="bob")
    site.tick()
    site.tick(DAY_S / 4)
    for job in range(30, 35):
        site.submit(job, user="eve")  # fills the pool
    site.tick()
    site.submit(2, user="ann")
    site.submit(1, user="bob")
    site.complete(20)
    assert site.tick() == [first]


def test_each_gets_a_slice_of_the_pool_and_the_rest_is_dealt_out_again() -> None:
    """Check that both at the best priority get six of twelve CPUs, in any order."""
    site = pool(12)
    for job in range(20):
        site.submit(job, user="ann")
    for job in range(20, 24):
        site.submit(job, user="bob")
    started = site.tick()
    assert sorted(started) == [*range(8), 20, 21, 22, 23]
    assert [job for job in started if job < 20] == [*range(8)]


def test_a_slice_counts_what_already_runs() -> None:
    site = pool(12)
    for job in range(9):
        site.submit(job, user="ann")
    site.tick()
    for job in range(10, 20):
        site.submit(job, user="ann")
    for job in range(20, 30):
        site.submit(job, user="bob")
    assert site.tick() == [20, 21, 22]


def test_wide_jobs_use_up_their_users_slice() -> None:
    site = HandSite(UserPriority, FIRST_FIT)
    site.machines(8)
    site.submit(0, user="ann", cpus=4)
    site.submit(1, user="ann", cpus=4)
    site.submit(2, user="bob", cpus=2)
    site.submit(3, user="bob", cpus=2)
    assert site.tick() == [0, 2, 3]


def test_any_free_machine_is_as_likely() -> None:
    site = pool(4)
    at = []
    for job in range(200):
        site.submit(job, user="ann")
        site.tick()
        at.append(site.site.jobs[job].machine)
        site.complete(job)
    assert min(at.count(machine) for machine in range(4)) > 25  # 50 expected, sigma 6


def test_it_goes_on_where_it_was_and_not_with_another_half_life() -> None:
    site = pool(2)
    site.submit(0, user="ann")
    site.tick()
    site.tick(DAY_S)
    site.complete(0)
    saved = site.policy.save(site.site)
    other = pool(2)
    other.now = site.now
    other.policy.restore(saved, other.site)
    other.tick()
    other.submit(0, user="ann")
    assert priority_of(other, 0) == 0.5
    assert other.policy.save(other.site) == saved
    with pytest.raises(ValueError, match="expected 60 s"):
        pool(1, half_life_s=60.0).policy.restore(saved, other.site)
