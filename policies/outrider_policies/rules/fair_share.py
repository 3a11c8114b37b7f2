"""Fair share: the VO that used least of what it is owed comes first."""

import random
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from outrider.api import Job, Policy, PolicySettings, Queue, Ranks, SiteView
from outrider_policies.rules.decayed_usage import DecayedUsage
from outrider_policies.rules.places import LAST


class FairShareSettings(PolicySettings, frozen=True):
    """How long usage is remembered."""

    half_life_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Past usage counts half after so many seconds. More makes up for longer "
            "neglect; less lets a VO that was served yesterday come first again today.",
        ),
    ] = 86_400.0


class FairShare(Ranks, Policy[FairShareSettings]):
    """The VO of the least decayed usage over its target share comes first; within it, the oldest.

    What HTCondor's negotiator does with accounting groups, or users, by default: its priority, too,
    goes by CPUs used, which fade with a half-life of a day (PRIORITY_HALFLIFE), over a priority
    factor, here the inverse of the target share. VOs that are owed nothing come last.
    """

    name = "fair_share"
    description = "the VO of the least decayed usage for its target share first"
    api_version = 1
    features = ("vo", "submit_s")

    def __init__(self, settings: FairShareSettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self._usage = DecayedUsage(settings.half_life_s)

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Decayed CPU-seconds of its VO over the VO's target; `LAST` without one."""
        usage, shares = self._usage.bring_forward(view), view.vo_shares()
        by_vo = np.array([_over_target(vo, usage, shares) for vo in queue.vo_names])
        places: NDArray[np.float64] = by_vo[queue.vo]
        return places

    def explain(self, job: Job, view: SiteView) -> str:
        """What its VO used, in relation to what it is owed."""
        usage, vo = self._usage.now(view), job.spec.vo
        target = view.vo_shares().get(vo, (0.0, 0.0))[1]
        if not target:
            return f"VO {vo} has no target share: its jobs start after those of VOs that have one"
        total = sum(usage.values())
        share = usage.get(vo, 0.0) / total if total > 0 else 0.0
        return (
            f"lately VO {vo} used {share:.0%} of what was delivered and is owed {target:.0%}; jobs "
            "of VOs that used less of what they are owed start before it"
        )

    def save(self, view: SiteView) -> dict[str, Any]:
        """The usage."""
        return self._usage.save()

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Go on from what `save` gave."""
        self._usage.restore(saved)


def _over_target(
    vo: str, usage: Mapping[str, float], shares: Mapping[str, tuple[float, float]]
) -> float:
    target = shares.get(vo, (0.0, 0.0))[1]
    return usage.get(vo, 0.0) / target if target > 0 else LAST
