"""Transitions from which a machine's value function learns (Vengerov 2005, 3.4)."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# -- fuzzy rulebase --------------------------------------------------------------------------------
# A fuzzy rulebase of two labels for each input: small and large (Vengerov 2005, section 3.2).

Floats = NDArray[np.float64]

LABELS: Final = "SL"


class FuzzyRulebase:
    """Map from k inputs in [0, 1] to a value, by 2^k rules.

    There is one rule for each combination of labels. An input x is *large* to the degree x and
    *small* to the degree 1 - x; a rule holds to the product of its degrees (product inference).
    These sum to 1 over the rules, so equation (1) is their weighted sum, and each is the basis
    function of its rule's output in equation (6).

    Attributes:
        outputs: (2^k,) output of each rule, in the paper's order: (S, S, S), (S, S, L), ...
    """

    def __init__(self, inputs_n: int) -> None:
        self.inputs_n = inputs_n
        self.outputs: Floats = np.zeros(2**inputs_n)

    @property
    def rules(self) -> list[str]:
        """The labels of each rule: ``SSS``, ``SSL``, ..."""
        width = self.inputs_n
        return [
            "".join(LABELS[number >> bit & 1] for bit in reversed(range(width)))
            for number in range(2**width)
        ]

    def degrees(self, inputs: Sequence[float]) -> Floats:
        """Return the (2^k,) degree to which each rule holds. `inputs`: (k,) each in [0, 1]."""
        degrees: Floats = np.ones(1)
        for x in inputs:
            degrees = np.multiply.outer(degrees, (1.0 - x, x)).ravel()
        return degrees

    def value(self, inputs: Sequence[float]) -> float:
        """Return equation (1) for one state: (k,) inputs in [0, 1]."""
        outputs: list[float] = self.outputs.tolist()  # of so few, half the cost of an array
        for x in inputs:
            half = len(outputs) // 2
            pairs = zip(outputs[:half], outputs[half:], strict=True)
            outputs = [small + x * (large - small) for small, large in pairs]
        return outputs[0]

    def values(self, inputs: Sequence[Floats | float]) -> Floats:
        """Return equation (1) for many states together.

        Args:
            inputs: k columns of equal length, or numbers for constant columns, in [0, 1].
        """
        outputs: Floats = self.outputs[:, np.newaxis]
        for column in inputs:
            half = len(outputs) // 2
            outputs = outputs[:half] + column * (outputs[half:] - outputs[:half])
        values: Floats = outputs[0]
        return values


# -- transitions -----------------------------------------------------------------------------------


class ValueFunction:
    """Rulebase and its learning rule; the machines of a cluster share one."""

    def __init__(self, inputs_n: int, outputs: Sequence[float] = ()) -> None:
        self.rulebase = FuzzyRulebase(inputs_n)
        if outputs:
            self.rulebase.outputs[:] = outputs
        self.td = AverageRewardTd()

    def learn(self, left: Sequence[float], reward: float, reached: Sequence[float]) -> None:
        """Learn from a transition: the state after a decision, the reward, the next state."""
        rulebase = self.rulebase
        self.td.update(
            rulebase.outputs,
            rulebase.degrees(left),
            reward,
            rulebase.value(left),
            rulebase.value(reached),
        )

    def by_rule(self) -> list[tuple[str, float]]:
        """Return (rule, output) of each rule."""
        return list(zip(self.rulebase.rules, self.rulebase.outputs.tolist(), strict=True))

    def save(self) -> dict[str, Any]:
        """Return the outputs and the learning rule as plain data."""
        return {"outputs": self.rulebase.outputs.tolist(), "td": self.td.save()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned. Raises `ValueError` for another number of rules."""
        outputs = saved["outputs"]
        if len(outputs) != len(self.rulebase.outputs):
            raise ValueError(
                f"saved with {len(outputs)} rules, not {len(self.rulebase.outputs)}: "
                "another number of inputs"
            )
        self.rulebase.outputs[:] = outputs
        self.td.restore(saved["td"])


class Transitions:
    """States and rewards of one machine since its value function last learned from it.

    A state is recorded as it is after the decision, if there was one. If the batch system did not
    execute the plan (as in shadow), the observed states are used instead: then the value of
    states under the batch system's decisions is learned.

    Attributes:
        considered: True if forcing or shrinking was considered since and not done.
        has_changed: True if a run ended since the last pass.
    """

    def __init__(self) -> None:
        self.considered = False
        self.has_changed = False
        self._reward = 0.0
        self._left: list[float] | None = None
        self._found: list[float] | None = None
        self._planned: dict[int, int] = {}

    def ended(self, job: int, reward: float) -> None:
        """Add the reward of a run that ended on the machine."""
        self._reward += reward
        self.has_changed = True
        self._planned.pop(job, None)

    def went_as_planned(self, runs: dict[int, int]) -> bool:
        """Return True if the machine's runs are those planned, less ended ones.

        Args:
            runs: CPUs by job number.
        """
        return runs == self._planned

    def find(self, state: list[float], value: ValueFunction | None) -> None:
        """Learn from the last two observed states: the machine's state differs from the plan."""
        self._left = self._found
        self.reach(state, value)
        self._found = state

    def reach(self, state: list[float], value: ValueFunction | None) -> None:
        """End one transition and begin the next; learn from it unless `value` is None."""
        if self._left is not None and value is not None:
            value.learn(self._left, self._reward, state)
        self._left, self._reward, self.considered = state, 0.0, False

    def leave(self, planned: dict[int, int]) -> None:
        """End the pass; `planned` are the machine's planned runs, job number to CPUs."""
        self._planned = planned
        self.has_changed = False

    def save(self) -> dict[str, Any]:
        """Return the states and rewards as plain data."""
        return {
            "reward": self._reward,
            "considered": self.considered,
            "has_changed": self.has_changed,
            "left": self._left,
            "found": self._found,
            "planned": list(self._planned.items()),
        }

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> "Transitions":
        """Return an object restored from what `save` returned."""
        restored = cls()
        restored._reward = float(saved["reward"])
        restored.considered = bool(saved["considered"])
        restored.has_changed = bool(saved["has_changed"])
        restored._left, restored._found = saved["left"], saved["found"]
        restored._planned = {int(job): int(cpus) for job, cpus in saved["planned"]}
        return restored


# -- average reward td -----------------------------------------------------------------------------
# Average-reward temporal differences for a linear value function (Vengerov 2005, eq. 4 to 6).


FIRST_STEP: Final = 0.5
HALVES_AFTER: Final = 100.0
"""The step is .5 / (1 + t / 100) after t updates. A step of 1 / t, the paper's example, is erratic,
because its first few rewards dominate."""


class AverageRewardTd:
    """Learning rule of the value function: the step, and the mean reward of a transition.

    Attributes:
        updates_n: number of updates so far, t.
        mean_reward: rho of equation (5).
    """

    def __init__(self) -> None:
        self.updates_n = 0
        self.mean_reward = 0.0

    @property
    def step(self) -> float:
        """Alpha of the next update, its step size."""
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
        """Return the learning state as plain data."""
        return {"updates_n": self.updates_n, "mean_reward": self.mean_reward}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned."""
        self.updates_n = int(saved["updates_n"])
        self.mean_reward = float(saved["mean_reward"])
