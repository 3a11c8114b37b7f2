"""Fair-share rules: by recent use, by present runs, and Slurm's multifactor priority."""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from math import exp2, inf, log, nan
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from outrider.api import NOWHERE, Choice, Job, Policy, PolicySettings, Queue, Ranks, SiteView
from outrider_policies.rules.placements import LAST, cpus_of_site, places_by

# -- decayed usage ---------------------------------------------------------------------------------
# Recent usage of each VO: CPU-seconds of which older ones count less.

_LN2: Final = log(2.0)


class DecayedUsage:
    """CPU-seconds delivered to each VO; a second that lies `half_life_s` back counts half.

    It is updated when a policy reads it, as Slurm does every PriorityCalcPeriod. What was
    delivered between two readings counts as spread evenly over the time between them, and what was
    delivered before the first reading as delivered then.

    Args:
        half_life_s: seconds.
    """

    def __init__(self, half_life_s: float) -> None:
        self._half_life_s = half_life_s
        self._at_s = inf
        self._usage: dict[str, float] = {}
        self._delivered: dict[str, float] = {}

    def bring_forward(self, view: SiteView) -> dict[str, float]:
        """Update the usage, and return the CPU-seconds by VO as of now."""
        if view.now != self._at_s:
            self._usage, self._delivered = self._until_now(view)
            self._at_s = view.now
        return self._usage

    def now(self, view: SiteView) -> dict[str, float]:
        """Return the CPU-seconds by VO as of now, without any change."""
        return self._until_now(view)[0]

    def _until_now(self, view: SiteView) -> tuple[dict[str, float], dict[str, float]]:
        """Return the usage, and all that was delivered, by VO."""
        elapsed = max(0.0, view.now - self._at_s) / self._half_life_s
        kept = exp2(-elapsed)
        spread = (1.0 - kept) / (elapsed * _LN2) if elapsed > 0.0 else 1.0
        total = view.delivered_cpu_s
        delivered = {vo: share * total for vo, (share, _) in view.vo_shares().items()}
        usage = {
            vo: self._usage.get(vo, 0.0) * kept
            + max(0.0, cpu_s - self._delivered.get(vo, 0.0)) * spread
            for vo, cpu_s in delivered.items()
        }
        return usage, delivered

    def save(self) -> dict[str, Any]:
        """Return everything that changes, as plain data."""
        return {
            "half_life_s": self._half_life_s,
            "at_s": None if self._at_s == inf else self._at_s,
            "usage": self._usage,
            "delivered": self._delivered,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned. Raises `ValueError` for another half-life."""
        if saved["half_life_s"] != self._half_life_s:
            raise ValueError(
                f"its usage halves in {saved['half_life_s']:g} s; expected {self._half_life_s:g} s"
            )
        self._at_s = inf if saved["at_s"] is None else saved["at_s"]
        self._usage, self._delivered = dict(saved["usage"]), dict(saved["delivered"])


# -- runs now --------------------------------------------------------------------------------------
# The runs of a site, those that begin in the present scheduling pass included.


class RunsNow:
    """Running jobs, including those that start in the present pass.

    The site shows a run only once it has begun, which is after the pass.
    """

    def __init__(self) -> None:
        self._moment_s = nan
        self._starting: dict[int, tuple[Job, int]] = {}

    def start(self, job: Job, view: SiteView) -> None:
        """Add a job that is to start in this pass."""
        self._forget_before(view.now)
        self._starting[job.number] = (job, job.runs)

    def jobs(self, view: SiteView) -> Iterable[Job]:
        """Return the jobs that run or are to start in this pass, each once."""
        self._forget_before(view.now)
        # for jobs that began since, the site's record is the current one
        starting = (job for job, runs in self._starting.values() if job.runs == runs)
        return chain(view.running, starting)

    def _forget_before(self, now: float) -> None:
        if now != self._moment_s:
            self._moment_s = now
            self._starting.clear()


# -- fair share ------------------------------------------------------------------------------------
# Fair share: the VO that used least in relation to its target share comes first.


class FairShareSettings(PolicySettings, frozen=True):
    """Settings of the memory of past usage."""

    half_life_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Past usage counts half after so many seconds. More compensates for longer "
            "neglect; less lets a VO that was served yesterday come first again today.",
        ),
    ] = 86_400.0


class FairShare(Ranks, Policy[FairShareSettings]):
    """Rule that serves the VO of the least decayed usage over its target, by age within it.

    Like HTCondor's negotiator with accounting groups, or users, by default: its priority also
    goes by CPUs used, which decay with a half-life of a day (PRIORITY_HALFLIFE), over a priority
    factor, here the inverse of the target share. VOs without a target share come last.
    """

    name = "fair_share"
    description = "the VO of the least decayed usage for its target share first"
    api_version = 1
    features = ("vo", "submit_s")

    def __init__(self, settings: FairShareSettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self._usage = DecayedUsage(settings.half_life_s)

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Return decayed CPU-seconds of a job's VO over the VO's target; `LAST` without one."""
        usage, shares = self._usage.bring_forward(view), view.vo_shares()
        by_vo = np.array([_over_target(vo, usage, shares) for vo in queue.vo_names])
        places: NDArray[np.float64] = by_vo[queue.vo]
        return places

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the usage of its VO, in relation to the VO's target share."""
        usage, vo = self._usage.now(view), job.spec.vo
        target = view.vo_shares().get(vo, (0.0, 0.0))[1]
        if not target:
            return f"VO {vo} has no target share: its jobs start after those of VOs that have one"
        total = sum(usage.values())
        share = usage.get(vo, 0.0) / total if total > 0 else 0.0
        return (
            f"VO {vo} recently used {share:.0%} of the CPU time delivered, its target share is "
            f"{target:.0%}; jobs of VOs that used less of their target start before it"
        )

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return the usage as plain data."""
        return self._usage.save()

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned."""
        self._usage.restore(saved)


def _over_target(
    vo: str, usage: Mapping[str, float], shares: Mapping[str, tuple[float, float]]
) -> float:
    target = shares.get(vo, (0.0, 0.0))[1]
    return usage.get(vo, 0.0) / target if target > 0 else LAST


# -- fair share sjf --------------------------------------------------------------------------------
# Fair share among VOs by present runs, and shortest job first within a VO.


class FairShareSjf(Ranks, Policy):
    """Rule that serves the VO of the fewest running CPUs for its target, then the least estimate.

    A plain rule without memory or learning, against which learned orders have to prove themselves.
    VOs without a target share come last. Within a VO, so do jobs without an estimate.
    """

    name = "fair_share_sjf"
    description = "the VO of the fewest running CPUs first, within it the shortest estimate"
    api_version = 1
    features = ("vo", "estimate_s")

    def __init__(self, settings: PolicySettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self.ranks_anew = True
        self._runs = RunsNow()

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Return positions from 0: by CPUs over target, then by estimate, then by age."""
        running = self._cpus_by_vo(view)
        shares = view.vo_shares()
        targets = [shares.get(vo, (0.0, 0.0))[1] for vo in queue.vo_names]
        by_vo = np.array(
            [
                running[vo] / target if target > 0 else LAST
                for vo, target in zip(queue.vo_names, targets, strict=True)
            ]
        )
        estimates = np.where(np.isnan(queue.estimate_s), LAST, queue.estimate_s)
        return places_by(by_vo[queue.vo], estimates)

    def _cpus_by_vo(self, view: SiteView) -> Mapping[str, int]:
        running: defaultdict[str, int] = defaultdict(int)
        for job in self._runs.jobs(view):
            running[job.spec.vo] += job.cpus
        return running

    def choose(self, job: Job, evaluation: object, view: SiteView, may_defer: bool) -> Choice:
        """Choose the tightest machine that suffices."""
        choice = super().choose(job, evaluation, view, may_defer)
        if choice.machine != NOWHERE:
            self._runs.start(job, view)
        return choice

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the running CPUs of its VO, and its estimate."""
        vo, estimate_s = job.spec.vo, job.spec.estimate_s
        cpus = sum(run.cpus for run in view.running if run.spec.vo == vo)
        within = (
            "within it, jobs with an estimate start before this one, which has none"
            if estimate_s is None
            else f"within it, jobs estimated to run less than {estimate_s / 60:.0f} min start first"
        )
        return f"VO {vo} runs on {cpus} CPUs; VOs with fewer per target share start first; {within}"


# -- multifactor -----------------------------------------------------------------------------------
# Slurm's multifactor priority: age, fair share, size and quality of service, weighted.


class MultifactorSettings(PolicySettings, frozen=True):
    """Settings as in slurm.conf, with the weights of its documentation's example."""

    age_weight: Annotated[
        float,
        Meta(ge=0, description="PriorityWeightAge: more favours jobs that waited long."),
    ] = 1000.0
    fair_share_weight: Annotated[
        float,
        Meta(ge=0, description="PriorityWeightFairshare: more equalises what VOs get."),
    ] = 10_000.0
    size_weight: Annotated[
        float,
        Meta(ge=0, description="PriorityWeightJobSize: more favours wide jobs."),
    ] = 1000.0
    qos_weight: Annotated[
        float,
        Meta(
            ge=0,
            description="PriorityWeightQOS: more favours interactive jobs, the only quality of "
            "service that is distinguished.",
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
            description="FairShareDampeningFactor: more lets a VO exceed its target share before "
            "its factor falls.",
        ),
    ] = 1.0


class Multifactor(Ranks, Policy[MultifactorSettings]):
    """Rule that starts the job of the greatest weighted sum of four factors first.

    The factors are between 0 and 1. Slurm's priority/multifactor with FairShare "classic" among VOs
    (one level of accounts):

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
        """Return minus the priority: 0 or less, the lowest first."""
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
        """Return the fair-share factor of each VO that has a target share."""
        settings: MultifactorSettings = self.settings
        total = sum(usage.values())
        used = {vo: cpu_s / total if total > 0 else 0.0 for vo, cpu_s in usage.items()}
        return {
            vo: 2.0 ** -(used.get(vo, 0.0) / target / settings.dampening_ratio)
            for vo, (_, target) in view.vo_shares().items()
            if target > 0
        }

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the weighted factors, as ``sprio`` prints them."""
        settings: MultifactorSettings = self.settings
        spec = job.spec
        age = min((job.wait_s(view.now) or 0.0) / settings.max_age_s, 1.0) * settings.age_weight
        share = self._shares(self._usage.now(view), view).get(spec.vo, 0.0)
        share *= settings.fair_share_weight
        size = min(spec.cpus / cpus_of_site(view), 1.0) * settings.size_weight
        qos = settings.qos_weight if spec.job_class == "interactive" else 0.0
        return (
            f"its priority is {age + share + size + qos:.0f}: age {age:.0f}, fair share "
            f"{share:.0f}, size {size:.0f}, quality of service {qos:.0f}; jobs of higher priority "
            "start before it"
        )

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return the usage as plain data."""
        return self._usage.save()

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned."""
        self._usage.restore(saved)
