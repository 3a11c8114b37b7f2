"""The rulebase of Vengerov's equation 1, and the learning rule of his equations 4 to 6."""

from itertools import product

import numpy as np
import pytest

from outrider_policies.planning.fuzzy_td.transitions import AverageRewardTd, FuzzyRulebase


@pytest.mark.parametrize("inputs_n", [3, 5])
def test_there_is_a_rule_for_every_combination_of_labels(inputs_n: int) -> None:
    base = FuzzyRulebase(inputs_n)
    assert base.rules == ["".join(labels) for labels in product("SL", repeat=inputs_n)]
    assert len(base.outputs) == 2**inputs_n


def test_at_a_corner_one_rule_alone_speaks() -> None:
    base = FuzzyRulebase(3)
    base.outputs[:] = np.arange(8.0)
    for number, corner in enumerate(product((0.0, 1.0), repeat=3)):
        assert base.value(corner) == number, base.rules[number]


def test_degrees_are_products_of_memberships_and_sum_to_one() -> None:
    degrees = FuzzyRulebase(3).degrees((0.2, 0.5, 0.9))
    assert degrees.sum() == pytest.approx(1.0, abs=1e-15)
    assert degrees[0b101] == pytest.approx(0.2 * 0.5 * 0.9), "rule (L, S, L)"


def test_many_states_have_the_values_they_have_one_by_one() -> None:
    rng = np.random.default_rng(3)
    base = FuzzyRulebase(5)
    base.outputs[:] = rng.normal(size=32)
    states = rng.random((40, 5))
    together = base.values(list(states.T))
    for state, value in zip(states, together, strict=True):
        assert base.value(state) == pytest.approx(value, abs=1e-12)
        assert base.degrees(state) @ base.outputs == pytest.approx(value, abs=1e-12)


def test_one_update_is_equation_6_and_the_mean_reward_follows_equation_5() -> None:
    td = AverageRewardTd()
    td.mean_reward = 0.4
    weights, basis = np.array([1.0, 2.0]), np.array([0.25, 0.75])
    td.update(weights, basis, reward=3.0, value=1.75, next_value=2.0)
    error = 3.0 - 0.4 + 2.0 - 1.75
    assert weights == pytest.approx([1.0 + 0.5 * error * 0.25, 2.0 + 0.5 * error * 0.75])
    assert td.mean_reward == pytest.approx(0.5 * 0.4 + 0.5 * 3.0)
    assert td.updates_n == 1


def test_steps_fall_as_half_over_one_plus_a_hundredth_of_the_updates() -> None:
    td = AverageRewardTd()
    td.updates_n = 300
    assert td.step == pytest.approx(0.5 / 4.0)


def test_values_of_a_chain_with_known_differential_values_are_found() -> None:
    """Two states in turn, rewards 0 and 1: mean .5, and V(second) - V(first) is .5."""
    td, weights = AverageRewardTd(), np.zeros(2)
    basis = np.eye(2)
    for step in range(20_000):
        here, there = step % 2, (step + 1) % 2
        td.update(weights, basis[here], float(here == 1), weights[here], weights[there])
    assert td.mean_reward == pytest.approx(0.5, abs=0.01)
    assert weights[1] - weights[0] == pytest.approx(0.5, abs=0.01)
