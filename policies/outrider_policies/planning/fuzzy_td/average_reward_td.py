"""Average-reward temporal differences for a linear value function (Vengerov 2005, eq. 4 to 6)."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FIRST_STEP: Final = 0.5
HALVES_AFTER: Final = 100.0
"""The step is .5 / (1 + t / 100) after t updates. A step of 1 / t, the paper's example, is erratic,
because its first few rewards dominate."""


class AverageRewardTd:
    """The learning rule: the step, and the mean reward of a transition.

    Attributes:
        updates_n: number of updates so far, t.
        mean_reward: rho of equation (5).
    """

    def __init__(self) -> None:
        self.updates_n = 0
        self.mean_reward = 0.0

    @property
    def step(self) -> float:
        """Alpha of the next update."""
        return FIRST_STEP / (1.0 + self.updates_n / HALVES_AFTER)

    def update(
        self, weights: Floats, basis: Floats, reward: float, value: float, next_value: float
    ) -> None:
        """Learn from one transition; changes `weights` in place.

        Args:
            weights: (rules,) p of the value function.
            basis: (rules,) phi(s_t) of the state before.
            reward: received between s_t and s_t+1.
            value: V(s_t) with the present weights.
            next_value: V(s_t+1) with the present weights.
        """
        step = self.step
        error = reward - self.mean_reward + next_value - value
        weights += step * error * basis
        self.mean_reward += step * (reward - self.mean_reward)
        self.updates_n += 1

    def save(self) -> dict[str, Any]:
        """As plain data."""
        return {"updates_n": self.updates_n, "mean_reward": self.mean_reward}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.updates_n = int(saved["updates_n"])
        self.mean_reward = float(saved["mean_reward"])
