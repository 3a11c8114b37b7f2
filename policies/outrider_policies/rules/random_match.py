"""Random matching: what HTCondor does when nobody configures a rank."""

from typing import Any

from outrider.api import Choice, Job, Policy, SiteView


class RandomMatch(Policy):
    """The oldest job goes to a free machine drawn uniformly over the whole site."""

    name = "random_match"
    description = "oldest job first, on any free machine: HTCondor's default"
    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Any free machine; the propensity is that of the machine's cluster."""
        machine = view.draw(self.rng)
        cluster = view.cluster_of(machine)
        return Choice(machine, "random", view.free_n[cluster] / view.free_total)

    def explain(self, job: Job, view: SiteView) -> str:
        """Why a job waits under this rule."""
        return "any free machine will do; it starts as soon as it is the oldest and one frees"
