"""The value functions behind `sarsa`: gradients, fits, memory, and trainings beside decisions."""

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from outrider_policies.sarsa.approximation.boosted_trees import BoostedTrees, Retraining
from outrider_policies.sarsa.approximation.mlp import Adam, LinearFunction, Mlp
from outrider_policies.sarsa.approximation.value_functions import ValueFunction
from outrider_policies.sarsa.experience import ReplayMemory

Floats = NDArray[np.float64]
INPUTS_N = 4
MAKERS: dict[str, Callable[[], ValueFunction]] = {
    "mlp": lambda: Mlp(INPUTS_N, 6, 0.01, random.Random(1)),
    "linear": lambda: LinearFunction(INPUTS_N, 0.05),
    "boosting": lambda: BoostedTrees(INPUTS_N),
}
every_kind = pytest.mark.parametrize("kind", MAKERS)


def pairs(n: int = 400) -> tuple[Floats, Floats]:
    """Inputs, and targets that are a line in them."""
    inputs = np.random.default_rng(7).uniform(-1.0, 1.0, (n, INPUTS_N))
    return inputs, inputs @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.3


def as_json(saved: dict[str, Any]) -> Any:
    return json.loads(json.dumps(saved))


def test_the_gradient_of_the_net_is_that_of_its_error() -> None:
    net = Mlp(INPUTS_N, 6, 0.01, random.Random(1))
    inputs, targets = pairs(20)
    gradient = net.gradient(inputs, targets)
    parameters = net._parameters
    numeric = np.empty_like(gradient)
    for at in range(len(parameters)):
        ends = []
        for step in (1e-6, -2e-6):
            parameters[at] += step
            ends.append(float(((net.values(inputs) - targets) ** 2).mean() / 2.0))
        parameters[at] += 1e-6
        numeric[at] = (ends[0] - ends[1]) / 2e-6
    assert np.allclose(gradient, numeric, rtol=1e-5, atol=1e-8)


def test_adam_takes_its_first_step_as_long_as_its_rate() -> None:
    parameters = np.array([1.0, 1.0, 1.0])
    Adam(3, 0.1).step(parameters, np.array([5.0, -0.01, 0.0]))
    assert parameters == pytest.approx([0.9, 1.1, 1.0], abs=1e-6)


@every_kind
def test_actions_of_one_state_are_worth_what_whole_inputs_are(kind: str) -> None:
    inputs, targets = pairs()
    function = MAKERS[kind]().refitted(inputs, targets, 3)
    state, actions = inputs[0, :2], inputs[:50, 2:]
    whole = np.column_stack([np.tile(state, (50, 1)), actions])
    assert function.values_of_actions(state, actions) == pytest.approx(function.values(whole))


@every_kind
def test_a_refit_explains_the_pairs_and_leaves_the_old_function_as_it_was(kind: str) -> None:
    inputs, targets = pairs()
    old = MAKERS[kind]()
    before = old.values(inputs).copy()
    fresh = old.refitted(inputs, targets, 3)
    left = ((fresh.values(inputs) - targets) ** 2).mean() / targets.var()
    assert left < 0.15, f"{left:.0%} of the variance is not explained"
    assert (old.values(inputs) == before).all()
    assert (old.refitted(inputs, targets, 3).values(inputs) == fresh.values(inputs)).all()


@pytest.mark.parametrize("kind", ["mlp", "linear"])
def test_small_steps_lead_to_the_targets(kind: str) -> None:
    inputs, targets = pairs()
    function: Any = MAKERS[kind]()
    first = ((function.values(inputs) - targets) ** 2).mean()
    rng = np.random.default_rng(0)
    for _ in range(1500):
        drawn = rng.integers(0, len(inputs), 32)
        function.step(inputs[drawn], targets[drawn])
    assert ((function.values(inputs) - targets) ** 2).mean() < 0.02 * first


