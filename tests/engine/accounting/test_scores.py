"""Properties of the scores, whatever is predicted and whatever happens."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from outrider.api import Prediction
from outrider.engine.accounting.predictions import HALF_LIFE_S, Predictions
from outrider.model.decisions import COMPLETED_RUN, EVICTED_RUN, REMOVED_RUN
from tests.engine.accounting.forecasters import Forecast

DAY_S = 86_400.0
probabilities = st.floats(0, 1)
runs = st.lists(st.tuples(probabilities, st.booleans(), st.floats(0, 40 * DAY_S)), min_size=1)


def scored(told: list[tuple[float, bool, float]]) -> tuple[Predictions, float]:
    """Runs with their probability, end, and seconds since the run before; and the last moment."""
    predictions, now = Predictions(), 1.8e9
    for job, (probability, evicted, later_s) in enumerate(told):
        now += later_s
        predictions.keep(job, Prediction(probability))
        predictions.score(job, EVICTED_RUN if evicted else COMPLETED_RUN, "", 60.0, now)
    return predictions, now


@given(probability=probabilities, ends=st.lists(st.booleans(), min_size=1, max_size=200))
def test_who_always_says_the_same_has_no_skill(probability: float, ends: list[bool]) -> None:
    predictions, now = scored([(probability, evicted, 3600.0) for evicted in ends])
    report = predictions.report(now)["evictions"]
    for window in ("all", "recent"):
        if any(ends) and not all(ends):
            assert report[window]["skill"] <= 1e-9
        else:
            assert report[window]["skill"] is None, "nothing to be better than"


@given(told=runs)
def test_recent_scores_are_the_means_with_weights_that_halve(
    told: list[tuple[float, bool, float]],
) -> None:
    predictions, now = scored(told)
    report = predictions.report(now + DAY_S)["evictions"]["recent"]
    times = [1.8e9 + sum(s for _, _, s in told[: n + 1]) for n in range(len(told))]
    weights = [0.5 ** ((now + DAY_S - t) / HALF_LIFE_S) for t in times]
    errors = [(p - evicted) ** 2 for p, evicted, _ in told]
    expected = sum(w * e for w, e in zip(weights, errors, strict=True)) / sum(weights)
    assert report["n"] == pytest.approx(sum(weights))
    assert report["brier"] == pytest.approx(expected, abs=1e-12)


@given(told=runs)
def test_the_bins_add_up_to_the_whole(told: list[tuple[float, bool, float]]) -> None:
    predictions, now = scored(told)
    whole = predictions.report(now)["evictions"]["all"]
    rows = [row for row in whole["bins"] if row["n"]]
    assert sum(row["n"] for row in rows) == len(told)
    evicted = sum(evicted for _, evicted, _ in told)
    assert sum(row["n"] * row["observed"] for row in rows) == pytest.approx(evicted)
    for row in rows:
        low, high = map(float, row["bin"].split("-"))
        assert low - 1e-12 <= row["predicted"] <= high + 1e-12


@given(told=runs, later=runs)
def test_a_snapshot_between_two_runs_changes_no_score(
    told: list[tuple[float, bool, float]], later: list[tuple[float, bool, float]]
) -> None:
    through, now = scored(told)
    through.keep(-1, Prediction(0.5, 600.0))
    through.score(-1, REMOVED_RUN, "killed", 60.0, now)
    resumed = Predictions()
    resumed.restore(msgpack.decode(msgpack.encode(through.save())))
    for job, (probability, evicted, later_s) in enumerate(later):
        now += later_s
        for predictions in (through, resumed):
            predictions.keep(job, Prediction(probability, 600.0))
            ending = EVICTED_RUN if evicted else COMPLETED_RUN
            predictions.score(job, ending, "", 60.0, now)
    assert resumed.report(now) == through.report(now)


def test_scores_are_the_same_however_often_they_are_read() -> None:
    rng = random.Random(1)
    told = [(rng.random(), rng.random() < 0.3, rng.expovariate(1 / 600.0)) for _ in range(3_000)]
    availability, now = scored(told)
    asked, then = Predictions(), 1.8e9
    for job, (probability, evicted, later_s) in enumerate(told):
        then += later_s
        asked.keep(job, Prediction(probability))
        asked.score(job, EVICTED_RUN if evicted else COMPLETED_RUN, "", 60.0, then)
        if job % 7 == 0:
            asked.report(then)
        if job % 1_000 == 999:
            saved, asked = asked.save(), Predictions()
            asked.restore(msgpack.decode(msgpack.encode(saved)))
    assert asked.report(now) == availability.report(now)


def test_drift_shows_in_the_recent_score_first() -> None:
    steady = [(0.1, False, 3600.0)] * 2_000  # 83 days in which the policy is right
    changed = [(0.1, True, 3600.0)] * 700  # a month in which it is not
    predictions, now = scored(steady + changed)
    report = predictions.report(now)["evictions"]
    assert report["all"]["observed"] == pytest.approx(700 / 2700)
    assert report["recent"]["observed"] > 0.75
    assert report["recent"]["brier"] > 2 * report["all"]["brier"]


@pytest.mark.parametrize("seed", range(3))
def test_the_score_of_a_policy_that_knows_the_chance_converges_to_what_chance_costs(
    seed: int,
) -> None:
    """The mean of (p - X)^2 is p (1 - p) for X of chance p. It is 1/6 for p uniform in 0..1."""
    rng, site, n = random.Random(seed), Forecast(), 4_000
    for _ in range(n):
        probability = rng.random()
        site.chance(probability, evicted=rng.random() < probability)
    report = site.report()["evictions"]["all"]
    error = 0.2 / n**0.5  # one run's squared error has standard deviation sqrt(1/15 - 1/36)
    assert report["brier"] == pytest.approx(1 / 6, abs=4 * error)
    assert report["skill"] == pytest.approx(1 / 3, abs=0.04)
    for row in report["bins"]:
        spread = (row["predicted"] * (1 - row["predicted"]) / row["n"]) ** 0.5
        assert row["observed"] == pytest.approx(row["predicted"], abs=4.5 * spread)
