"""Training of the value function: experience replay, or refits in a thread."""

import random
from typing import Any, Final, Protocol

from outrider.api import ConfigurationError
from outrider_policies.sarsa.approximation.boosted_trees import BoostedTrees, Retraining
from outrider_policies.sarsa.approximation.mlp import LinearFunction, Mlp
from outrider_policies.sarsa.approximation.value_functions import SteppingFunction, ValueFunction
from outrider_policies.sarsa.experience import Floats, ReplayMemory, Transitions
from outrider_policies.sarsa.settings import SarsaSettings

_TRAININGS: Final = {
    "mlp": ("replay", "batch", "descent"),
    "linear": ("replay", "batch"),
    "boosting": ("batch",),  # trees do not learn by small steps
}


class Training(Protocol):
    """Interface of the object that holds the value function and trains it."""

    @property
    def values(self) -> ValueFunction:
        """The present value function."""
        ...

    def outcome(self, memory: ReplayMemory) -> None:
        """Train after a run ended; the memory already holds what is complete."""
        ...

    def save(self) -> dict[str, Any]:
        """Return the whole state as plain data."""
        ...

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned. Raises `ValueError` if it does not fit."""
        ...


def make_training(settings: SarsaSettings, inputs_n: int, rng: random.Random) -> Training:
    """Return the training selected by the settings, with an untrained value function.

    Raises:
        ConfigurationError: the approximator does not support this training.
    """
    approximator, training, rate = settings.approximator, settings.training, settings.learning_rate
    if training not in _TRAININGS[approximator]:
        supported = " or ".join(f'"{known}"' for known in _TRAININGS[approximator])
        raise ConfigurationError(
            f'training = "{training}" does not go with approximator = "{approximator}"; '
            f"expected {supported}"
        )
    if approximator == "boosting":
        return BatchTraining(BoostedTrees(inputs_n), settings, rng)
    function: SteppingFunction
    if approximator == "linear":
        function = LinearFunction(inputs_n, rate)
    else:
        function = Mlp(inputs_n, settings.hidden_n, rate, rng, plain=training == "descent")
    kind = ReplayTraining if training == "replay" else BatchTraining
    return kind(function, settings, rng)


def _targets(values: ValueFunction, gamma: float, seen: Transitions) -> Floats:
    """Return (n,) SARSA targets r + gamma Q(s', a') (Perez et al., figure 1)."""
    targets: Floats = seen.rewards + gamma * values.values(seen.next_inputs)
    return targets


class ReplayTraining:
    """Training by one gradient step at every outcome, on a sample from the memory."""

    def __init__(self, values: SteppingFunction, settings: SarsaSettings, rng: random.Random):
        self._values = values
        self._gamma, self._n = settings.gamma, settings.replay_n
        self._rng = rng

    @property
    def values(self) -> ValueFunction:
        """The present value function."""
        return self._values

    def outcome(self, memory: ReplayMemory) -> None:
        """Train by one step on a sample."""
        if len(memory):
            seen = memory.sample(self._n, self._rng)
            self._values.step(seen.inputs, _targets(self._values, self._gamma, seen))

    def save(self) -> dict[str, Any]:
        """Return the value function as plain data."""
        return {"values": self._values.save()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned."""
        self._values.restore(saved["values"])


class BatchTraining:
    """Training by a refit to the whole memory every `retrain_every_n` outcomes, in a thread."""

    def __init__(self, values: ValueFunction, settings: SarsaSettings, rng: random.Random):
        self._values = values
        self._gamma, self._every = settings.gamma, settings.retrain_every_n
        self._retraining = Retraining(settings.adopt_after_n)
        self._outcomes = 0
        self._rng = rng

    @property
    def values(self) -> ValueFunction:
        """The present value function."""
        return self._values

    def outcome(self, memory: ReplayMemory) -> None:
        """Count an outcome; begin a refit or adopt its result when due."""
        self._outcomes += 1
        self._values = self._retraining.count_outcome() or self._values
        if self._outcomes >= self._every and len(memory) and not self._retraining.is_open:
            self._outcomes = 0
            seen = memory.whole()
            targets = _targets(self._values, self._gamma, seen)
            self._retraining.begin(self._values, seen.inputs, targets, self._rng.getrandbits(31))

    def save(self) -> dict[str, Any]:
        """Return the value function, and the refit in progress."""
        return {
            "values": self._values.save(),
            "outcomes": self._outcomes,
            "retraining": self._retraining.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore from `save`; a refit in progress begins again."""
        self._values.restore(saved["values"])
        self._outcomes = saved.get("outcomes", 0)
        self._retraining.restore(saved.get("retraining"), self._values)
