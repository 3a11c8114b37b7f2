"""UNICEP: jobs with a long wait for their request, and narrow ones, come first."""

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job, Policy, Queue, Ranks, SiteView
from outrider_policies.rules.places import LAST

_SHORTEST_S = 1.0
_NARROWEST = 2


class Unicep(Ranks, Policy):
    """The greatest wait / (log2(CPUs) x estimate) comes first.

    Tang, Lan, Desai, Buettner: "Fault-aware, utility-based job scheduling on Blue Gene/P systems",
    IEEE Cluster 2009, the utility function UNICEF (spelled UNICEP by those who compare with it).
    It gives small jobs a quick turnaround. The logarithm of one CPU is 0, and would put every
    serial job before every other for good: here a serial job counts as one of two CPUs.

    The estimate is the site's estimate of the run time, at least 1 s. Jobs without an estimate
    come after all others, by age.
    """

    name = "unicep"
    description = "greatest wait / (log2(CPUs) x estimated run time) first (Tang et al. 2009)"
    api_version = 1
    features = ("submit_s", "estimate_s", "cpus")

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Less than 0, the least first; `LAST` without an estimate."""
        asked = np.log2(np.maximum(queue.cpus, _NARROWEST))
        asked *= np.maximum(queue.estimate_s, _SHORTEST_S)
        places: NDArray[np.float64] = (queue.submit_s - view.now) / asked
        places[np.isnan(places)] = LAST
        return places

    def explain(self, job: Job, view: SiteView) -> str:
        """The wait in relation to the request."""
        estimate_s = job.spec.estimate_s
        if estimate_s is None:
            return "it has no estimated run time: it starts after all jobs that have one"
        asked = float(np.log2(max(job.spec.cpus, _NARROWEST))) * max(estimate_s, _SHORTEST_S)
        worth = (job.wait_s(view.now) or 0.0) / asked
        return (
            f"its wait over its estimated run time and the logarithm of its CPUs is {worth:.3g}; "
            "jobs of more start before it"
        )
