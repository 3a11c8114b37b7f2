"""Section 4.4: history, epsilon that varies, and actions known to be bad."""

from collections import Counter
from math import exp, inf
from typing import Any

import pytest

from outrider.api import COMPLETED_RUN, EVICTED_RUN, NOWHERE, ConfigurationError, build
from outrider_policies.bandits.arms import gaussian_weights
from outrider_policies.bandits.bandit import Bandit, BanditSettings
from tests.fixtures.plays import bandit
from tests.policies.views import HandView, chosen, outcome, waiting_job

WATTS = (50.0, 150.0)


def two_rooms() -> HandView:
    return HandView([1, 1], WATTS)


def reward(policy: Bandit, view: HandView, *endings: str, cluster: int = 0) -> None:
    for ending in endings:
        policy.observe(outcome(cluster, ending), view, True)


def explored(policy: Bandit, view: HandView) -> float:
    """Ratio of choices drawn at random."""
    job, n = waiting_job(), 2000
    row = policy.evaluate_group(policy.group_key(job, view), view)
    reasons = Counter(policy.choose(job, row, view, False).reason for _ in range(n))
    return reasons["explore"] / n


# -- history ------------------------------------------------------------------------------------


def test_only_the_last_rewards_of_an_arm_count() -> None:
    policy, view = bandit(history_n=2, sigma=0.0), two_rooms()
    reward(policy, view, EVICTED_RUN, EVICTED_RUN, COMPLETED_RUN)
    assert policy.scores(0, view)["c0"] == 0.0
    reward(policy, view, COMPLETED_RUN)
    assert policy.scores(0, view)["c0"] == 1.0


def test_gaussian_weights_are_equation_8_as_printed() -> None:
    assert gaussian_weights(4) == pytest.approx([exp(-6), exp(-4), exp(-2), 1.0])


def test_a_weighted_value_is_equation_7() -> None:
    policy, view = bandit(history_n=3, history_weights="gaussian", sigma=0.0), two_rooms()
    reward(policy, view, COMPLETED_RUN, EVICTED_RUN)
    w = exp(-8 / 3)
    assert policy.scores(0, view)["c0"] == pytest.approx((w - 1) / (w + 1))
    reward(policy, view, COMPLETED_RUN, COMPLETED_RUN)  # the first is forgotten
    assert policy.scores(0, view)["c0"] == pytest.approx((-w * w + w + 1) / (w * w + w + 1))


def test_gaussian_weights_without_a_length_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs history_n"):
        build(BanditSettings, {"history_weights": "gaussian"}, "here")


def test_a_limited_history_survives_a_restart() -> None:
    policy, view = bandit(history_n=2), two_rooms()
    reward(policy, view, EVICTED_RUN, EVICTED_RUN, COMPLETED_RUN)
    again = bandit(history_n=2)
    again.restore(policy.save(view), view)
    for one in (policy, again):
        reward(one, view, COMPLETED_RUN)
    assert again.scores(0, view) == policy.scores(0, view)
    assert again.save(view) == policy.save(view)


# -- epsilon ------------------------------------------------------------------------------------


def test_epsilon_is_high_until_a_state_has_its_first_rewards() -> None:
    policy, view = bandit(epsilon=0.1, first_epsilon=0.8, first_n=3), two_rooms()
    assert explored(policy, view) == pytest.approx(0.8, abs=0.05)
    reward(policy, view, *[COMPLETED_RUN] * 3)
    assert explored(policy, view) == pytest.approx(0.1, abs=0.03)
    view.now = 7200.0
    assert explored(policy, view) == pytest.approx(0.8, abs=0.05)  # another state


@pytest.mark.parametrize(
    ("endings", "epsilon"),
    [
        ([COMPLETED_RUN] * 4, 0.1),
        ([COMPLETED_RUN, EVICTED_RUN, EVICTED_RUN], 0.4),
        ([COMPLETED_RUN, EVICTED_RUN, EVICTED_RUN, COMPLETED_RUN, COMPLETED_RUN], 0.1),
        ([EVICTED_RUN] * 4, 0.1),  # nothing was ever good: no ratio to it
    ],
)
def test_epsilon_grows_while_rewards_fall_behind_the_best(
    endings: list[str], epsilon: float
) -> None:
    policy, view = (
        bandit(epsilon=0.1, divergence_ratio=0.5, divergence_n=2, divergence_epsilon=0.3),
        two_rooms(),
    )
    reward(policy, view, *endings)
    assert explored(policy, view) == pytest.approx(epsilon, abs=0.05)
    assert f"{epsilon:.0%} of its choices are random" in policy.explain(waiting_job(), view)


