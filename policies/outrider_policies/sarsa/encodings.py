"""Encodings of the state and of queued jobs as feature vectors for a value function."""

from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from outrider_policies.sarsa.job_features import JobColumns
from outrider_policies.sarsa.mean_runs import MeanRuns
from outrider_policies.sarsa.site_state import Shares, SiteState, fairness

Floats = NDArray[np.float64]

_HOUR_S: Final = 3600.0
_RATIOS: Final = (0.05, 8.0)
"""Range of a job's work over a mean run's; the shipped nets saw hardly any jobs beyond it."""


class Encoding(Protocol):
    """Feature vectors with values of about 1: `state_n` for a state, `action_n` for a job."""

    state_n: int
    action_n: int

    def state(self, state: SiteState, runs: MeanRuns) -> Floats:
        """(state_n,) features of the state."""
        ...

    def actions(self, jobs: JobColumns, shares: Shares, runs: MeanRuns) -> Floats:
        """(jobs, action_n) features of starting each job."""
        ...

    def save(self) -> Any:
        """Its state as plain data."""
        ...

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        ...


class RelativeEncoding:
    """Bounded features relative to the site.

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
        """(5,) features of the state."""
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
        """(n, 4) features of the jobs."""
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
        """None: it has no state."""
        return None

    def restore(self, saved: Any) -> None:
        """Nothing to do."""


def _missing_share(shares: Shares, vo: str) -> float:
    share, target = shares.get(vo, (0.0, 0.0))
    return target - share


class LiteralEncoding:
    """The features of the paper: hours, numbers of machines, and VOs one-hot.

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
        """(12,) features of the state."""
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
        """(n, 10) features of the jobs."""
        places = np.array([self._place(vo) for vo in jobs.vo_names] or [0])
        out = np.zeros((len(jobs), self.action_n))
        out[:, 0] = jobs.interactive
        out[np.arange(len(jobs)), 1 + places[jobs.vo]] = 1.0
        out[:, -1] = runs.expected_s(jobs.estimate_s, jobs.interactive) / _HOUR_S
        return out

    def save(self) -> Any:
        """The place of each VO."""
        return dict(self._places)

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        self._places = dict(saved)


ENCODINGS: Final[dict[str, type[Encoding]]] = {
    "relative": RelativeEncoding,
    "literal": LiteralEncoding,
}
"""Encodings by their name in the settings."""
