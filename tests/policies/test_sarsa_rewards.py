"""Rewards of runs for sarsa, computed by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from outrider.api import COMPLETED_RUN, EVICTED_RUN, Outcome
from outrider_policies.sarsa.experience import Decision
from outrider_policies.sarsa.job_features import MeanRuns
from outrider_policies.sarsa.policy import reward_of
from outrider_policies.sarsa.settings import SarsaSettings


class View:
    """Site where VO `a` has a share of 30 % and a target of 50 %.

    Utility falls from 1 to 0 in 100 s.
    """

    def vo_shares(self) -> dict[str, tuple[float, float]]:
        return {"a": (0.3, 0.5), "b": (0.7, 0.5)}

    def utility(self, job: Any) -> Any:
        return SimpleNamespace(
            unit=lambda turnaround_s, ideal_s: 1 - (turnaround_s - ideal_s) / 100
        )


def reward(kind: Any, ending: str = COMPLETED_RUN) -> float:
    """Return the reward of a run of 40 s on 2 CPUs with U = 0.8.

    It was submitted at second 10 and ended at 70.
    """
    runs = MeanRuns()
    runs.take(False, 20.0, 1)  # m = 20 CPU-seconds, w = 80
    decision = Decision(np.zeros(1), "batch", 10.0, 2)
    outcome = Outcome(1, (), 0, 0, 30.0, 70.0, 40.0, ending)
    view: Any = View()
    return reward_of(decision, outcome, runs, SarsaSettings(reward=kind, fairness_weight=0.5), view)


def test_a_completed_run_earns_its_utility_and_the_fairness_of_the_site() -> None:
    """Fairness: 1 - (0.5 - 0.3) / 0.5 = 0.6, of which half."""
    assert reward("utility") == pytest.approx(0.3 + 0.8)


def test_by_density_a_run_that_keeps_cpus_for_long_earns_less() -> None:
    assert reward("density") == pytest.approx(0.3 + 0.8 * 20 / (20 + 80))


@pytest.mark.parametrize("kind", ["utility", "density"])
def test_a_run_that_was_thrown_away_earns_the_fairness_alone(kind: str) -> None:
    assert reward(kind, EVICTED_RUN) == pytest.approx(0.3)
