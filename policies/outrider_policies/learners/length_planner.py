"""What planning policies that learn nothing but how long jobs run have in common."""

from collections.abc import Hashable, Sequence
from typing import Any

from outrider.api import COMPLETED_RUN, RUNNING, Job, Outcome, Policy, SiteView
from outrider_policies.learners.completion_utility import Asked, asked_by
from outrider_policies.learners.planning_settings import LengthSettings
from outrider_policies.learners.run_lengths import RunLengths
from outrider_policies.learners.sentences_of_plans import what_it_waits_for, what_its_run_brings


class LengthPlanner(Policy):
    """Plans whole rounds by utility; knows only how long jobs without estimate run."""

    features = ("submit_s", "estimate_s", "cpus", "job_class")

    def __init__(self, settings: LengthSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self._lengths = RunLengths(settings.assumed_s, None)

    def alike(self, job: Job, view: SiteView) -> Hashable:
        """What its utility is reckoned from."""
        return asked_by(job)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        """Take note of how long jobs run of which nobody said it; no rewards."""
        if outcome.ending == COMPLETED_RUN and Asked(*outcome.key).estimate_s is None:  # type: ignore[misc]
            self._lengths.completed(outcome.run_s)
        return ()

    def explain(self, job: Job, view: SiteView) -> str:
        """What it waits for, or what its run is expected to bring."""
        if job.state == RUNNING:
            return what_its_run_brings(job, view, self._lengths)
        return what_it_waits_for(job, view)

    def save(self, view: SiteView) -> dict[str, Any]:
        """How long jobs without estimate run."""
        return self._lengths.save()

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Go on from what `save` gave."""
        self._lengths.restore(saved)
