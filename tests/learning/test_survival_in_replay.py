"""The survival index on a generated half-year, beside the rule it falls back on."""

from typing import Any

import pytest

from outrider.api import Policy
from outrider.api.chance import stream
from outrider.replay.run import CampusRun
from outrider.virtual.campus import Campus
from outrider.virtual.generate import generate_campus
from outrider_policies.lowest_watts import LowestWatts
from outrider_policies.survival import Survival

SEEDS = (3, 4)


def replay(campus: Campus, kind: type[Policy]) -> dict[str, Any]:
    policy = kind(kind.settings_type(), stream(0, f"policy:{kind.name}"))
    policy.wants_scores = False
    return CampusRun(campus, [policy], lambda *row: None).run()


def spent_wh(run: dict[str, Any]) -> float:
    energy = run["energy_wh"]
    return float(energy["goodput"] + energy["badput"])


@pytest.fixture(scope="module", params=SEEDS)
def runs(request: pytest.FixtureRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    """(lowest watts, survival) on 80 machines for 26 weeks."""
    campus = generate_campus(request.param, machines=80, clusters=6, weeks=26)
    return replay(campus, LowestWatts), replay(campus, Survival)


def test_a_small_pool_is_not_hurt_by_a_learner_that_knows_little(
    runs: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    plain, learner = runs
    assert spent_wh(learner) <= 1.01 * spent_wh(plain)
    mean = [run["overhead_s"]["all"]["mean"] for run in runs]
    assert mean[1] <= 1.05 * mean[0]


def test_most_energy_that_is_wasted_need_not_be(
    runs: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    plain, learner = (run["energy_wh"]["badput"] for run in runs)
    assert learner < 0.6 * plain


def test_its_predictions_say_more_than_the_rate_of_evictions_alone(
    runs: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    scored = runs[1]["calibration"]
    assert scored is not None, "nothing was predicted"
    print(scored)
