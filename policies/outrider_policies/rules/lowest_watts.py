"""Lowest watts: the static rule ``RANK = -watts``, without learning."""

from typing import Any

from outrider.api import Choice, Job, Policy, SiteView

_UNKNOWN_W = float("inf")


class LowestWatts(Policy):
    """The oldest job goes to a free machine of the cluster that draws the fewest watts.

    A baseline for McGough and Forshaw's learner, beside `random_match`. Clusters whose watts are
    unknown come last; ties are drawn in proportion to free machines, so that no cluster is
    preferred by its position.
    """

    name = "lowest_watts"
    description = "oldest job first, on the free machine that draws the least: RANK = -watts"
    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """A free machine among the clusters of least active watts."""
        best, free_ties = _UNKNOWN_W, 0
        ties: list[int] = []
        for cluster, free in enumerate(view.free_n):
            if not free:
                continue
            watts = view.active_w[cluster]
            watts = _UNKNOWN_W if watts is None else watts
            if watts < best or not ties:
                best, ties, free_ties = watts, [cluster], free
            elif watts == best:
                ties.append(cluster)
                free_ties += free
        at = self.rng.random() * free_ties
        for cluster in ties:
            at -= view.free_n[cluster]
            if at < 0:
                break
        propensity = view.free_n[cluster] / free_ties
        return Choice(view.draw_in(cluster, self.rng), "lowest_watts", propensity)

    def explain(self, job: Job, view: SiteView) -> str:
        """Why a job waits under this rule."""
        return "the free machine of least watts is taken; it starts when one frees"