@every_kind
def test_what_was_saved_goes_on_exactly(kind: str) -> None:
    inputs, targets = pairs()
    one: Any = MAKERS[kind]().refitted(inputs, targets, 5)
    other: Any = MAKERS[kind]()
    other.restore(as_json(one.save()))
    for function in (one, other):
        if kind != "boosting":
            function.step(inputs[:9], targets[:9])
    assert (one.values(inputs) == other.values(inputs)).all()


@every_kind
def test_a_state_of_another_kind_or_shape_is_refused_and_changes_nothing(kind: str) -> None:
    inputs, targets = pairs()
    function = MAKERS[kind]().refitted(inputs, targets, 5)
    before = function.values(inputs).copy()
    wider = np.column_stack([inputs, inputs])
    others: dict[str, ValueFunction] = {
        "mlp": Mlp(8, 6, 0.01, random.Random(1)),
        "linear": LinearFunction(8, 0.05),
        "boosting": BoostedTrees(8).refitted(wider, targets, 1),
    }
    with pytest.raises(ValueError, match="shape"):
        function.restore(as_json(others[kind].save()))
    with pytest.raises(ValueError, match="kind 'oracle'"):
        function.restore({"kind": "oracle"})
    assert (function.values(inputs) == before).all()


def test_the_memory_forgets_the_oldest_and_draws_only_what_it_holds() -> None:
    memory = ReplayMemory(3, 1)
    with pytest.raises(ValueError, match="empty"):
        memory.sample(1, random.Random(0))
    for n in range(5):
        memory.add(np.array([float(n)]), n * 10.0, np.array([n + 1.0]))
    drawn = memory.sample(200, random.Random(0))
    assert sorted(set(drawn.rewards)) == [20.0, 30.0, 40.0]
    assert (drawn.inputs[:, 0] * 10.0 == drawn.rewards).all()
    assert (drawn.next_inputs == drawn.inputs + 1.0).all()


def test_a_restored_memory_is_overwritten_in_the_same_order() -> None:
    memory, again = ReplayMemory(3, 1), ReplayMemory(3, 1)
    for n in range(4):
        memory.add(np.array([float(n)]), float(n), np.array([0.0]))
    again.restore(as_json(memory.save()))
    for both in (memory, again):
        both.add(np.array([9.0]), 9.0, np.array([0.0]))
    assert again.whole().rewards.tolist() == memory.whole().rewards.tolist() == [3.0, 9.0, 2.0]


def test_a_memory_of_other_features_is_refused() -> None:
    memory = ReplayMemory(3, 2)
    memory.add(np.zeros(2), 1.0, np.zeros(2))
    with pytest.raises(ValueError, match="shapes"):
        ReplayMemory(3, 3).restore(memory.save())


def test_a_training_is_taken_up_after_so_many_outcomes_and_not_before() -> None:
    inputs, targets = pairs()
    retraining = Retraining(adopt_after=3)
    old = MAKERS["linear"]()
    assert retraining.count_outcome() is None
    retraining.begin(old, inputs, targets, 1)
    assert [retraining.count_outcome() for _ in range(2)] == [None, None]
    fitted = retraining.count_outcome()
    assert fitted is not None
    assert fitted.values(inputs) == pytest.approx(targets, abs=0.02)
    assert not retraining.is_open


def test_a_training_under_way_begins_again_after_a_restart() -> None:
    inputs, targets = pairs()
    one, other = Retraining(adopt_after=2), Retraining(adopt_after=9)
    old = MAKERS["mlp"]()
    one.begin(old, inputs, targets, 1)
    one.count_outcome()
    other.restore(as_json(one.save() or {}), old)
    here, there = one.count_outcome(), other.count_outcome()
    assert here is not None
    assert there is not None
    assert (here.values(inputs) == there.values(inputs)).all()


def test_a_net_begins_with_small_weights_of_both_signs_around_nothing() -> None:
    net = Mlp(16, 25, 0.01, random.Random(1))
    for weights, most in ((net._into, 16**-0.5), (net._out, 25**-0.5)):
        assert 0.8 * most < weights.max() <= most
        assert 0.8 * most < -weights.min() <= most
        assert abs(weights.mean()) < 0.3 * most
