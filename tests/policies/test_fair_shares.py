"""Rules that sites run: fair share by decayed usage, Slurm's multifactor, SJF within shares."""

from typing import Any

import pytest

from outrider.api import Policy
from outrider.model.modes import FIRST_FIT, STRICT
from outrider.testing.fixtures import HandSite
from outrider_policies.rules.shares import FairShare, FairShareSettings, FairShareSjf, Multifactor

DAY_S = 86_400.0
FAIR = [FairShare, Multifactor]


def used(
    kind: type[Policy], *used_s: tuple[str, float], shares: dict[str, float] | None = None,
    **settings: Any,
) -> HandSite:  # fmt: skip
    """Return a site whose one machine served these VOs in turn, and now runs job 99 of `x`."""
    site = HandSite(kind, STRICT, shares, **settings)
    site.machines(1)
    for number, (vo, seconds) in enumerate([*used_s, ("x", 0.0)], 99 - len(used_s)):
        site.submit(number, vo=vo)
        assert site.tick() == [number]
        site.now += seconds
        if number < 99:
            site.complete(number)
    return site


def order_of(site: HandSite, jobs: int) -> list[int]:
    """Job 99 ends; the order in which others start that take no time."""
    site.complete(99)
    order = []
    for _ in range(jobs):
        (job,) = site.tick()
        order.append(job)
        site.complete(job)
    return order


@pytest.mark.parametrize("kind", FAIR)
def test_who_used_less_comes_first_and_within_a_vo_the_oldest(kind: type[Policy]) -> None:
    site = used(kind, ("a", 5000.0), ("b", 2000.0), ("c", 3000.0))
    for number, vo in enumerate("abcab"):
        site.submit(number, vo=vo)
    assert order_of(site, 5) == [1, 4, 2, 0, 3]


@pytest.mark.parametrize("kind", FAIR)
def test_who_used_nothing_comes_before_who_used_half_a_second(kind: type[Policy]) -> None:
    site = used(kind, ("a", 0.5))
    site.submit(0, vo="a")
    site.submit(1, vo="b")
    assert order_of(site, 2) == [1, 0]


@pytest.mark.parametrize("kind", FAIR)
def test_usage_counts_in_relation_to_what_is_owed(kind: type[Policy]) -> None:
    shares = {"a": 0.6, "b": 0.1, "x": 0.3}
    site = used(kind, ("a", 5000.0), ("b", 1000.0), shares=shares)  # 8,333 a share against 10,000
    site.submit(0, vo="b")
    site.submit(1, vo="a")
    assert order_of(site, 2) == [1, 0]


@pytest.mark.parametrize("kind", FAIR)
def test_a_vo_that_is_owed_nothing_comes_last(kind: type[Policy]) -> None:
    site = used(kind, ("a", 5000.0), shares={"a": 0.5, "x": 0.5})
    site.submit(0, vo="guest")
    site.submit(1, vo="a")
    said = site.policy.explain(site.site.jobs[0], site.site)
    assert ("no target share" if kind is FairShare else "fair share 0,") in said
    assert order_of(site, 2) == [1, 0]


@pytest.mark.parametrize("kind", FAIR)
@pytest.mark.parametrize(("half_life_s", "first"), [(DAY_S, 0), (1000 * DAY_S, 1)])
def test_old_usage_is_forgotten_by_half_life(
    kind: type[Policy], half_life_s: float, first: int
) -> None:
    """Check VO a, 4,000 s used five days ago, against VO b, 1,000 s used now."""
    site = HandSite(kind, STRICT, half_life_s=half_life_s)
    site.machines(1)
    for number, vo, seconds, idle_s in (
        (97, "a", 4000.0, 5 * DAY_S), (98, "b", 1000.0, 0.0), (99, "x", 0.0, 0.0),
    ):  # fmt: skip
        site.submit(number, vo=vo)
        assert site.tick() == [number]
        site.now += seconds
        if number < 99:
            site.complete(number)
            site.submit(10 * number, vo=vo)  # the policy looks, and the job is gone at once
            assert site.tick() == [10 * number]
            site.complete(10 * number)
        site.now += idle_s
    site.submit(1, vo="b")
    site.submit(0, vo="a")
    assert order_of(site, 2) == [first, 1 - first]


def test_what_runs_counts_as_used() -> None:
    site = HandSite(FairShare, STRICT)
    site.machines(1, 1)
    site.submit(0, vo="a")
    assert site.tick() == [0]
    site.submit(1, vo="b")
    assert site.tick(100.0) == [1]
    site.submit(2, vo="a")
    site.submit(3, vo="b")
    site.tick(1000.0)  # a: 1,100 s, b: 1,000 s, and neither has ended
    site.complete(0)
    assert site.tick() == [3]


