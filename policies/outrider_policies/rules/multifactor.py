"""Slurm's multifactor priority: age, fair share, size and quality of service, weighted."""

import random
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from outrider.api import Job, Policy, PolicySettings, Queue, Ranks, SiteView
from outrider_policies.rules.decayed_usage import DecayedUsage
from outrider_policies.rules.places import cpus_of_site


class MultifactorSettings(PolicySettings, frozen=True):
    """As in slurm.conf, with the weights of its documentation's example."""

    age_weight: Annotated[
        float,
        Meta(ge=0, description="PriorityWeightAge: more brings on jobs that waited long."),
    ] = 1000.0
    fair_share_weight: Annotated[
        float,
        Meta(ge=0, description="PriorityWeightFairshare: more evens out what VOs get."),
    ] = 10_000.0
    size_weight: Annotated[
        float,
        Meta(ge=0, description="PriorityWeightJobSize: more brings on wide jobs."),
    ] = 1000.0
    qos_weight: Annotated[
        float,
        Meta(
            ge=0,
            description="PriorityWeightQOS: more brings on interactive jobs, the only quality of "
            "service that is told apart.",
        ),
    ] = 0.0
    max_age_s: Annotated[
        float,
        Meta(
            gt=0, description="PriorityMaxAge: a job that waited so long has the full age factor."
        ),
    ] = 604_800.0
    half_life_s: Annotated[
        float,
        Meta(gt=0, description="PriorityDecayHalfLife: past usage counts half after so long."),
    ] = 604_800.0
    dampening_ratio: Annotated[
        float,
        Meta(
            gt=0,
            description="FairShareDampeningFactor: more lets a VO use more than it is owed before "
            "its factor falls.",
        ),
    ] = 1.0


class Multifactor(Ranks, Policy[MultifactorSettings]):
    """The greatest weighted sum of four factors between 0 and 1 comes first.

    Slurm's priority/multifactor with FairShare "classic" among VOs (one level of accounts):

    * age: the wait over the longest that counts;
    * fair share: 2^-(U / S / dampening), U the VO's part of the decayed usage, S its target;
    * size: CPUs requested over those of the site;
    * quality of service: 1 for interactive jobs.

    Partitions, associations, nice values and TRES weights have no counterpart here.
    """

    name = "multifactor"
    description = "Slurm's multifactor priority: age, fair share, size and quality of service"
    api_version = 1
    features = ("submit_s", "vo", "cpus", "job_class")

    def __init__(self, settings: MultifactorSettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self._usage = DecayedUsage(settings.half_life_s)

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Minus the priority: 0 or less, the least first."""
        settings: MultifactorSettings = self.settings
        ages_s = view.now - queue.submit_s
        shares = self._shares(self._usage.bring_forward(view), view)
        of_vo = np.array([shares.get(vo, 0.0) for vo in queue.vo_names])
        places: NDArray[np.float64] = -settings.age_weight * np.clip(
            ages_s / settings.max_age_s, 0.0, 1.0
        )
        places -= settings.fair_share_weight * of_vo[queue.vo]
        places -= settings.size_weight * np.minimum(queue.cpus / cpus_of_site(view), 1.0)
        places -= settings.qos_weight * queue.interactive
        return places

    def _shares(self, usage: dict[str, float], view: SiteView) -> dict[str, float]:
        """The fair-share factor of each VO; 0 of those that are owed nothing."""
        settings: MultifactorSettings = self.settings
        total = sum(usage.values())
        used = {vo: cpu_s / total if total > 0 else 0.0 for vo, cpu_s in usage.items()}
        return {
            vo: 2.0 ** -(used.get(vo, 0.0) / target / settings.dampening_ratio)
            for vo, (_, target) in view.vo_shares().items()
            if target > 0
        }

    def explain(self, job: Job, view: SiteView) -> str:
        """The weighted factors, as ``sprio`` prints them."""
        settings: MultifactorSettings = self.settings
        spec = job.spec
        age = min((job.wait_s(view.now) or 0.0) / settings.max_age_s, 1.0) * settings.age_weight
        share = self._shares(self._usage.now(view), view).get(spec.vo, 0.0)
        share *= settings.fair_share_weight
        size = min(spec.cpus / cpus_of_site(view), 1.0) * settings.size_weight
        qos = settings.qos_weight if spec.job_class == "interactive" else 0.0
        return (
            f"its priority is {age + share + size + qos:.0f}: age {age:.0f}, fair share "
            f"{share:.0f}, size {size:.0f}, quality of service {qos:.0f}; jobs of more start "
            "before it"
        )

    def save(self, view: SiteView) -> dict[str, Any]:
        """The usage."""
        return self._usage.save()

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Go on from what `save` gave."""
        self._usage.restore(saved)
