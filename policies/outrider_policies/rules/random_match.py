"""Random matching: what HTCondor does when nobody configures a rank."""

from typing import Any

from outrider.api import Choice, Job, Policy, SiteView
from outrider_policies.rules.places import any_free


class RandomMatch(Policy):
    """The oldest job goes to a free machine drawn uniformly over the whole site."""

    name = "random_match"
    description = "oldest job first, on any free machine: HTCondor's default"
    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Any free machine; the propensity is that of the machine's cluster."""
        return any_free(view, self.rng)

    def explain(self, job: Job, view: SiteView) -> str:
        """Why a job waits under this rule."""
        return "any free machine will do; it starts as soon as it is the oldest and one frees"