def test_usage_survives_a_restart_and_another_half_life_is_refused() -> None:
    site = used(FairShare, ("a", 5000.0), ("b", 2000.0))
    site.submit(0, vo="a")
    site.submit(1, vo="b")
    saved = site.policy.save(site.site)
    again: Policy = FairShare(FairShareSettings(), site.policy.rng)
    again.restore(saved, site.site)
    assert again.save(site.site) == saved
    assert saved["usage"]["a"] > saved["usage"]["b"] > 0
    other = FairShare(FairShareSettings(half_life_s=60.0), site.policy.rng)
    with pytest.raises(ValueError, match="expected 60 s"):
        other.restore(saved, site.site)


def test_asking_why_changes_no_usage() -> None:
    site = used(FairShare, ("a", 5000.0), ("b", 2000.0))
    site.submit(0, vo="a")
    before = site.policy.save(site.site)
    site.now += 1000.0
    said = site.policy.explain(site.site.jobs[0], site.site)
    assert "used 71% of the CPU time delivered, its target share is 33%" in said
    assert site.policy.save(site.site) == before


def test_multifactor_weighs_age_size_and_class() -> None:
    """Each factor alone decides where its weight is the only one."""
    alone: dict[str, Any] = {
        "age_weight": 0.0,
        "fair_share_weight": 0.0,
        "size_weight": 0.0,
        "qos_weight": 0.0,
    }
    for name, first in (("age_weight", 0), ("size_weight", 1), ("qos_weight", 2)):
        site = HandSite(Multifactor, STRICT, **alone | {name: 1.0})
        site.machines(4)
        site.submit(99, cpus=4)
        assert site.tick() == [99]
        site.submit(0)
        site.tick(1000.0)
        site.submit(1, cpus=3)
        site.submit(2, job_class="interactive")
        site.tick(10.0)
        site.complete(99)
        assert site.tick()[0] == first


def test_multifactor_says_the_parts_of_the_priority() -> None:
    """Check half of the longest age, 2 of 4 CPUs, and a share factor of 2^-2."""
    site = HandSite(Multifactor, STRICT, {"a": 0.5, "b": 0.5}, qos_weight=50.0)
    site.machines(4)
    site.submit(99, cpus=4, vo="a")
    assert site.tick() == [99]
    site.submit(0, cpus=2, vo="a", job_class="interactive")
    site.tick(302_400.0)
    said = site.policy.explain(site.site.jobs[0], site.site)
    assert "priority is 3550: age 500, fair share 2500, size 500, quality of service 50" in said


def test_fair_share_sjf_serves_the_vo_with_fewest_running_and_its_shortest_job() -> None:
    site = HandSite(FairShareSjf, STRICT)
    site.machines(1, 1, 1, 1)
    site.submit(0, vo="a", estimate_s=10.0)
    site.submit(1, vo="a", estimate_s=20.0)
    site.submit(2, vo="a", estimate_s=5.0)
    site.submit(3, vo="b", estimate_s=900.0)
    site.submit(4, vo="b", estimate_s=300.0)
    site.submit(5, vo="b")
    # None runs: the shortest of all. Then b has fewer: its shortest. Then the two are equal again.
    assert site.tick() == [2, 4, 0, 3]
    site.complete(3)
    site.complete(4)
    assert site.tick() == [5, 1]  # b runs on none, a on two


def test_fair_share_sjf_goes_by_cpus_for_the_share() -> None:
    site = HandSite(FairShareSjf, STRICT, {"a": 0.75, "b": 0.25})
    site.machines(1, 1, 1, 1)
    for number in range(4):
        site.submit(number, vo="a", estimate_s=10.0 + number)
        site.submit(10 + number, vo="b", estimate_s=1.0 + number)
    started = site.tick()
    assert sorted(started) == [0, 1, 2, 10]
    said = site.policy.explain(site.site.jobs[3], site.site)
    assert "VO a runs on 3 CPUs" in said


def test_also_behind_one_that_has_to_wait_the_order_is_made_anew_after_each_start() -> None:
    site = HandSite(FairShareSjf, FIRST_FIT)
    site.machines(2)
    site.submit(9, vo="z", estimate_s=10.0)
    assert site.tick() == [9]
    site.machines(1)
    site.submit(0, vo="a", cpus=2, estimate_s=1.0)
    for number, vo in ((1, "b"), (2, "b"), (3, "c")):
        site.submit(number, vo=vo, estimate_s=5.0 + number)
    assert site.tick() == [1, 3], "after job 1 b has a CPU and c none"


def test_without_an_estimate_a_job_is_last_of_its_vo() -> None:
    site = HandSite(FairShareSjf, STRICT)
    site.machines(1)
    site.submit(99, vo="x")
    assert site.tick() == [99]
    site.submit(0, vo="a")
    site.submit(1, vo="a", estimate_s=1e6)
    site.complete(99)
    assert site.tick() == [1]
    assert "has none" in site.policy.explain(site.site.jobs[0], site.site)
