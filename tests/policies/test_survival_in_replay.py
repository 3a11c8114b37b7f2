"""The survival index on a generated half-year, beside the rule it falls back on."""

from typing import Any

import pytest

from outrider.api import Policy
from outrider.formats.campus.campus import Campus
from outrider.plugins.finding import stream
from outrider.replay.run import CampusRun
from outrider.simulation.generators.campus import generate_campus
from outrider_policies.rules.placements import LowestWatts
from outrider_policies.survival import Survival

SEEDS = [pytest.param((3,), id="a pool"), pytest.param((3, 4, 5), marks=pytest.mark.long)]


def replay(campus: Campus, kind: type[Policy]) -> dict[str, Any]:
    policy = kind(kind.settings_type(), stream(0, f"policy:{kind.name}"))
    policy.wants_scores = False
    return CampusRun(campus, [policy], lambda *row: None).run()


def spent_wh(run: dict[str, Any]) -> float:
    energy = run["energy_wh"]
    return float(energy["goodput"] + energy["badput"])


@pytest.fixture(scope="module", params=SEEDS)
def runs(request: pytest.FixtureRequest) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(lowest watts, survival) on small pools for 26 weeks."""
    pools = [generate_campus(seed, machines=100, clusters=6, weeks=26) for seed in request.param]
    return [(replay(pool, LowestWatts), replay(pool, Survival)) for pool in pools]


def test_small_pools_are_not_hurt_by_a_learner_that_knows_little(
    runs: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    for plain, learner in runs:
        assert spent_wh(learner) <= 1.01 * spent_wh(plain)
    means = [[run["overhead_s"]["all"]["mean"] for run in pair] for pair in runs]
    assert sum(mean for _, mean in means) <= 1.05 * sum(mean for mean, _ in means), means


def test_much_of_the_energy_that_is_wasted_need_not_be(
    runs: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    for plain, learner in runs:
        assert learner["energy_wh"]["badput"] < 0.6 * plain["energy_wh"]["badput"]


def test_its_predictions_say_more_than_the_rate_of_evictions_alone(
    runs: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    for _, learner in runs:
        scored = learner["calibration"]["evictions"]["all"]
        assert scored["n"] > 10_000
        assert scored["skill"] > 0.0
