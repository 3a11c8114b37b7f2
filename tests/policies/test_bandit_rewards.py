"""Equations 3 to 5 of McGough and Forshaw (2015), by hand."""

import pytest

from outrider.api import COMPLETED_RUN, EVICTED_RUN, NOWHERE, REMOVED_RUN, Outcome
from outrider_policies.bandits.bandit import Bandit
from tests.fixtures.plays import bandit
from tests.policies.views import HandView, outcome, waiting_job

WATTS = (50.0, 80.0, 150.0)  # E_a: 0, .3, 1


@pytest.mark.parametrize(
    ("cluster", "ending", "sigma", "reward"),
    [
        (0, COMPLETED_RUN, 0.8, 1.0),
        (1, COMPLETED_RUN, 0.8, 0.76),
        (2, COMPLETED_RUN, 0.8, 0.2),
        (2, COMPLETED_RUN, 0.0, 1.0),
        (2, COMPLETED_RUN, 1.0, 0.0),
        (0, EVICTED_RUN, 0.8, -0.2),
        (1, EVICTED_RUN, 0.8, -0.44),
        (2, EVICTED_RUN, 0.8, -1.0),
        (0, EVICTED_RUN, 1.0, 0.0),
        (1, REMOVED_RUN, 0.8, -0.44),
        (1, EVICTED_RUN, 0.0, -1.0),
    ],
)
def test_a_run_is_rewarded_by_its_end_and_its_watts(
    cluster: int, ending: str, sigma: float, reward: float
) -> None:
    policy, view = bandit(sigma=sigma), HandView([1, 1, 1], WATTS)
    assert policy.observe(outcome(cluster, ending), view, True) == pytest.approx([reward])
    assert policy.scores(0, view)[f"c{cluster}"] == pytest.approx(reward)


@pytest.mark.parametrize("watts", [(None, None), (60.0, 60.0)])
def test_watts_unknown_or_alike_do_not_count(watts: tuple[float | None, ...]) -> None:
    policy, view = bandit(sigma=0.8), HandView([1, 1], watts)
    assert policy.observe(outcome(1), view, True) == [1.0]


def test_a_value_is_the_mean_of_all_rewards_and_untried_arms_are_worth_nothing() -> None:
    policy, view = bandit(sigma=0.8), HandView([1, 1, 1], WATTS)
    for ending in (COMPLETED_RUN, COMPLETED_RUN, EVICTED_RUN):
        policy.observe(outcome(1, ending), view, True)
    expected = {"queue": 0, "c0": 0, "c1": (0.76 + 0.76 - 0.44) / 3, "c2": 0}
    assert policy.scores(0, view) == pytest.approx(expected)


def test_states_are_the_hour_of_day_and_the_hours_lost() -> None:
    policy, view = bandit(), HandView([1], [50.0])
    view.now = 13 * 3600.0 + 59.0
    keys = [
        policy.group_key(waiting_job(longest_lost_s=s), view) for s in (0.0, 3599.0, 3600.0, 1e6)
    ]
    assert keys == [13 * 24, 13 * 24, 13 * 24 + 1, 13 * 24 + 23]


def deferred(policy: Bandit, view: HandView, at_s: float) -> None:
    """Ask with no cluster open: nothing but the queue can be chosen."""
    view.now, free = at_s, view.free_n
    view.free_n = [0] * len(free)
    job = waiting_job()
    assert policy.choose(
        job, policy.evaluate_group(policy.group_key(job, view), view), view, True
    ).machine == (NOWHERE)
    view.free_n = free


def test_deferring_is_judged_when_the_job_completes_and_only_from_what_was_seen() -> None:
    policy, view = bandit(sigma=0.8), HandView([1, 1], [50.0, 150.0])
    deferred(policy, view, 1000.0)
    deferred(policy, view, 5000.0)
    view.stays = [(900.0, 1100.0), (5000.0, 5050.0)]
    view.now = 9000.0
    assert policy.observe(outcome(0, EVICTED_RUN, run_s=10.0), view, True) == pytest.approx([-0.2])
    rewards = policy.observe(outcome(0, COMPLETED_RUN, run_s=100.0), view, True)
    assert rewards == pytest.approx([1.0, -1.0, 1.0])  # the run; some machine could; none could
    assert policy.observe(outcome(0, COMPLETED_RUN), view, True) == [1.0]  # judged once


def test_a_job_that_never_completes_was_rightly_deferred() -> None:
    policy, view = bandit(), HandView([1], [50.0])
    deferred(policy, view, 1000.0)
    view.stays = [(0.0, 1e9)]
    left = Outcome(1, (), NOWHERE, NOWHERE, 2000.0, 2000.0, 0.0, REMOVED_RUN, "removed")
    assert policy.observe(left, view, True) == [1.0]
    assert policy.scores(0, view) == {"queue": 1.0, "c0": 0.0}
