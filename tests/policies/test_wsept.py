"""wsept: run times learned by kind of job, and the order that costs least in expectation."""

import random
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from outrider.model.events import CHANGED
from outrider.model.jobs import JobSpec
from outrider.model.modes import STRICT
from outrider.testing.fixtures import HandSite
from outrider_policies.estimators.learned import MIDDLES_S, Kind
from outrider_policies.wsept import ExpectedLengths, Wsept, WseptSettings, weighted_length_s

HOUR_S = 3600.0


def kind(user: str, requested_s: float | None = None, cpus: int = 1) -> Kind:
    return Kind("batch", user, "all", requested_s, cpus)


def at(*runs_s: float) -> NDArray[np.float64]:
    """A distribution: one of these, each as likely."""
    likely = np.zeros(len(MIDDLES_S))
    for run_s in runs_s:
        likely[np.abs(np.log(MIDDLES_S / run_s)).argmin()] += 1.0 / len(runs_s)
    return likely


def learned(**runs_s: list[float]) -> ExpectedLengths:
    """Lengths after these run times, by user."""
    lengths = ExpectedLengths(1000)
    for _ in range(60):
        for user, theirs in runs_s.items():
            for run_s in theirs:
                lengths.learn(kind(user), run_s)
    return lengths


def test_the_length_of_what_is_sure_is_the_run_time_itself() -> None:
    for run_s in (15.0, 600.0, 86_400.0):
        assert weighted_length_s(at(run_s)) == pytest.approx(run_s, rel=0.09)  # half a bin


def test_the_length_of_what_may_be_short_or_long_is_as_in_the_formula() -> None:
    by_hand = sqrt(3630.0 / ((1 / 60.0 + 1 / 7200.0) / 2))
    assert by_hand == pytest.approx(657.2, rel=0.001)
    assert weighted_length_s(at(60.0, 7200.0)) == pytest.approx(by_hand, rel=0.09)
    assert weighted_length_s(at(60.0, 7200.0)) < weighted_length_s(at(3630.0)) / 5
    assert weighted_length_s(at(60.0, 7200.0), 60.0) == pytest.approx(60.0, rel=0.09)


def test_below_ten_seconds_waiting_costs_no_more() -> None:
    assert weighted_length_s(at(2.5)) == pytest.approx(sqrt(2.5 * 10.0), rel=0.09)


def test_what_jobs_of_a_user_took_is_learned() -> None:
    lengths = learned(ann=[600.0], bob=[7200.0])
    assert lengths.length_s(kind("ann")) < lengths.length_s(kind("bob")) / 3
    assert lengths.median_s(kind("ann")) == pytest.approx(600.0, rel=0.2)
    assert lengths.median_s(kind("bob")) == pytest.approx(7200.0, rel=0.2)


def test_no_job_is_expected_to_run_beyond_its_request() -> None:
    lengths = learned(ann=[7200.0])
    assert lengths.length_s(kind("ann", 300.0)) <= 300.0
    assert lengths.median_s(kind("ann", 300.0)) <= 300.0


def test_before_anything_ended_requests_give_the_order() -> None:
    lengths = ExpectedLengths(1000)
    asked = [lengths.length_s(kind("ann", s)) for s in (600.0, 7200.0, 86_400.0, None)]
    assert asked == sorted(asked)
    assert asked[0] < 600.0


def site_that_knows(**settings: Any) -> HandSite:
    """One machine; 30 jobs each of ann (30 s) and of bob (an hour) have ended on it."""
    site = HandSite(Wsept, STRICT, **settings)
    site.machines(1)
    number = 1000
    for _ in range(30):
        for user, run_s in (("ann", 30.0), ("bob", HOUR_S)):
            number += 1
            site.submit(number, user=user)
            assert site.tick() == [number]
            site.now += run_s
            site.complete(number)
    return site


