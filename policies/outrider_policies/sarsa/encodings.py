"""Features: how a state and the waiting jobs are told to a value function."""

from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from outrider_policies.sarsa.job_features import Asks
from outrider_policies.sarsa.mean_runs import MeanRuns
from outrider_policies.sarsa.site_state import Shares, SiteState, fairness

Floats = NDArray[np.float64]

_HOUR_S: Final = 3600.0
_RATIOS: Final = (0.05, 8.0)
"""Of a job's work to a mean run's: beyond these the start nets have seen no jobs to speak of."""


class Encoding(Protocol):
    """Numbers of about 1. `state_n` of them tell a state, `action_n` a job."""

    state_n: int
    action_n: int

    def state(self, state: SiteState, runs: MeanRuns) -> Floats:
        """The state, (state_n,)."""
        ...

    def actions(self, asks: Asks, shares: Shares, runs: MeanRuns) -> Floats:
        """The jobs, (len(asks), action_n)."""
        ...

    def save(self) -> Any:
        """What it remembers, as plain data."""
        ...

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        ...


class RelativeEncoding:
    """Everything in the site's own measure and within bounds.

    So what was learned holds on other sites too, as far as nets can be trusted beyond what they
    have seen. State: t / (t + 1 min) for the time until a run ends; idle machines; b / (1 + b) for
    the backlog b in mean runs a CPU; mean utility of the running jobs; fairness. Job: class;
    distance of its VO from its target share (0 where nothing is said); x = log(expected work /
    mean work), and 1 / (1 + e^x), of which the density of a reward is made. VOs have no names here:
    one that joins is known at once by what it is owed, and one that leaves leaves nothing behind.
    """

    state_n = 5
    action_n = 4

    def state(self, state: SiteState, runs: MeanRuns) -> Floats:
        """The state, (5,)."""
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

    def actions(self, asks: Asks, shares: Shares, runs: MeanRuns) -> Floats:
        """The jobs, (n, 4)."""
        owed = np.array([_owed(shares, vo) for vo in asks.vo_names] or [0.0])
        work_s = runs.expected_s(asks.estimate_s, asks.interactive) * asks.cpus
        ratio = work_s / runs.work_s
        out = np.empty((len(asks), 4))
        out[:, 0] = asks.interactive
        out[:, 1] = owed[asks.vo]
        out[:, 2] = np.log(np.clip(ratio, *_RATIOS)) / 2.0
        out[:, 3] = 1.0 / (1.0 + ratio)
        return out

    def save(self) -> Any:
        """Nothing is remembered."""
        return None

    def restore(self, saved: Any) -> None:
        """Nothing to do."""


def _owed(shares: Shares, vo: str) -> float:
    share, target = shares.get(vo, (0.0, 0.0))
    return target - share


class LiteralEncoding:
    """The paper's own: hours, machines and VOs by name.

    State: hours until a run ends; idle machines; hours of backlog a CPU; mean utility of the
    running jobs; the share of each VO. Job: class; its VO as one of eight; expected hours. VOs take
    the eight places as they appear; all beyond share the last.
    """

    vos_n: Final = 8
    state_n = 4 + vos_n
    action_n = 2 + vos_n

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def _place(self, vo: str) -> int:
        return self._places.setdefault(vo, min(len(self._places), self.vos_n - 1))

    def state(self, state: SiteState, runs: MeanRuns) -> Floats:
        """The state, (12,)."""
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

    def actions(self, asks: Asks, shares: Shares, runs: MeanRuns) -> Floats:
        """The jobs, (n, 10)."""
        places = np.array([self._place(vo) for vo in asks.vo_names] or [0])
        out = np.zeros((len(asks), self.action_n))
        out[:, 0] = asks.interactive
        out[np.arange(len(asks)), 1 + places[asks.vo]] = 1.0
        out[:, -1] = runs.expected_s(asks.estimate_s, asks.interactive) / _HOUR_S
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
"""By the name in the settings."""
