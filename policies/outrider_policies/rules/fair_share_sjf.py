"""Fair share among VOs by what runs now, and shortest job first within a VO."""

import random
from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from outrider.api import NOWHERE, Choice, Job, Policy, PolicySettings, Queue, Ranks, SiteView
from outrider_policies.rules.places import LAST, places_by
from outrider_policies.rules.runs_now import RunsNow


class FairShareSjf(Ranks, Policy):
    """The VO of the fewest running CPUs for its target comes first; within it, the least estimate.

    A plain rule without memory or learning, against which learned orders have to prove themselves.
    VOs that are owed nothing come last; so do, within a VO, jobs without an estimate.
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
        """Positions from 0: by CPUs over target, then by estimate, then by age."""
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
        """The tightest machine that suffices."""
        choice = super().choose(job, evaluation, view, may_defer)
        if choice.machine != NOWHERE:
            self._runs.start(job, view)
        return choice

    def explain(self, job: Job, view: SiteView) -> str:
        """What runs of its VO, and its estimate."""
        vo, estimate_s = job.spec.vo, job.spec.estimate_s
        cpus = sum(run.cpus for run in view.running if run.spec.vo == vo)
        within = (
            "within it, jobs with an estimate start before this one, which has none"
            if estimate_s is None
            else f"within it, jobs estimated to run less than {estimate_s / 60:.0f} min start first"
        )
        return f"VO {vo} runs on {cpus} CPUs; VOs with fewer for their share come first; {within}"
