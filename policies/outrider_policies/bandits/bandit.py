"""The epsilon-greedy bandits of McGough and Forshaw (2015): dodge evictions, waste less energy.

Forshaw, McGough: "Reduction of wasted energy in a volunteer computing system through
Reinforcement Learning", CS-TR-1451, Newcastle University 2015, section 4.
"""

from itertools import filterfalse
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from outrider.api import SiteView
from outrider_policies.bandits.arms import (
    Arms,
    MeanArms,
    RecentArms,
    gaussian_weights,
    plain_weights,
)
from outrider_policies.bandits.eviction_bandit import Evaluation, EvictionBandit, Selection
from outrider_policies.bandits.exploration import Exploration, ExplorationRate
from outrider_policies.bandits.full_places import FullOffered
from outrider_policies.bandits.settings import EvictionBanditSettings
from outrider_policies.levels import QUEUE, Level


class BanditSettings(EvictionBanditSettings, frozen=True):
    """Settings of the epsilon-greedy bandit; defaults are what the paper found best."""

    epsilon: Annotated[
        float,
        Meta(ge=0, le=1, description="Ratio of decisions drawn at random to explore (eq. 6)."),
    ] = 0.1
    history_n: (
        Annotated[
            int,
            Meta(
                gt=0,
                description="Last rewards of an arm that count, to follow a site that changes "
                "(section 4.4.1). Unset: all of them. Below 20 it hurts.",
            ),
        ]
        | None
    ) = None
    history_weights: Annotated[
        Literal["plain", "gaussian"],
        Meta(
            description="Whether the `history_n` last rewards count alike or the later ones more "
            "(eq. 7 and 8). The paper found plain ones better.",
        ),
    ] = "plain"
    untried_reward: Annotated[
        float,
        Meta(
            ge=-1,
            le=1,
            description="Value of an arm never tried (section 4.4.3). At 0 it is preferred to "
            "those that only disappointed; at -1 only exploration finds it.",
        ),
    ] = 0.0
    first_n: Annotated[
        int,
        Meta(
            ge=0,
            description="Rewards of a state during which `first_epsilon` holds (section 4.4.2).",
        ),
    ] = 0
    first_epsilon: Annotated[
        float, Meta(ge=0, le=1, description="Epsilon for a state's first `first_n` rewards.")
    ] = 1.0
    divergence_ratio: (
        Annotated[
            float,
            Meta(
                ge=0,
                le=1,
                description="Explore more in a state whose last rewards are in the mean below this "
                "ratio of the best seen there (section 4.4.2). Unset: never.",
            ),
        ]
        | None
    ) = None
    divergence_n: Annotated[
        int, Meta(gt=0, description="Last rewards of a state for `divergence_ratio`.")
    ] = 50
    divergence_epsilon: Annotated[
        float, Meta(ge=0, le=1, description="Added to epsilon while rewards diverge.")
    ] = 0.1
    offer_full: Annotated[
        bool,
        Meta(
            description="Offer full clusters and computers, too: a job sent to one waits an epoch "
            "(section 4.4.3 removes them).",
        ),
    ] = False

    def __post_init__(self) -> None:
        if self.history_weights == "gaussian" and self.history_n is None:
            raise ValueError(
                'history_weights = "gaussian" needs history_n, for equation 8 divides by n; right '
                "would be the length of a history, as in history_n = 100"
            )


class Bandit(EvictionBandit[Arms, BanditSettings]):
    """Takes the arm of highest mean reward, and an arm at random with probability epsilon (eq. 6).

    States and arms: `outrider_policies.levels`. Rewards (equation 4):
    `outrider_policies.bandits.rewards`. Values: `outrider_policies.bandits.arms`.
    Full clusters are no arms (A' of eq. 6), equal values are drawn between. See docs/bandits.md.
    """

    name = "bandit"
    description = "learns which cluster, at which hour, lets a job finish on few watts"
    api_version = 1
    presets: ClassVar = {
        "literal": {"max_defer_s": float("inf")},
        "reboot": {"avoid_reboot": True},
        "least_energy": {"epsilon": 0.01},
    }

    def __init__(self, settings: BanditSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self.untried_reward = settings.untried_reward
        self._weights: list[float] | None = None
        if settings.history_n is not None:
            gaussian = settings.history_weights == "gaussian"
            self._weights = (gaussian_weights if gaussian else plain_weights)(settings.history_n)
        self._rate = ExplorationRate(
            Exploration(
                settings.epsilon,
                settings.first_epsilon,
                settings.first_n,
                settings.divergence_ratio,
                settings.divergence_n,
                settings.divergence_epsilon,
            )
        )
        if settings.offer_full:
            self.offered = FullOffered(self.level)

    def new_row(self) -> Arms:
        """Means of all rewards, or of the last ones."""
        return MeanArms() if self._weights is None else RecentArms(self._weights)

    def evaluate_group(self, key: Any, view: SiteView) -> Evaluation[Arms]:
        """The row of the state, and epsilon in it."""
        rate = self._rate
        epsilon = rate.epsilon(key) if rate.varies else self.settings.epsilon
        return key, self.rows[key], epsilon

    def select(
        self, evaluation: Evaluation[Arms], level: Level, view: SiteView, may_defer: bool
    ) -> Selection:
        """Epsilon-greedy over the open places and the queue (eq. 6)."""
        _, row, epsilon = evaluation
        rng = self.rng
        value, ties = row.best(level.is_open(view), may_defer)
        if value <= self.untried_reward:
            untried = self._untried(row, level, view, may_defer)
            if untried:
                ties = ties + untried if value == self.untried_reward else untried
        if rng.random() < epsilon:
            return level.draw(view, rng, may_defer), "explore", ties, epsilon
        arm = ties[0] if len(ties) == 1 else ties[int(rng.random() * len(ties))]
        return arm, "best", ties, epsilon

    def _untried(self, row: Arms, level: Level, view: SiteView, may_defer: bool) -> list[int]:
        """The open arms of which nothing is known."""
        untried = list(filterfalse(row.values.__contains__, level.open_arms(view)))
        if may_defer and QUEUE not in row.values:
            untried.append(QUEUE)
        return untried

    def learn(self, state: Any, arm: int, reward: float) -> None:
        """An arm earned a reward in a state; epsilon may depend on it."""
        self.rows[state].learn(arm, reward)
        if self._rate.varies:
            self._rate.record(state, reward)

    def rule(self, state: int) -> str:
        """For `explain`."""
        return f"{self._rate.epsilon(state):.0%} of choices explore"

    def save(self, view: SiteView) -> dict[str, Any]:
        """Also what epsilon depends on."""
        return super().save(view) | {"seen": self._rate.save()}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Go on from what `save` gave.

        Raises:
            ValueError: it was saved at another level or with another kind of history.
        """
        super().restore(saved, view)
        self._rate.restore(saved.get("seen", []))
