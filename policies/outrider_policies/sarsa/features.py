"""Features of the site and of queued jobs, updated event by event."""

from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job, SiteView
from outrider_policies.sarsa.job_features import JobColumns, JobProperties, MeanRuns
from outrider_policies.sarsa.site_state import Shares, SiteState, SiteStatistics, fairness

# -- encodings -------------------------------------------------------------------------------------
# Encodings of the state and of queued jobs as feature vectors for a value function.

Floats = NDArray[np.float64]

_HOUR_S: Final = 3600.0
_RATIOS: Final = (0.05, 8.0)
"""Range of a job's work over a mean run's; few jobs that trained the shipped nets exceeded it."""


class Encoding(Protocol):
    """Encoding as feature vectors of values about 1: `state_n` for a state, `action_n` for jobs."""

    state_n: int
    action_n: int

    def state(self, state: SiteState, runs: MeanRuns) -> Floats:
        """Return (state_n,) features of the state."""
        ...

    def actions(self, jobs: JobColumns, shares: Shares, runs: MeanRuns) -> Floats:
        """Return (jobs, action_n) features of starting each job."""
        ...

    def save(self) -> Any:
        """Return the encoding's state as plain data."""
        ...

    def restore(self, saved: Any) -> None:
        """Restore what `save` returned."""
        ...


class RelativeEncoding:
    """Encoding with bounded features relative to the site.

    So a value function transfers to other sites, as far as it can extrapolate. State: t / (t + 1
    min) for the time until a run ends; share of idle machines; b / (1 + b) for the backlog b in
    mean runs per CPU; mean utility of the running jobs; fairness. Job: class; target share of its
    VO less its present share (0 without a target); x = log(expected work / mean work) / 2, clipped;
    and mean work / (mean work + expected work), the factor in the density reward. VOs have no names
    here, so a new VO needs no training.
    """

    state_n = 5
    action_n = 4

    def state(self, state: SiteState, runs: MeanRuns) -> Floats:
        """Return (5,) features of the state."""
        backlog = state.backlog_s / (runs.work_s * max(state.cpus_n, 1))
        return np.array(
            [
                state.next_end_s / (state.next_end_s + 60.0),
                state.idle_n / max(state.machines_n, 1),
                backlog / (1.0 + backlog),
                state.mean_utility,
                fairness(state.shares),
            ]
        )

    def actions(self, jobs: JobColumns, shares: Shares, runs: MeanRuns) -> Floats:
        """Return (n, 4) features of the jobs."""
        missing_share = np.array([_missing_share(shares, vo) for vo in jobs.vo_names] or [0.0])
        work_s = runs.expected_s(jobs.estimate_s, jobs.interactive) * jobs.cpus
        ratio = work_s / runs.work_s
        out = np.empty((len(jobs), 4))
        out[:, 0] = jobs.interactive
        out[:, 1] = missing_share[jobs.vo]
        out[:, 2] = np.log(np.clip(ratio, *_RATIOS)) / 2.0
        out[:, 3] = 1.0 / (1.0 + ratio)
        return out

    def save(self) -> Any:
        """Return None: this encoding has no state."""
        return None

    def restore(self, saved: Any) -> None:
        """Do nothing: this encoding has no state."""


def _missing_share(shares: Shares, vo: str) -> float:
    share, target = shares.get(vo, (0.0, 0.0))
    return target - share


