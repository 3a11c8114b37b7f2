"""Multi-layer perceptron with one hidden layer: the value function of Perez et al. 2008."""

import random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider_policies.sarsa.approximation.value_functions import checked

Floats = NDArray[np.float64]
_KIND: Final = "mlp"
_EPOCHS: Final = 60


class Mlp:
    """Multi-layer perceptron Q(x) = w . sigmoid(W x + b) + c, trained on the squared error.

    Args:
        inputs_n: number of features of an input.
        hidden_n: number of sigmoid units.
        rate: learning rate of `Adam` and of refits.
        rng: draws the initial weights, uniform within 1 / sqrt(inputs of the unit).
        plain: refit by plain gradient descent, as back-propagation in 2008, not by Adam.
    """

    def __init__(
        self, inputs_n: int, hidden_n: int, rate: float, rng: random.Random, plain: bool = False
    ) -> None:
        self._inputs_n, self._hidden_n = inputs_n, hidden_n
        self._plain = plain
        self._parameters = np.zeros(inputs_n * hidden_n + 2 * hidden_n + 1)
        self._adam = Adam(len(self._parameters), rate)
        self._name_parts(self._parameters)
        into, out = inputs_n**-0.5, hidden_n**-0.5
        self._into[:] = [[rng.uniform(-into, into) for _ in range(hidden_n)]
                         for _ in range(inputs_n)]  # fmt: skip
        self._out[:] = [rng.uniform(-out, out) for _ in range(hidden_n)]

    def _name_parts(self, parameters: Floats) -> None:
        """Name the parts of the vector: views, so that a step changes them too."""
        d, h = self._inputs_n, self._hidden_n
        self._into = parameters[: d * h].reshape(d, h)
        self._bias = parameters[d * h : d * h + h]
        self._out = parameters[d * h + h : d * h + 2 * h]
        self._base = parameters[-1:]

    def values(self, inputs: Floats) -> Floats:
        """Return the value of each input (n, inputs_n)."""
        return self._read_out(inputs @ self._into + self._bias)

    def values_of_actions(self, state: Floats, actions: Floats) -> Floats:
        """Return (k,) the value of each action; the state's part is computed once."""
        split = len(state)
        of_state = state @ self._into[:split] + self._bias
        return self._read_out(actions @ self._into[split:] + of_state)

    def _read_out(self, sums: Floats) -> Floats:
        values: Floats = _sigmoid(sums) @ self._out + self._base
        return values

    def gradient(self, inputs: Floats, targets: Floats) -> Floats:
        """Return the gradient of half the mean squared error, in the order of the parameters."""
        hidden = _sigmoid(inputs @ self._into + self._bias)
        error = (hidden @ self._out + self._base - targets) / len(targets)
        back = np.outer(error, self._out) * hidden * (1.0 - hidden)
        return np.concatenate(
            [(inputs.T @ back).ravel(), back.sum(axis=0), error @ hidden, [error.sum()]]
        )

    def step(self, inputs: Floats, targets: Floats) -> None:
        """Move the parameters by one step of `Adam` towards the targets."""
        self._adam.step(self._parameters, self.gradient(inputs, targets))

    def refitted(self, inputs: Floats, targets: Floats, seed: int) -> "Mlp":
        """Return a net trained from scratch by scikit-learn's `MLPRegressor`.

        It is trained in epochs of mini-batches. Its weights are copied, so that decisions cost the
        same however a net was trained. Returns this net if the training diverges.
        """
        from sklearn.neural_network import MLPRegressor  # a second of imports: only if needed

        regressor = MLPRegressor(
            hidden_layer_sizes=(self._hidden_n,), activation="logistic",
            solver="sgd" if self._plain else "adam", momentum=0.0,
            learning_rate_init=self._adam.rate, random_state=seed,
        )  # fmt: skip
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                for _ in range(_EPOCHS):
                    regressor.partial_fit(inputs, targets)
            except ValueError:  # weights are no longer finite
                return self
        net = Mlp(self._inputs_n, self._hidden_n, self._adam.rate, random.Random(seed), self._plain)
        (into, out), (bias, base) = regressor.coefs_, regressor.intercepts_
        net._parameters[:] = np.concatenate([into.ravel(), bias, out.ravel(), base])
        return net

    def save(self) -> dict[str, Any]:
        """Return the parameters and the state of `Adam`."""
        return {
            "kind": _KIND,
            "parameters": self._parameters.tolist(),
            "adam": self._adam.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned for a net of the same shape."""
        self._parameters[:] = checked(saved, _KIND, len(self._parameters))
        self._adam.restore(saved["adam"])


def _sigmoid(sums: Floats) -> Floats:
    """Return 1 / (1 + e^-x) by the hyperbolic tangent, which does not overflow and is faster."""
    return 0.5 + 0.5 * np.tanh(0.5 * sums)


# -- adam ------------------------------------------------------------------------------------------
# Adam: gradient descent with a step size per parameter.

_MEAN_DECAY: Final = 0.9
_SQUARE_DECAY: Final = 0.999
_SMALLEST: Final = 1e-8


class Adam:
    """Optimiser Adam for one vector of parameters (Kingma and Ba 2015, algorithm 1).

    m = .9 m + .1 g, v = .999 v + .001 g^2; the step is rate m' / (sqrt(v') + 1e-8), with m' and v'
    corrected for their initial 0.

    Args:
        size: number of parameters.
        rate: learning rate: about the length of a step, in units of the parameters.
    """

    def __init__(self, size: int, rate: float) -> None:
        self.rate = rate
        self._mean = np.zeros(size)
        self._square = np.zeros(size)
        self._steps = 0

    def step(self, parameters: Floats, gradient: Floats) -> None:
        """Move `parameters` in place against `gradient`; both (size,)."""
        self._steps += 1
        self._mean += (1.0 - _MEAN_DECAY) * (gradient - self._mean)
        self._square += (1.0 - _SQUARE_DECAY) * (gradient * gradient - self._square)
        mean_bias = 1.0 - _MEAN_DECAY**self._steps
        square_bias = 1.0 - _SQUARE_DECAY**self._steps
        length = np.sqrt(self._square / square_bias) + _SMALLEST
        parameters -= (self.rate / mean_bias) * self._mean / length

    def save(self) -> dict[str, Any]:
        """Return both running means and the number of steps."""
        return {
            "mean": self._mean.tolist(),
            "square": self._square.tolist(),
            "steps": self._steps,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned for a vector of the same size."""
        self._mean[:] = saved["mean"]
        self._square[:] = saved["square"]
        self._steps = saved["steps"]


