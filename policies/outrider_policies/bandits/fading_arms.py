"""Discounted arm values: means with exponential forgetting, and their effective sample sizes."""

from collections.abc import Sequence
from math import inf, sqrt
from typing import Any

from outrider_policies.bandits.arms import Arms

_FORGOTTEN = 1e-9
"""Discounted counts below this are taken as 0."""

_NO_EVIDENCE = (0.0, 0.0, 0)


class FadingArms(Arms):
    """Sums of rewards, discounted at every reward of the state.

    Discounting does not change the mean of an arm, so a value changes only by its own rewards.

    Args:
        discount_ratio: factor on a state's earlier rewards at each new one, in (0, 1].
    """

    __slots__ = ("_discount", "_faded", "_rewards")

    def __init__(self, discount_ratio: float) -> None:
        super().__init__()
        self._discount = discount_ratio
        self._rewards = 0
        self._faded: dict[int, tuple[float, float, int]] = {}  # sum, count, as of which reward

    def learn(self, arm: int, reward: float) -> None:
        """Update the value of an arm with a reward."""
        now = self._rewards = self._rewards + 1
        total, count, as_of = self._faded.get(arm, _NO_EVIDENCE)
        fading = self._discount ** (now - as_of)
        total, count = fading * total + reward, fading * count + 1.0
        self._faded[arm] = total, count, now
        self._set(arm, total / count)

    def bounds(self, arms: Sequence[int], spread: float) -> list[float]:
        """(arms,) ``value + spread / sqrt(evidence)``, inf without evidence.

        Evidence is the discounted number of an arm's rewards.
        """
        faded, discount, now = self._faded, self._discount, self._rewards
        return [
            total / count + spread / sqrt(left)
            if (left := count * discount ** (now - as_of)) > _FORGOTTEN
            else inf
            for total, count, as_of in [faded.get(arm, _NO_EVIDENCE) for arm in arms]
        ]

    def evidence_of_all(self) -> float:
        """Discounted number of all rewards in the state."""
        if self._discount == 1.0:
            return float(self._rewards)
        return (1.0 - self._discount**self._rewards) / (1.0 - self._discount)

    def seen_n(self) -> int:
        """Number of rewards, not discounted."""
        return self._rewards

    def save(self, arms: Sequence[int]) -> list[Any]:
        """Number of rewards; sum, count and time of update for each arm (0 if untried)."""
        return [self._rewards, [list(self._faded[a]) if a in self._faded else 0 for a in arms]]

    def restore(self, saved: Sequence[Any], arms: Sequence[int]) -> None:
        """Fill an empty row from `save`; `arms[i]` is today's number of saved arm i."""
        self._rewards, faded = saved
        for arm, known in zip(arms, faded, strict=True):
            if known:
                total, count, as_of = known
                self._faded[arm] = total, count, as_of
                self._set(arm, total / count)