class LiteralEncoding:
    """Encoding of the paper: hours, numbers of machines, and VOs one-hot.

    State: hours until a run ends; idle machines; hours of backlog per CPU; mean utility of the
    running jobs; the share of each VO. Job: class; its VO as one of eight; expected hours. VOs get
    the eight places in order of appearance; all further ones share the last.
    """

    vos_n: Final = 8
    state_n = 4 + vos_n
    action_n = 2 + vos_n

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def _place(self, vo: str) -> int:
        return self._places.setdefault(vo, min(len(self._places), self.vos_n - 1))

    def state(self, state: SiteState, runs: MeanRuns) -> Floats:
        """Return (12,) features of the state."""
        out = np.zeros(self.state_n)
        out[:4] = (
            state.next_end_s / _HOUR_S,
            state.idle_n,
            state.backlog_s / _HOUR_S / max(state.cpus_n, 1),
            state.mean_utility,
        )
        for vo, (share, _) in state.shares.items():
            out[4 + self._place(vo)] += share
        return out

    def actions(self, jobs: JobColumns, shares: Shares, runs: MeanRuns) -> Floats:
        """Return (n, 10) features of the jobs."""
        places = np.array([self._place(vo) for vo in jobs.vo_names] or [0])
        out = np.zeros((len(jobs), self.action_n))
        out[:, 0] = jobs.interactive
        out[np.arange(len(jobs)), 1 + places[jobs.vo]] = 1.0
        out[:, -1] = runs.expected_s(jobs.estimate_s, jobs.interactive) / _HOUR_S
        return out

    def save(self) -> Any:
        """Return the place of each VO."""
        return dict(self._places)

    def restore(self, saved: Any) -> None:
        """Restore what `save` returned."""
        self._places = dict(saved)


ENCODINGS: Final[dict[str, type[Encoding]]] = {
    "relative": RelativeEncoding,
    "literal": LiteralEncoding,
}
"""Encodings by their name in the settings."""


# -- features --------------------------------------------------------------------------------------


class SiteFeatures:
    """Site state and mean run times, updated by events and encoded as features.

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
        """Update the features: a job was enqueued."""
        properties = JobProperties.of(job, view.now)
        self._statistics.enter(
            job.number, properties, self._expected_s(properties) * properties.cpus
        )

    def leave(self, job: Job) -> None:
        """Update the features: a job left the queue without starting."""
        self._statistics.leave(job.number)

    def start(self, job: Job, view: SiteView) -> None:
        """Update the features: a job left the queue and started."""
        properties = JobProperties.of(job, view.now)
        run_s = self._expected_s(properties)
        utility = view.utility(job).unit(view.now - properties.submit_s + run_s, run_s)
        self._statistics.leave(job.number)
        self._statistics.start(job.number, view.now + run_s, float(utility))

    def end(self, number: int) -> None:
        """Update the features: a run ended."""
        self._statistics.end(number)

    def recount_cpus(self) -> None:
        """Recount the site's CPUs when they are next needed."""
        self._statistics.recount_cpus()

    def _expected_s(self, properties: JobProperties) -> float:
        jobs = JobColumns.of_jobs([properties])
        return float(self.runs.expected_s(jobs.estimate_s, jobs.interactive)[0])

    # -- features -----------------------------------------------------------------------------

    def state(self, view: SiteView) -> tuple[Floats, Shares]:
        """Return (state_n,) features of the present state, and the VOs' shares for `actions`."""
        state = self._statistics.state(view)
        return self._encoding.state(state, self.runs), state.shares

    def drain_s(self, view: SiteView) -> float:
        """Return the seconds to work off the whole queue: the wait of a job under oldest first."""
        return self._statistics.drain_s(view)

    def actions(self, jobs: JobColumns, shares: Shares) -> Floats:
        """Return (jobs, action_n) features of starting each job."""
        return self._encoding.actions(jobs, shares, self.runs)

    def inputs(self, job: Job, state: Floats, view: SiteView) -> Floats:
        """Return (inputs_n,) features of a state and of starting a job in it."""
        jobs = JobColumns.of_jobs([JobProperties.of(job, view.now)])
        return np.concatenate([state, self.actions(jobs, view.vo_shares())[0]])

    def queued(self) -> dict[int, JobProperties]:
        """Return the properties of the queued jobs, by job number."""
        return {number: properties for number, (properties, _) in self._statistics.queued.items()}

    def save(self) -> dict[str, Any]:
        """Return the whole state as plain data."""
        return {
            "encoding": self._encoding.save(),
            "statistics": self._statistics.save(),
            "runs": self.runs.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned."""
        self._encoding.restore(saved["encoding"])
        self._statistics.restore(saved["statistics"])
        self.runs.restore(saved["runs"])
