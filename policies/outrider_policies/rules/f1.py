"""F1: a learned formula of run time, CPUs and arrival; the least comes first."""

from math import log10
from typing import Any

from outrider.api import Job, Orders, Policy, SiteView
from outrider_policies.rules.places import LAST

_AGE = 870.0
_SHORTEST_S = 1.0


class F1(Orders, Policy):
    """The least log10(estimate) x CPUs + 870 log10(arrival) comes first.

    Carastan-Santos, de Camargo: "Obtaining dynamic scheduling policies with simulation and machine
    learning", SC 2017, function F1, the best of their four: a regression over many simulated
    queues. Times are in seconds, arrivals since the first job that the policy saw queued (in the
    paper the beginning of the trace), both at least 1 s. As a trace goes on the logarithm
    flattens, and age counts for less and less: after a day, 870 log10 of an hour more is worth
    15 points, what a serial job of any length could not make up.

    The estimate is the site's estimate of the run time. Jobs without one come after all others,
    by age.
    """

    name = "f1"
    description = (
        "least log10(estimate) x CPUs + 870 log10(arrival) first (Carastan-Santos et al. 2017)"
    )
    api_version = 1
    features = ("submit_s", "estimate_s", "cpus")

    _begin_s: float | None = None

    def order(self, job: Job, view: SiteView) -> float:
        """F1 of the paper; the least starts first."""
        submit_s = view.now if job.submit_s is None else job.submit_s
        if self._begin_s is None:
            self._begin_s = submit_s
        estimate_s = job.spec.estimate_s
        if estimate_s is None:
            return LAST
        length = log10(max(estimate_s, _SHORTEST_S)) * job.spec.cpus
        return length + _AGE * log10(max(submit_s - self._begin_s, _SHORTEST_S))

    def explain(self, job: Job, view: SiteView) -> str:
        """The job's value of F1."""
        if job.spec.estimate_s is None:
            return "it has no estimated run time: it starts after all jobs that have one"
        return (
            f"log10(estimate) x CPUs + 870 log10(arrival) is {self.order(job, view):.1f}; "
            "jobs of less start before it"
        )

    def save(self, view: SiteView) -> dict[str, Any]:
        """The submission of the first job, from which arrivals are counted."""
        return {"begin_s": self._begin_s}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Go on counting from there. Raises `ValueError` for what is no such state."""
        begin_s = saved.get("begin_s")
        if not isinstance(begin_s, float | int | None):
            raise ValueError(f"begin_s {begin_s!r}: right would be seconds")
        self._begin_s = begin_s