def test_what_epsilon_depends_on_survives_a_restart() -> None:
    policy, view = bandit(first_n=3, divergence_ratio=0.5, divergence_n=2), two_rooms()
    reward(policy, view, COMPLETED_RUN, EVICTED_RUN)
    again = bandit(first_n=3, divergence_ratio=0.5, divergence_n=2)
    again.restore(policy.save(view), view)
    for one in (policy, again):
        reward(one, view, EVICTED_RUN)
    assert (
        again.evaluate_group(0, view)[2] == policy.evaluate_group(0, view)[2] == pytest.approx(0.4)
    )


# -- actions known to be bad --------------------------------------------------------------------


@pytest.mark.parametrize(("untried", "expected"), [(0.0, {100}), (-1.0, {0})])
def test_how_an_untried_arm_is_valued_decides_whether_it_is_tried(
    untried: float, expected: set[int]
) -> None:
    policy, view = bandit(epsilon=0.0, untried_reward=untried), two_rooms()
    reward(policy, view, EVICTED_RUN)
    assert set(chosen(policy, view, may_defer=False)) == expected


def test_full_clusters_can_be_offered_and_a_job_sent_there_stays_queued() -> None:
    policy, view = bandit(epsilon=0.0, offer_full=True), two_rooms()
    reward(policy, view, COMPLETED_RUN, cluster=1)
    view.free_n = [1, 0]
    job = waiting_job()
    choice = policy.choose(job, policy.evaluate_group(0, view), view, True)
    assert (choice.machine, choice.reason, choice.propensity) == (NOWHERE, "full", 1.0)
    assert set(chosen(policy, view, may_defer=False)) == {0}  # the guard wants a start
    assert policy.observe(outcome(0), view, True) == [1.0]  # no queue decision was made


def test_the_chance_of_staying_queued_counts_full_clusters() -> None:
    policy, view = bandit(epsilon=1.0, offer_full=True), HandView([1, 0, 0], [50.0] * 3)
    row = policy.evaluate_group(0, view)
    said = {
        choice.machine: choice.propensity
        for choice in (policy.choose(waiting_job(), row, view, True) for _ in range(200))
    }
    assert said == {0: pytest.approx(0.25), NOWHERE: pytest.approx(0.75)}


class RebootAt3(HandView):
    """Machines reboot at three."""

    def next_reboot_s(self) -> float:
        return 3 * 3600.0


@pytest.mark.parametrize(
    ("lost_s", "now", "starts"),
    [
        (0.0, 2.9 * 3600, True),
        (1800.0, 2.4 * 3600, True),
        (1800.0, 2.5 * 3600, False),  # would be active at three exactly
        (3600.0, 2.9 * 3600, False),
    ],
)
def test_a_job_that_would_still_run_at_the_reboot_is_only_ever_kept(
    lost_s: float, now: float, starts: bool
) -> None:
    policy, view = bandit(epsilon=0.5, avoid_reboot=True), RebootAt3([1, 1], WATTS)
    view.now = now
    job = waiting_job(longest_lost_s=lost_s)
    row = policy.evaluate_group(policy.group_key(job, view), view)
    choices = [policy.choose(job, row, view, True) for _ in range(200)]
    if starts:
        assert {c.machine for c in choices} >= {0, 100}
    else:
        assert {(c.machine, c.reason, c.propensity) for c in choices} == {(NOWHERE, "reboot", 1.0)}
        assert "would still run at the reboot" in policy.explain(job, view)
    assert policy.choose(job, row, view, False).machine != NOWHERE  # the guard wins


def test_a_site_without_reboots_is_not_affected_by_the_rule() -> None:
    settings: dict[str, Any] = {"epsilon": 0.0, "avoid_reboot": True}
    policy, view = bandit(**settings), two_rooms()
    assert view.next_reboot_s() == inf
    reward(policy, view, COMPLETED_RUN)
    assert set(chosen(policy, view)) == {0}


def test_presets_are_the_settings_that_they_are_named_for() -> None:
    assert Bandit.presets == {
        "literal": {"max_defer_s": inf},
        "reboot": {"avoid_reboot": True},
        "least_energy": {"epsilon": 0.01},
    }


@pytest.mark.parametrize(
    ("level", "where"),
    [
        ("cluster", "at 03:00, for jobs whose longest lost run took 2 h: nothing was"),
        ("cluster_week", "Tue at 03:00, for jobs whose longest lost run took 2 h: nothing was"),
    ],
)
def test_users_are_told_the_day_and_hour_that_the_choice_went_by(level: str, where: str) -> None:
    policy, view = bandit(level=level), two_rooms()
    view.now = (24 + 3) * 3600.0 + 59.0  # event time counts from a Monday
    assert policy.explain(waiting_job(longest_lost_s=2.9 * 3600), view).startswith(where)
