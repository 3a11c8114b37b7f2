"""From which state to which a machine's value function learns, and when (Vengerov 2005, 3.4)."""

from collections.abc import Sequence
from typing import Any

from outrider_policies.planning.fuzzy_td.average_reward_td import AverageRewardTd
from outrider_policies.planning.fuzzy_td.fuzzy_rulebase import FuzzyRulebase


class ValueFunction:
    """A rulebase and its learning rule; alike machines (those of a cluster) share one."""

    def __init__(self, inputs_n: int, outputs: Sequence[float] = ()) -> None:
        self.rulebase = FuzzyRulebase(inputs_n)
        if outputs:
            self.rulebase.outputs[:] = outputs
        self.td = AverageRewardTd()

    def learn(self, left: Sequence[float], reward: float, reached: Sequence[float]) -> None:
        """From a state a machine was left in after a decision to the next it was seen in."""
        rulebase = self.rulebase
        self.td.update(
            rulebase.outputs,
            rulebase.degrees(left),
            reward,
            rulebase.value(left),
            rulebase.value(reached),
        )

    def by_rule(self) -> list[tuple[str, float]]:
        """What each rule says."""
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
    """What one machine went through since its value function last learned from it.

    A state counts as it is after the decision, if there was one. Where the batch system does not
    do what was planned (in shadow it always may), the states that are found count instead: then
    the value of states under the batch system's decisions is learned.

    Attributes:
        considered: forcing or shrinking was considered since and not done.
        has_changed: a run ended since the last round.
    """

    def __init__(self) -> None:
        self.considered = False
        self.has_changed = False
        self._reward = 0.0
        self._left: list[float] | None = None
        self._found: list[float] | None = None
        self._planned: dict[int, int] = {}

    def ended(self, job: int, reward: float) -> None:
        """A run on the machine ended."""
        self._reward += reward
        self.has_changed = True
        self._planned.pop(job, None)

    def went_as_planned(self, runs: dict[int, int]) -> bool:
        """Whether the machine runs (job number to CPUs) what was planned and did not end since."""
        return runs == self._planned

    def find(self, state: list[float], value: ValueFunction | None) -> None:
        """The machine is not as it was planned to be: learn from this state and the one before."""
        self._left = self._found
        self.reach(state, value)
        self._found = state

    def reach(self, state: list[float], value: ValueFunction | None) -> None:
        """The end of one transition and the begin of the next; None learns nothing from it."""
        if self._left is not None and value is not None:
            value.learn(self._left, self._reward, state)
        self._left, self._reward, self.considered = state, 0.0, False

    def leave(self, planned: dict[int, int]) -> None:
        """The round is over; this is what is to run, job number to CPUs."""
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
        """What `save` described."""
        made = cls()
        made._reward = float(saved["reward"])
        made.considered = bool(saved["considered"])
        made.has_changed = bool(saved["has_changed"])
        made._left, made._found = saved["left"], saved["found"]
        made._planned = {int(job): int(cpus) for job, cpus in saved["planned"]}
        return made
