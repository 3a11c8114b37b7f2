"""Full places as arms, which section 4.4.3 of McGough and Forshaw advises against."""

import random
from collections.abc import Sequence

from outrider.api import NOWHERE, SiteView
from outrider_policies.levels import QUEUE, AskedOneByOne, Level, Openness


class FullOffered(Level):
    """A level on which every place can be chosen. A job sent to a full one stays in the queue.

    Args:
        level: defines the places.
    """

    def __init__(self, level: Level) -> None:
        self._level = level

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """Every place."""
        return self._level.arms(view)

    def open_n(self, view: SiteView) -> int:
        """Number of all places."""
        return len(self._level.arms(view))

    def is_open(self, view: SiteView) -> Openness:
        """True for every place."""
        return AskedOneByOne(lambda _: True)

    def draw(self, view: SiteView, rng: random.Random, may_defer: bool) -> int:
        """Any place, or the queue if allowed, drawn uniformly."""
        arms = [*self._level.arms(view), QUEUE] if may_defer else self._level.arms(view)
        return arms[int(rng.random() * len(arms))]

    def draw_chance(self, cluster: int, view: SiteView, may_defer: bool) -> float:
        """Probability that a uniform draw ends in this cluster; full places end in the queue."""
        all_n, open_n = self.open_n(view), self._level.open_n(view)
        if cluster == NOWHERE:
            return (all_n - open_n + may_defer) / (all_n + may_defer)
        return self._level.draw_chance(cluster, view, False) * open_n / (all_n + may_defer)

    def share(self, arms: Sequence[int], cluster: int, view: SiteView) -> float:
        """As for the level itself, with full places counted as the queue."""
        is_open = self._level.is_open(view)
        ways = [arm if arm != QUEUE and is_open[arm] else QUEUE for arm in arms]
        return self._level.share(ways, cluster, view)

    def machine(self, arm: int, view: SiteView, rng: random.Random) -> int:
        """A free machine of the place; `NOWHERE` if there is none."""
        is_open = self._level.is_open(view)[arm]
        return self._level.machine(arm, view, rng) if is_open else NOWHERE
