"""The transitions from which a machine's value function learns (Vengerov 2005, 3.4)."""

from collections.abc import Sequence
from typing import Any

from outrider_policies.planning.fuzzy_td.average_reward_td import AverageRewardTd
from outrider_policies.planning.fuzzy_td.fuzzy_rulebase import FuzzyRulebase


class ValueFunction:
    """A rulebase and its learning rule; the machines of a cluster share one."""

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
        """(rule, output) of each rule."""
        return list(zip(self.rulebase.rules, self.rulebase.outputs.tolist(), strict=True))

    def save(self) -> dict[str, Any]:
        """As plain data."""
        return {"outputs": self.rulebase.outputs.tolist(), "td": self.td.save()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave. Raises `ValueError` if it has another number of rules."""
        outputs = saved["outputs"]
        if len(outputs) != len(self.rulebase.outputs):
            raise ValueError(
                f"saved with {len(outputs)} rules, not {len(self.rulebase.outputs)}: "
                "another number of inputs"
            )
        self.rulebase.outputs[:] = outputs
        self.td.restore(saved["td"])


class Transitions:
    """The states and rewards of one machine since its value function last learned from it.

    A state is recorded as it is after the decision, if there was one. If the batch system did not
    carry out the plan (as in shadow), the observed states are used instead: then the value of
    states under the batch system's decisions is learned.

    Attributes:
        considered: whether forcing or shrinking was considered since and not done.
        has_changed: whether a run ended since the last pass.
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
        """Whether the machine's runs (job number to CPUs) are those planned, less ended ones."""
        return runs == self._planned

    def find(self, state: list[float], value: ValueFunction | None) -> None:
        """The machine's state differs from the plan: learn from the last two observed states."""
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
        """As plain data."""
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
        """Restore from what `save` gave."""
        made = cls()
        made._reward = float(saved["reward"])
        made.considered = bool(saved["considered"])
        made.has_changed = bool(saved["has_changed"])
        made._left, made._found = saved["left"], saved["found"]
        made._planned = {int(job): int(cpus) for job, cpus in saved["planned"]}
        return made