# -- linear function -------------------------------------------------------------------------------
# A linear value function, the baseline that a network must beat.

_LINEAR_KIND: Final = "linear"
_RIDGE: Final = 1e-3


class LinearFunction:
    """Linear value function Q(x) = w . x + c.

    Args:
        inputs_n: number of features of an input.
        rate: learning rate of `Adam`.
    """

    def __init__(self, inputs_n: int, rate: float) -> None:
        self._parameters = np.zeros(inputs_n + 1)
        self._adam = Adam(inputs_n + 1, rate)

    def values(self, inputs: Floats) -> Floats:
        """Return the value of each input (n, inputs_n)."""
        values: Floats = inputs @ self._parameters[:-1] + self._parameters[-1]
        return values

    def values_of_actions(self, state: Floats, actions: Floats) -> Floats:
        """Return the value of each action in one state."""
        split = len(state)
        of_state = state @ self._parameters[:split] + self._parameters[-1]
        values: Floats = actions @ self._parameters[split:-1] + of_state
        return values

    def step(self, inputs: Floats, targets: Floats) -> None:
        """Move by one step of `Adam` down the gradient of half the mean squared error."""
        error = (self.values(inputs) - targets) / len(targets)
        self._adam.step(self._parameters, np.append(error @ inputs, error.sum()))

    def refitted(self, inputs: Floats, targets: Floats, seed: int) -> "LinearFunction":
        """Return the least-squares fit to all pairs, with a small ridge for constant features."""
        with_one = np.column_stack([inputs, np.ones(len(inputs))])
        square = with_one.T @ with_one / len(inputs)
        square[np.diag_indices_from(square)] += _RIDGE
        fresh = LinearFunction(inputs.shape[1], self._adam.rate)
        fresh._parameters[:] = np.linalg.solve(square, with_one.T @ targets / len(inputs))
        return fresh

    def save(self) -> dict[str, Any]:
        """Return the parameters and the state of `Adam`."""
        return {
            "kind": _LINEAR_KIND,
            "parameters": self._parameters.tolist(),
            "adam": self._adam.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned for the same number of inputs."""
        self._parameters[:] = checked(saved, _LINEAR_KIND, len(self._parameters))
        self._adam.restore(saved["adam"])
