"""First in, first out (FCFS): the oldest job goes to the machine that has been free the longest."""

from typing import Any

from outrider.api import Choice, Job, Policy, SiteView
from outrider_policies.rules.places import longest_free


class Fifo(Policy):
    """Jobs in order of submission; machines in the order in which they became free."""

    name = "fifo"
    description = "oldest job first, on the machine that has been free the longest"
    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """The longest-free machine with enough CPUs; never defers a job."""
        return longest_free(job, view, "longest_free")

    def explain(self, job: Job, view: SiteView) -> str:
        """Why a job waits under this rule."""
        return "jobs start in the order of their arrival; this one starts when one frees"
