"""Experience replay: a buffer of the latest transitions."""

import random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Transitions(NamedTuple):
    """State-action pairs, their rewards, and the next pairs.

    Attributes:
        inputs: (n, d) features of state and action.
        rewards: (n,).
        next_inputs: (n, d) features of the next state and the action chosen in it.
    """

    inputs: Floats
    rewards: Floats
    next_inputs: Floats


class ReplayMemory:
    """A ring buffer of the latest transitions (Lin 1992).

    Args:
        capacity: most transitions; a small buffer adapts sooner to changes.
        inputs_n: number of features of state and action together.
    """

    def __init__(self, capacity: int, inputs_n: int) -> None:
        self._capacity = capacity
        self._all = Transitions(
            np.zeros((capacity, inputs_n)), np.zeros(capacity), np.zeros((capacity, inputs_n))
        )
        self._added = 0

    def __len__(self) -> int:
        return min(self._added, self._capacity)

    def add(self, inputs: Floats, reward: float, next_inputs: Floats) -> None:
        """Add one transition, in place of the oldest if full."""
        at = self._added % self._capacity
        self._all.inputs[at] = inputs
        self._all.rewards[at] = reward
        self._all.next_inputs[at] = next_inputs
        self._added += 1

    def sample(self, n: int, rng: random.Random) -> Transitions:
        """Draw `n` transitions with replacement. Raises `ValueError` if there are none."""
        size = len(self)
        if not size:
            raise ValueError("the replay memory is empty")
        drawn = np.array([int(rng.random() * size) for _ in range(n)])
        return Transitions(*(column[drawn] for column in self._all))

    def whole(self) -> Transitions:
        """A copy of all transitions."""
        return Transitions(*(column[: len(self)].copy() for column in self._all))

    def save(self) -> dict[str, Any]:
        """Every transition, as plain data."""
        return {
            "added": self._added,
            **{name: c.tolist() for name, c in self.whole()._asdict().items()},
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave.

        Raises:
            ValueError: another number of features or transitions; nothing changed.
        """
        n, inputs_n = min(saved["added"], self._capacity), self._all.inputs.shape[1]
        given = Transitions(*(np.array(saved[name], dtype=float) for name in Transitions._fields))
        right = ((n, inputs_n), (n,), (n, inputs_n))
        if n and tuple(column.shape for column in given) != right:
            raise ValueError(
                f"it remembers transitions of shapes {[column.shape for column in given]}, "
                f"{saved['added']} in all; right would be {list(right)} here"
            )
        for column, values in zip(self._all, given, strict=True):
            column[:n] = values[:n].reshape(column[:n].shape)
        self._added = saved["added"]
