"""A linear value function, the baseline that a network must beat."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider_policies.sarsa.approximation.adam import Adam
from outrider_policies.sarsa.approximation.value_functions import checked

Floats = NDArray[np.float64]

_KIND: Final = "linear"
_RIDGE: Final = 1e-3


class LinearFunction:
    """Q(x) = w . x + c.

    Args:
        inputs_n: number of features of an input.
        rate: learning rate of `Adam`.
    """

    def __init__(self, inputs_n: int, rate: float) -> None:
        self._parameters = np.zeros(inputs_n + 1)
        self._adam = Adam(inputs_n + 1, rate)

    def values(self, inputs: Floats) -> Floats:
        """The value of each input (n, inputs_n)."""
        values: Floats = inputs @ self._parameters[:-1] + self._parameters[-1]
        return values

    def values_of_actions(self, state: Floats, actions: Floats) -> Floats:
        """The value of each action in one state."""
        split = len(state)
        of_state = state @ self._parameters[:split] + self._parameters[-1]
        values: Floats = actions @ self._parameters[split:-1] + of_state
        return values

    def step(self, inputs: Floats, targets: Floats) -> None:
        """One step of `Adam` down the gradient of half the mean squared error."""
        error = (self.values(inputs) - targets) / len(targets)
        self._adam.step(self._parameters, np.append(error @ inputs, error.sum()))

    def refitted(self, inputs: Floats, targets: Floats, seed: int) -> "LinearFunction":
        """The least-squares fit to all pairs, with a small ridge for features that never vary."""
        with_one = np.column_stack([inputs, np.ones(len(inputs))])
        square = with_one.T @ with_one / len(inputs)
        square[np.diag_indices_from(square)] += _RIDGE
        fresh = LinearFunction(inputs.shape[1], self._adam.rate)
        fresh._parameters[:] = np.linalg.solve(square, with_one.T @ targets / len(inputs))
        return fresh

    def save(self) -> dict[str, Any]:
        """Parameters and the state of `Adam`."""
        return {
            "kind": _KIND,
            "parameters": self._parameters.tolist(),
            "adam": self._adam.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore from what `save` gave for the same number of inputs."""
        self._parameters[:] = checked(saved, _KIND, len(self._parameters))
        self._adam.restore(saved["adam"])
