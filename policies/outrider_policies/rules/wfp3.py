"""WFP3: jobs with a long wait for their estimate, and wide ones, come first."""

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job, Policy, Queue, Ranks, SiteView
from outrider_policies.rules.places import LAST

_SHORTEST_S = 1.0


class Wfp3(Ranks, Policy):
    """The greatest (wait / estimate)^3 x CPUs comes first.

    Tang, Lan, Desai, Buettner: "Fault-aware, utility-based job scheduling on Blue Gene/P systems",
    IEEE Cluster 2009, the utility function WFP with its exponent 3. The cube soon puts a job
    that waited longer than its estimate before all others; the factor CPUs keeps wide jobs from
    starving.

    The estimate is the site's estimate of the run time, at least 1 s. Jobs without an estimate
    come after all others, by age.
    """

    name = "wfp3"
    description = "greatest (wait / estimated run time)^3 x CPUs first (Tang et al. 2009)"
    api_version = 1
    features = ("submit_s", "estimate_s", "cpus")

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Less than 0, the least first; `LAST` without an estimate."""
        waits = (view.now - queue.submit_s) / np.maximum(queue.estimate_s, _SHORTEST_S)
        places: NDArray[np.float64] = -(waits**3) * queue.cpus
        places[np.isnan(places)] = LAST
        return places

    def explain(self, job: Job, view: SiteView) -> str:
        """The wait in relation to the estimate, and the resulting priority."""
        estimate_s = job.spec.estimate_s
        if estimate_s is None:
            return "it has no estimated run time: it starts after all jobs that have one"
        wait = (job.wait_s(view.now) or 0.0) / max(estimate_s, _SHORTEST_S)
        return (
            f"it waited {wait:.2f} of its estimated run time; cubed and times {job.spec.cpus} CPUs "
            f"that is {wait**3 * job.spec.cpus:.3g}, and jobs of more start before it"
        )
