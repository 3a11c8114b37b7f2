"""The epsilon-greedy bandits of McGough and Forshaw (2015), which avoid evictions.

Forshaw, McGough: "Reduction of wasted energy in a volunteer computing system through
Reinforcement Learning", CS-TR-1451, Newcastle University 2015, section 4.
"""

import random
from collections import deque
from collections.abc import Sequence
from itertools import filterfalse
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from msgspec import Meta

from outrider.api import NOWHERE, SiteView
from outrider_policies.bandits.arms import (
    Arms,
    MeanArms,
    RecentArms,
    gaussian_weights,
    plain_weights,
)
from outrider_policies.bandits.eviction_bandit import (
    Evaluation,
    EvictionBandit,
    EvictionBanditSettings,
    Selection,
)
from outrider_policies.levels import QUEUE, AskedOneByOne, Level, Openness


class BanditSettings(EvictionBanditSettings, frozen=True):
    """Settings of the epsilon-greedy bandit; the defaults are the best values of the paper."""

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
            description="Whether the `history_n` last rewards count the same or the later ones "
            "more (eq. 7 and 8). The paper found plain ones better.",
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
            description="Rewards of a state during which `first_epsilon` applies (section 4.4.2).",
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
                description="Explore more in a state whose last rewards are on average below this "
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
            description="Offer full clusters and computers too: a job sent to one waits an epoch "
            "(section 4.4.3 removes them).",
        ),
    ] = False

    def __post_init__(self) -> None:
        if self.history_weights == "gaussian" and self.history_n is None:
            raise ValueError(
                'history_weights = "gaussian" needs history_n, because equation 8 divides by n; '
                "use a history length, as in history_n = 100"
            )


