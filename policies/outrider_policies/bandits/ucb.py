"""Discounted UCB on the bandit's arms and rewards: optimism in place of random exploration."""

from collections.abc import Sequence
from itertools import compress
from math import inf, log, sqrt
from typing import Annotated, Any

from msgspec import Meta

from outrider.api import SiteView
from outrider_policies.bandits.arms import Arms
from outrider_policies.bandits.eviction_bandit import (
    Evaluation,
    EvictionBandit,
    EvictionBanditSettings,
    Selection,
)
from outrider_policies.levels import QUEUE, Level

# -- fading arms -----------------------------------------------------------------------------------
# Discounted arm values: means with exponential forgetting, and their effective sample sizes.

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
        self._faded: dict[int, tuple[float, float, int]] = {}  # sum, count, at which reward

    def learn(self, arm: int, reward: float) -> None:
        """Update the value of an arm with a reward."""
        now = self._rewards = self._rewards + 1
        total, count, as_of = self._faded.get(arm, _NO_EVIDENCE)
        fading = self._discount ** (now - as_of)
        total, count = fading * total + reward, fading * count + 1.0
        self._faded[arm] = total, count, now
        self._set(arm, total / count)

    def bounds(self, arms: Sequence[int], spread: float) -> list[float]:
        """Return (arms,) ``value + spread / sqrt(evidence)``, inf without evidence.

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
        """Return the discounted number of all rewards in the state."""
        if self._discount == 1.0:
            return float(self._rewards)
        return (1.0 - self._discount**self._rewards) / (1.0 - self._discount)

    def seen_n(self) -> int:
        """Return the number of rewards, not discounted."""
        return self._rewards

    def save(self, arms: Sequence[int]) -> list[Any]:
        """Return the number of rewards; sum, count and update of each arm (0: untried)."""
        return [self._rewards, [list(self._faded[a]) if a in self._faded else 0 for a in arms]]

    def restore(self, saved: Sequence[Any], arms: Sequence[int]) -> None:
        """Restore an empty row from `save`; `arms[i]` is the present number of saved arm i."""
        self._rewards, faded = saved
        for arm, known in zip(arms, faded, strict=True):
            if known:
                total, count, as_of = known
                self._faded[arm] = total, count, as_of
                self._set(arm, total / count)


# -- ucb -------------------------------------------------------------------------------------------

_REWARD_RANGE = 2.0


class UcbSettings(EvictionBanditSettings, frozen=True):
    """Settings of the bandit, its optimism and its forgetting."""

    exploration_weight: Annotated[
        float,
        Meta(ge=0, description="xi of the bonus; theory wants above 1/2, less explores less."),
    ] = 0.5
    discount_ratio: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="Weight of a reward after the next one of its state (gamma); 1 never "
            "forgets, less follows a site that changes.",
        ),
    ] = 0.999


class DiscountedUcb(EvictionBandit[FadingArms, UcbSettings]):
    """Bandit that takes the arm whose value plus bonus is highest; untried arms come first.

    ``bonus = 2 B sqrt(xi ln(n) / n_a)`` with B = 2, the range of rewards, and n, n_a the
    discounted numbers of rewards of the state and of the arm. Garivier and Moulines: "On
    Upper-Confidence Bound Policies for Switching Bandit Problems", ALT 2011, section 2.1.

    A learner to compare with. Rewards of the queue come late, when the job has left, so its bonus
    stays high until then: jobs are deferred far too often. Not for production; see docs/bandits.md.
    """

    name = "ucb"
    description = "discounted UCB on the bandit's arms and rewards; defers jobs far too long"
    api_version = 1

    def new_row(self) -> FadingArms:
        """Return an empty row of discounted means."""
        return FadingArms(self.settings.discount_ratio)

    def select(
        self, evaluation: Evaluation[FadingArms], level: Level, view: SiteView, may_defer: bool
    ) -> Selection:
        """Select the arm of the highest upper bound; equals are drawn at random."""
        row = evaluation[1]
        scale = 2.0 * _REWARD_RANGE * sqrt(self.settings.exploration_weight)
        spread = scale * sqrt(max(0.0, log(max(1.0, row.evidence_of_all()))))
        arms = [*level.open_arms(view), QUEUE] if may_defer else level.open_arms(view)
        bounds = row.bounds(arms, spread)
        best = max(bounds)
        ties = list(compress(arms, map(best.__eq__, bounds)))
        arm = ties[int(self.rng.random() * len(ties))]
        return arm, "untried" if best == inf else "best", ties, 0.0

    def rule(self, state: int) -> str:
        """Return how it selects, as a part of a sentence."""
        return "choices with few observations are preferred"
