"""Features of the site and of queued jobs, updated event by event."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job, SiteView
from outrider_policies.sarsa.encodings import ENCODINGS
from outrider_policies.sarsa.job_features import JobColumns, JobProperties
from outrider_policies.sarsa.mean_runs import MeanRuns
from outrider_policies.sarsa.site_state import Shares, SiteStatistics

Floats = NDArray[np.float64]


class SiteFeatures:
    """Follows the site's state and mean run times, and encodes both as features.

    Args:
        encoding: its name in the settings.

    Attributes:
        runs: mean run times, the unit of features, rewards and guards.
        inputs_n: number of features of a state and an action together.
    """

    def __init__(self, encoding: str) -> None:
        self.runs = MeanRuns()
        self._statistics = SiteStatistics()
        self._encoding = ENCODINGS[encoding]()
        self.inputs_n = self._encoding.state_n + self._encoding.action_n

    # -- updates ------------------------------------------------------------------------------

    def enter(self, job: Job, view: SiteView) -> None:
        """A job was enqueued."""
        properties = JobProperties.of(job, view.now)
        self._statistics.enter(
            job.number, properties, self._expected_s(properties) * properties.cpus
        )

    def leave(self, job: Job) -> None:
        """A job left the queue without starting."""
        self._statistics.leave(job.number)

    def start(self, job: Job, view: SiteView) -> None:
        """A job left the queue and started."""
        properties = JobProperties.of(job, view.now)
        run_s = self._expected_s(properties)
        utility = view.utility(job).unit(view.now - properties.submit_s + run_s, run_s)
        self._statistics.leave(job.number)
        self._statistics.start(job.number, view.now + run_s, float(utility))

    def end(self, number: int) -> None:
        """A run ended."""
        self._statistics.end(number)

    def recount_cpus(self) -> None:
        """Recount the site's CPUs when they are next needed."""
        self._statistics.recount_cpus()

    def _expected_s(self, properties: JobProperties) -> float:
        jobs = JobColumns.of_jobs([properties])
        return float(self.runs.expected_s(jobs.estimate_s, jobs.interactive)[0])

    # -- features -----------------------------------------------------------------------------

    def state(self, view: SiteView) -> tuple[Floats, Shares]:
        """(state_n,) features of the present state, and the VOs' shares, needed by `actions`."""
        state = self._statistics.state(view)
        return self._encoding.state(state, self.runs), state.shares

    def drain_s(self, view: SiteView) -> float:
        """Seconds to work off the whole queue: how long a job would wait under oldest first."""
        return self._statistics.drain_s(view)

    def actions(self, jobs: JobColumns, shares: Shares) -> Floats:
        """(jobs, action_n) features of starting each job."""
        return self._encoding.actions(jobs, shares, self.runs)

    def inputs(self, job: Job, state: Floats, view: SiteView) -> Floats:
        """(inputs_n,) features of a state and of starting a job in it."""
        jobs = JobColumns.of_jobs([JobProperties.of(job, view.now)])
        return np.concatenate([state, self.actions(jobs, view.vo_shares())[0]])

    def queued(self) -> dict[int, JobProperties]:
        """Features of the queued jobs, by job number."""
        return {number: properties for number, (properties, _) in self._statistics.queued.items()}

    def save(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            "encoding": self._encoding.save(),
            "statistics": self._statistics.save(),
            "runs": self.runs.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._encoding.restore(saved["encoding"])
        self._statistics.restore(saved["statistics"])
        self.runs.restore(saved["runs"])
