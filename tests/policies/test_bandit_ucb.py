"""Discounted UCB on the bandit's arms: the bound by hand, optimism, and forgetting."""

from collections import Counter
from math import inf, log, sqrt
from typing import Any

import pytest

from outrider.api import EVICTED_RUN, NOWHERE, Choice
from outrider.testing.fixtures import chance
from outrider_policies.bandits.ucb import DiscountedUcb, FadingArms, UcbSettings
from tests.policies.views import HandView, outcome, waiting_job


def ucb(**settings: Any) -> DiscountedUcb:
    return DiscountedUcb(UcbSettings(**settings), chance("ucb"))


def choose(policy: DiscountedUcb, view: HandView, may_defer: bool = False) -> Choice:
    return policy.choose(waiting_job(), policy.evaluate_group(0, view), view, may_defer)


def test_arms_without_evidence_come_first_and_are_drawn_between() -> None:
    policy, view = ucb(), HandView([1] * 3, [50.0] * 3)
    policy.observe(outcome(0), view, True)
    choices = [choose(policy, view, may_defer=True) for _ in range(300)]
    assert set(Counter(c.machine for c in choices)) == {100, 200, NOWHERE}
    assert {c.propensity for c in choices} == {1 / 3}


@pytest.mark.parametrize(("weight", "expected"), [(0.0, 0), (0.5, 100)])
def test_the_bound_is_the_mean_and_a_bonus_that_shrinks_with_evidence(
    weight: float, expected: int
) -> None:
    """Thirty good rewards of c0 and a bad one of c1: only little evidence speaks for c1."""
    policy = ucb(exploration_weight=weight, discount_ratio=1.0, sigma=0.0)
    view = HandView([1] * 2, [50.0] * 2)
    for _ in range(30):
        policy.observe(outcome(0), view, True)
    policy.observe(outcome(1, EVICTED_RUN), view, True)
    bounds = {
        0: 1.0 + 4 * sqrt(weight * log(31) / 30),
        100: -1.0 + 4 * sqrt(weight * log(31) / 1),
    }
    assert max(bounds, key=lambda machine: bounds[machine]) == expected
    assert choose(policy, view).machine == expected


def test_rewards_fade_with_every_later_one_of_the_state() -> None:
    row = FadingArms(0.5)
    row.learn(0, 1.0)
    row.learn(1, -1.0)
    row.learn(1, -1.0)
    assert row.bounds([0, 1, 2], 3.0) == pytest.approx(
        [1 + 3 / sqrt(0.25), -1 + 3 / sqrt(1.5), inf]
    )
    assert row.evidence_of_all() == pytest.approx(1.75)
    row.learn(0, -1.0)  # 1 x 1/8 - 1 over 1/8 + 1
    assert row.values[0] == pytest.approx((0.125 - 1) / 1.125)


def test_a_forgotten_arm_is_tried_again() -> None:
    policy, view = ucb(discount_ratio=0.5, exploration_weight=0.0), HandView([1] * 2, [50.0] * 2)
    policy.observe(outcome(1, EVICTED_RUN), view, True)
    policy.observe(outcome(0), view, True)
    assert choose(policy, view).machine == 0
    for _ in range(40):
        policy.observe(outcome(0), view, True)
    assert choose(policy, view).machine == 100
