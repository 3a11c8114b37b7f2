"""Discounted UCB on the bandit's arms and rewards: optimism in place of chance."""

from itertools import compress
from math import inf, log, sqrt
from typing import Annotated

from msgspec import Meta

from outrider.api import SiteView
from outrider_policies.bandits.eviction_bandit import Evaluation, EvictionBandit, Selection
from outrider_policies.bandits.fading_arms import FadingArms
from outrider_policies.bandits.settings import EvictionBanditSettings
from outrider_policies.levels import QUEUE, Level

_REWARD_RANGE = 2.0


class UcbSettings(EvictionBanditSettings, frozen=True):
    """How optimistic, and how forgetful."""

    exploration_weight: Annotated[
        float,
        Meta(ge=0, description="xi of the bonus; theory wants above 1/2, less explores less."),
    ] = 0.5
    discount_ratio: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="Worth of a reward after the next one of its state (gamma); 1 never "
            "forgets, less follows a site that changes.",
        ),
    ] = 0.999


class DiscountedUcb(EvictionBandit[FadingArms, UcbSettings]):
    """Takes the arm whose value plus bonus is highest; an arm without evidence comes first.

    ``bonus = 2 B sqrt(xi ln(n) / n_a)`` with B = 2, the range of rewards, and n, n_a the
    discounted numbers of rewards of the state and of the arm. Garivier and Moulines: "On
    Upper-Confidence Bound Policies for Switching Bandit Problems", ALT 2011, section 2.1.

    A learner to compare with. Rewards of the queue come late, when the job is gone, so its bonus
    stays high meanwhile: jobs are kept far too often. Not for service; see docs/bandits.md.
    """

    name = "ucb"
    description = "discounted UCB on the bandit's arms and rewards; defers jobs far too long"
    api_version = 1

    def new_row(self) -> FadingArms:
        """Discounted means."""
        return FadingArms(self.settings.discount_ratio)

    def select(
        self, evaluation: Evaluation[FadingArms], level: Level, view: SiteView, may_defer: bool
    ) -> Selection:
        """The highest upper bound; equals are drawn between."""
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
        """For `explain`."""
        return "what is little known is preferred"
