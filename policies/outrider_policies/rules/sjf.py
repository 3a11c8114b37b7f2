"""Shortest job first, by the estimates that users or the batch system gave."""

from typing import Any

from outrider.api import Choice, Job, Orders, Policy, SiteView
from outrider_policies.rules.places import LAST, longest_free


class ShortestJobFirst(Orders, Policy):
    """The queued job of the least estimated run time goes to the longest-free machine.

    Jobs without an estimate come after all others, in order of submission. Long jobs may starve
    while short ones keep coming: that is the price of the least mean wait.
    """

    name = "sjf"
    description = "shortest estimated run time first, on the machine that has been free the longest"
    api_version = 1
    features = ("estimate_s",)

    def order(self, job: Job, view: SiteView) -> float:
        """Estimated run time, seconds."""
        return LAST if job.spec.estimate_s is None else job.spec.estimate_s

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """The longest-free machine with enough CPUs; never defers a job."""
        return longest_free(job, view, "shortest")

    def explain(self, job: Job, view: SiteView) -> str:
        """How the job is ordered."""
        estimate_s = job.spec.estimate_s
        if estimate_s is None:
            return "it has no estimated run time: it starts after all jobs that have one"
        return f"jobs estimated to run less than {estimate_s / 60:.0f} min start before it"