class Bandit(EvictionBandit[Arms, BanditSettings]):
    """Bandit that takes the arm of highest mean reward, or a random one with probability epsilon.

    Equation 6. States and arms: `outrider_policies.levels`. Rewards (equation 4):
    `outrider_policies.bandits.eviction_bandit`. Values: `outrider_policies.bandits.arms`. Full
    clusters are no arms (A' of eq. 6). Among equal values one is drawn. See docs/bandits.md.
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
        """Return an empty row: means of all rewards, or of the last ones."""
        return MeanArms() if self._weights is None else RecentArms(self._weights)

    def evaluate_group(self, key: Any, view: SiteView) -> Evaluation[Arms]:
        """Return the row of the state, and epsilon in it."""
        rate = self._rate
        epsilon = rate.epsilon(key) if rate.varies else self.settings.epsilon
        return key, self.rows[key], epsilon

    def select(
        self, evaluation: Evaluation[Arms], level: Level, view: SiteView, may_defer: bool
    ) -> Selection:
        """Select an arm epsilon-greedily among the open places and the queue (eq. 6)."""
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
        """Return the open arms that were never tried."""
        untried = list(filterfalse(row.values.__contains__, level.open_arms(view)))
        if may_defer and QUEUE not in row.values:
            untried.append(QUEUE)
        return untried

    def learn(self, state: Any, arm: int, reward: float) -> None:
        """Learn the reward of an arm in a state; epsilon may depend on it."""
        self.rows[state].learn(arm, reward)
        if self._rate.varies:
            self._rate.record(state, reward)

    def rule(self, state: int) -> str:
        """Return the share of random choices in a state, as a part of a sentence."""
        return f"{self._rate.epsilon(state):.0%} of its choices are random"

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return the base's state and the rewards on which epsilon depends."""
        return super().save(view) | {"seen": self._rate.save()}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned.

        Raises:
            ValueError: it was saved at another level or with another kind of history.
        """
        super().restore(saved, view)
        self._rate.restore(saved.get("seen", []))


# -- exploration -----------------------------------------------------------------------------------
# How often a bandit explores: equation 6's epsilon, which may vary (section 4.4.2).


class Exploration(NamedTuple):
    """Terms of epsilon, and when to explore more than usual.

    Attributes:
        epsilon: ratio of decisions drawn at random.
        first_epsilon: the ratio for the first `first_n` rewards of a state.
        first_n: see `first_epsilon`.
        divergence_ratio: explore more in a state if the mean of its last `divergence_n` rewards is
            below this ratio of the best reward seen there; None: never.
        divergence_n: see `divergence_ratio`.
        divergence_epsilon: added to epsilon then.
    """

    epsilon: float
    first_epsilon: float
    first_n: int
    divergence_ratio: float | None
    divergence_n: int
    divergence_epsilon: float


class ExplorationRate:
    """Epsilon of each state, the probability of exploring.

    Args:
        exploration: when to explore more.

    Attributes:
        varies: True if epsilon depends on the state.
    """

    def __init__(self, exploration: Exploration) -> None:
        self._terms = exploration
        self.varies = exploration.first_n > 0 or exploration.divergence_ratio is not None
        self._seen: dict[int, _RewardHistory] = {}

    def epsilon(self, state: int) -> float:
        """Return the probability of exploring in a state."""
        terms = self._terms
        seen = self._seen.get(state)
        if (0 if seen is None else seen.n) < terms.first_n:
            return terms.first_epsilon
        if seen is not None and self._diverges(seen):
            return min(1.0, terms.epsilon + terms.divergence_epsilon)
        return terms.epsilon

    def _diverges(self, seen: "_RewardHistory") -> bool:
        """Return True if recent rewards fell below the ratio of the best.

        False if the best was not positive: then no ratio is defined.
        """
        ratio, best = self._terms.divergence_ratio, seen.best
        if ratio is None or best <= 0 or len(seen.last) < self._terms.divergence_n:
            return False
        return sum(seen.last) / len(seen.last) < ratio * best

    def record(self, state: int, reward: float) -> None:
        """Record a reward of a state. Needed only if epsilon `varies`."""
        seen = self._seen.get(state)
        if seen is None:
            seen = self._seen[state] = _RewardHistory(self._terms.divergence_n)
        seen.n += 1
        seen.last.append(reward)
        if reward > seen.best:
            seen.best = reward

    def save(self) -> list[Any]:
        """Return the whole state as plain data."""
        return [[state, s.n, s.best, list(s.last)] for state, s in self._seen.items()]

    def restore(self, saved: list[Any]) -> None:
        """Restore what `save` returned."""
        self._seen = {}
        for state, n, best, last in saved:
            seen = self._seen[state] = _RewardHistory(self._terms.divergence_n)
            seen.n, seen.best = n, best
            seen.last.extend(last)


class _RewardHistory:
    """Rewards of one state: their number, the best, and the last few."""

    __slots__ = ("best", "last", "n")

    def __init__(self, last_n: int) -> None:
        self.n = 0
        self.best = -1.0
        self.last: deque[float] = deque(maxlen=last_n)


# -- full places -----------------------------------------------------------------------------------
# Full places as arms, which section 4.4.3 of McGough and Forshaw advises against.


class FullOffered(Level):
    """A level on which full places can be chosen too; a job sent to one stays queued.

    Args:
        level: defines the places.
    """

    def __init__(self, level: Level) -> None:
        self._level = level

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """Return every place, open or full."""
        return self._level.arms(view)

    def open_n(self, view: SiteView) -> int:
        """Return the number of all places."""
        return len(self._level.arms(view))

    def is_open(self, view: SiteView) -> Openness:
        """Return True for every place."""
        return AskedOneByOne(lambda _: True)

    def draw(self, view: SiteView, rng: random.Random, may_defer: bool) -> int:
        """Draw any place, or the queue if allowed, uniformly."""
        arms = [*self._level.arms(view), QUEUE] if may_defer else self._level.arms(view)
        return arms[int(rng.random() * len(arms))]

    def draw_chance(self, cluster: int, view: SiteView, may_defer: bool) -> float:
        """Return the probability that a uniform draw ends in a cluster; a full one is the queue."""
        all_n, open_n = self.open_n(view), self._level.open_n(view)
        if cluster == NOWHERE:
            return (all_n - open_n + may_defer) / (all_n + may_defer)
        return self._level.draw_chance(cluster, view, False) * open_n / (all_n + may_defer)

    def share(self, arms: Sequence[int], cluster: int, view: SiteView) -> float:
        """Return the level's share, with full places counted as the queue."""
        is_open = self._level.is_open(view)
        ways = [arm if arm != QUEUE and is_open[arm] else QUEUE for arm in arms]
        return self._level.share(ways, cluster, view)

    def machine(self, arm: int, view: SiteView, rng: random.Random) -> int:
        """Return a free machine of the place; `NOWHERE` if there is none."""
        is_open = self._level.is_open(view)[arm]
        return self._level.machine(arm, view, rng) if is_open else NOWHERE
