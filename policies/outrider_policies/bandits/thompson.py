"""Thompson sampling on the bandit's arms and rewards: explore what may still be the best."""

from itertools import filterfalse
from typing import Annotated, Any

from msgspec import Meta

from outrider.api import SiteView
from outrider_policies.bandits.arms import MeanArms
from outrider_policies.bandits.eviction_bandit import (
    Evaluation,
    EvictionBandit,
    EvictionBanditSettings,
    Selection,
)
from outrider_policies.levels import QUEUE, Level


class ThompsonSettings(EvictionBanditSettings, frozen=True):
    """Settings of the bandit, and the lifetime of a sample."""

    resample_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds for which the samples of a state are reused; 0: every decision "
            "draws new ones, which takes milliseconds at level `computer`.",
        ),
    ] = 3600.0


class Thompson(EvictionBandit[MeanArms, ThompsonSettings]):
    """Bandit that takes the arm whose sampled mean reward is highest.

    The belief about an arm is ``Beta(1 + s, 1 + n - s)``, with n rewards of sum s after scaling
    them from [-1, 1] to [0, 1]: uniform before the first. Agrawal and Goyal: "Analysis of Thompson
    Sampling for the Multi-armed Bandit Problem", COLT 2012; fractional rewards are counted as such,
    not rounded at random. The probabilities of its choices are unknown. See docs/bandits.md.
    """

    name = "thompson"
    description = "Thompson sampling on the bandit's arms and rewards"
    api_version = 1

    def __init__(self, settings: ThompsonSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self._resample_s = settings.resample_s
        self._drawn: dict[int, tuple[float, dict[int, float]]] = {}

    def new_row(self) -> MeanArms:
        """Return an empty row of sums and counts of all rewards."""
        return MeanArms()

    def evaluate_group(self, key: Any, view: SiteView) -> Evaluation[MeanArms]:
        """Return the row of the state, and its samples that are still valid."""
        if not self._resample_s:
            return key, self.rows[key], None
        drawn = self._drawn.get(key)
        if drawn is None or view.now >= drawn[0] + self._resample_s:
            drawn = self._drawn[key] = view.now, {}
        return key, self.rows[key], drawn[1]

    def select(
        self, evaluation: Evaluation[MeanArms], level: Level, view: SiteView, may_defer: bool
    ) -> Selection:
        """Select the arm of the highest sample."""
        _, row, held = evaluation
        samples: dict[int, float] = {} if held is None else held
        arms = [*level.open_arms(view), QUEUE] if may_defer else level.open_arms(view)
        for arm in filterfalse(samples.__contains__, arms):
            samples[arm] = self._sample(row, arm)
        return max(arms, key=samples.__getitem__), "sample", None, 0.0

    def _sample(self, row: MeanArms, arm: int) -> float:
        total, n = row.evidence(arm)
        good = (total + n) / 2.0
        return self.rng.betavariate(1.0 + good, 1.0 + max(0.0, n - good))

    def rule(self, state: int) -> str:
        """Return how it selects, as a part of a sentence."""
        return "choices that may still prove the best are tried"

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return the base's state and the samples that are still valid."""
        drawn = [[state, at, list(held.items())] for state, (at, held) in self._drawn.items()]
        return super().save(view) | {"drawn": drawn}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned.

        Raises:
            ValueError: it was saved at another level.
        """
        super().restore(saved, view)
        today = dict(zip(*self.saved_arms(saved, view), strict=True))
        self._drawn = {
            state: (at, {today[arm]: sample for arm, sample in held})
            for state, at, held in saved["drawn"]
        }
