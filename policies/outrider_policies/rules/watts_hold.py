"""Two static rules: the machine of least watts, and no more chances for what never ends."""

from typing import Annotated, Any

from msgspec import Meta

from outrider.api import NOWHERE, Choice, Job, PolicySettings, SiteView
from outrider_policies.rules.lowest_watts import LowestWatts

_HOUR_S = 3600.0


class WattsHoldSettings(PolicySettings, frozen=True):
    """When a job is taken for one that never ends."""

    hold_after_h: Annotated[
        float,
        Meta(
            gt=0,
            description="Hours lost in runs that were thrown away, after which a job is kept "
            "queued. Less saves more energy and holds more good jobs.",
        ),
    ] = 24.0
    max_defer_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Starvation guard: longest time a job stays queued by choice, seconds.",
        ),
    ] = 604_800.0


class WattsHold(LowestWatts):
    """`LowestWatts`, but a job that lost N hours in evicted runs is kept queued.

    It is either broken or needs a machine that is left alone longer than any is. A learner must be
    shown against this rule: it reaches most of the savings of the bandit of Forshaw and McGough
    (2015) without learning anything.
    """

    name = "watts_hold"
    description = "lowest watts; a job that lost many hours in evicted runs is kept queued"
    api_version = 1
    settings_type = WattsHoldSettings
    features = ("lost_s",)

    def __init__(self, settings: WattsHoldSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self.max_defer_s = settings.max_defer_s
        self._most_s = settings.hold_after_h * _HOUR_S

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """The queue for a job that consumed too much, else the machine of least watts."""
        if may_defer and job.lost_s >= self._most_s:
            return Choice(NOWHERE, "lost_hours", 1.0)
        return super().choose(job, evaluation, view, may_defer)

    def explain(self, job: Job, view: SiteView) -> str:
        """Whether and why it is held."""
        lost_h = job.lost_s / _HOUR_S
        if job.lost_s < self._most_s:
            return f"it lost {lost_h:.1f} h so far; {super().explain(job, view)}"
        return f"held: it lost {lost_h:.1f} h, at or above {self._most_s / _HOUR_S:g} h"
