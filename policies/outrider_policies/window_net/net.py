"""The net: one score for each job of a window, by the same small perceptron for every row."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from outrider.api import WINDOW_FEATURES

Floats: TypeAlias = NDArray[np.float64]


class Layer(NamedTuple):
    """One layer: `weights` (inputs, outputs) and `bias` (outputs,)."""

    weights: Floats
    bias: Floats


class Net(NamedTuple):
    """Scores the rows of a window; the row of the highest score is selected.

    A kernel that all rows share, as in Zhang et al., "RLScheduler: an automated HPC batch job
    scheduler using reinforcement learning", SC 2020: so the order of the rows, and how many there
    are, makes no difference to a job's score. Hidden units are hyperbolic tangents.

    Attributes:
        window: rows that it was trained on.
        layers: from the features to one score.
    """

    window: int
    layers: tuple[Layer, ...]

    def scores(self, rows: NDArray[np.floating]) -> Floats:
        """(n,) the score of each row of an observation (n, features)."""
        return self.activations(rows)[-1][:, 0]

    def activations(self, rows: NDArray[np.floating]) -> list[Floats]:
        """What each layer is given, and at the end the scores (n, 1); for training."""
        values: Floats = np.asarray(rows, dtype=np.float64)
        found = [values]
        for number, layer in enumerate(self.layers, 1):
            values = values @ layer.weights + layer.bias
            if number < len(self.layers):
                values = np.tanh(values)
            found.append(values)
        return found


def fresh_net(window: int, hidden: Sequence[int], rng: np.random.Generator) -> Net:
    """A net that has learned nothing: weights uniform within 1 / sqrt(inputs), bias 0.

    Args:
        window: rows that it will be trained on.
        hidden: units of each hidden layer.
        rng: draws the weights.
    """
    sizes = [len(WINDOW_FEATURES), *hidden, 1]
    layers = []
    for inputs, outputs in pairwise(sizes):
        most = inputs**-0.5
        layers.append(Layer(rng.uniform(-most, most, (inputs, outputs)), np.zeros(outputs)))
    return Net(window, tuple(layers))
