"""Two static rules: the machine of least watts, and deferral of jobs that lost many hours."""

from typing import Annotated, Any

from msgspec import Meta

from outrider.api import NOWHERE, Choice, Job, PolicySettings, SiteView
from outrider_policies.rules.lowest_watts import LowestWatts

_HOUR_S = 3600.0


class WattsHoldSettings(PolicySettings, frozen=True):
    """When a job is deferred, and for how long at most."""

    hold_after_h: Annotated[
        float,
        Meta(
            gt=0,
            description="Hours lost in evicted runs after which a job is deferred. Less saves "
            "more energy and defers more jobs that would complete.",
        ),
    ] = 24.0
    max_defer_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Starvation guard: longest time a job is deferred, seconds.",
        ),
    ] = 604_800.0


class WattsHold(LowestWatts):
    """`LowestWatts`, but a job that lost N hours in evicted runs is deferred.

    Such a job is broken, or needs a machine for longer than any is available. This rule is the
    baseline for a learner: it reaches most of the savings of the bandit of Forshaw and McGough
    (2015) without learning.
    """

    name = "watts_hold"
    description = "lowest watts; a job that lost many hours in evicted runs is deferred"
    api_version = 1
    settings_type = WattsHoldSettings
    features = ("lost_s",)

    def __init__(self, settings: WattsHoldSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self.max_defer_s = settings.max_defer_s
        self._most_s = settings.hold_after_h * _HOUR_S

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Defer a job that lost too many hours, else take the machine of least watts."""
        if may_defer and job.lost_s >= self._most_s:
            return Choice(NOWHERE, "lost_hours", 1.0)
        return super().choose(job, evaluation, view, may_defer)

    def explain(self, job: Job, view: SiteView) -> str:
        """Whether and why the job is deferred."""
        lost_h = job.lost_s / _HOUR_S
        if job.lost_s < self._most_s:
            return f"it lost {lost_h:.1f} h so far; {super().explain(job, view)}"
        return f"deferred: it lost {lost_h:.1f} h, at or above {self._most_s / _HOUR_S:g} h"