def started(site: HandSite) -> int:
    """Return the job that starts, which ends immediately."""
    (job,) = site.tick()
    site.complete(job)
    return job


def test_whose_jobs_were_short_comes_first_without_any_class_or_request() -> None:
    site = site_that_knows()
    site.submit(1, user="bob")
    site.submit(2, user="ann")
    site.submit(3, user="ann")
    said = site.policy.explain(site.site.jobs[1], site.site)
    assert "half of the jobs of this kind are expected to run less than" in said
    assert [started(site) for _ in range(3)] == [2, 3, 1]


@pytest.mark.parametrize(("of_hers_ended", "order"), [(0, [2]), (9, [1, 2])])
def test_what_is_learned_while_a_job_waits_counts_for_it(
    of_hers_ended: int, order: list[int]
) -> None:
    """Check an unknown user eve, and ann's short jobs; then others of eve's end after 2 s."""
    site = site_that_knows()
    site.machines(*[1] * 9)
    for number in range(50, 59):
        site.submit(number, user="eve")
    site.submit(99, user="bob")
    assert len(site.tick()) == 10
    site.submit(1, user="eve")
    site.submit(2, user="ann")
    site.tick(2.0)
    for number in range(50, 50 + of_hers_ended):
        site.complete(number)
    site.complete(99)
    assert site.tick()[:2] == order


def test_who_has_waited_for_too_long_comes_first_oldest_first() -> None:
    site = site_that_knows(oldest_first_after_s=1000.0)
    site.submit(99, user="ann")
    assert site.tick() == [99]
    site.submit(1, user="bob")
    site.tick(10.0)
    site.submit(2, user="bob")
    site.tick(1200.0)
    site.submit(3, user="ann")
    assert "only older jobs" in site.policy.explain(site.site.jobs[1], site.site)
    site.complete(99)
    assert [started(site) for _ in range(3)] == [1, 2, 3]


def test_it_goes_on_from_what_it_saved_and_forgets_no_job_that_waits() -> None:
    site = site_that_knows()
    saved = site.policy.save(site.site)
    again = Wsept(WseptSettings(), random.Random(0))
    again.restore(saved, site.site)
    assert again.save(site.site) == saved
    site.submit(1, user="bob")
    site.submit(2, user="ann")
    assert again.explain(site.site.jobs[1], site.site) == site.policy.explain(
        site.site.jobs[1], site.site
    )


def test_a_restart_puts_the_queue_in_the_same_order_whatever_was_learned_since() -> None:
    """Check that a job's assumed length lasts until a job of its user ends or over a restart."""
    site = site_that_knows()
    site.submit(1, user="new")
    job, policy = site.site.jobs[1], site.policy
    length_s = policy._length_s(job)
    for _ in range(20):  # others end meanwhile, and all kinds learn of it
        policy._expected.learn(kind("ann"), 50_000.0)
    assert policy._expected.length_s(kind("new")) != length_s, "judged anew it would be another"
    again = Wsept(WseptSettings(), random.Random(0))
    again.restore(policy.save(site.site), site.site)
    assert again._length_s(job) == policy._length_s(job) == length_s


def test_a_request_that_is_edited_while_the_job_waits_counts_at_once() -> None:
    site = site_that_knows()
    site.submit(1, user="new", estimate_s=36_000.0)
    job = site.site.jobs[1]
    long_s = site.policy._length_s(job)
    site.tell(CHANGED, 1, JobSpec(user="new", estimate_s=60.0))
    assert site.policy._length_s(job) < long_s
    assert site.policy._length_s(job) <= 60.0


def test_users_who_never_come_again_are_forgotten() -> None:
    site = HandSite(Wsept, STRICT, contexts=100)
    site.machines(1)
    for number in range(400):
        site.submit(number, user=f"user{number}")
        (job,) = site.tick()
        site.complete(job)
    assert len(site.policy._lengths) <= 101
    assert not site.policy._kinds
