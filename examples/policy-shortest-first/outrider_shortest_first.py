"""Policy in six lines: it orders the jobs, and Outrider places them."""

from outrider.api import Job, Orders, Policy, SiteView


class ShortestFirst(Orders, Policy):
    name, description, api_version = "shortest_first", "the shortest estimated job first", 1

    def order(self, job: Job, view: SiteView) -> float:
        return job.spec.estimate_s or float("inf")
