"""Shifts of quantiles by recent errors, and the bias of short waits, which are seen first."""

from math import ceil

import numpy as np
import pytest

from outrider.forecast import forecasts as module
from outrider.forecast.forecasts import forecasts, pinball
from outrider.forecast.questions import FEATURES, LEVELS, Questions
from outrider.forecast.queue_state import Floats
from outrider.forecast.recalibration import (
    as_log,
    as_seconds,
    censoring_weights,
    few_per_moment,
    independent,
    recalibrated,
    weighted_quantiles,
)
from outrider.forecast.scores import scores

INTERVAL_S = 1800.0
"""Seconds between questions: 6,000 are four months."""

whole = pytest.param(6_000, marks=pytest.mark.long)
sizes = pytest.mark.parametrize("n", [1_500, whole])
"""Number of questions."""


def waits(n: int, seed: int = 1, scale_s: float = 20_000.0) -> Floats:
    """Draw waits of hours, some of days."""
    return np.random.default_rng(seed).lognormal(np.log(scale_s), 1.0, n)


def asked(n: int) -> Floats:
    """Return the time of each question, seconds."""
    return np.arange(n).astype(float) * INTERVAL_S


def questions(
    wait_s: Floats, predicted_s: Floats, spread: float = 0.3, new: float = 0.0
) -> Questions:
    """Return questions at submission with replicates about `predicted_s` (log-normal, `spread`)."""
    normal = np.array([-1.645, -1.282, -0.674, 0.0, 0.674, 1.282, 1.645])
    assert len(normal) == len(LEVELS)
    known = np.zeros((len(wait_s), len(FEATURES)))
    known[:, FEATURES.index("running_new")] = new
    return Questions(
        np.arange(len(wait_s)), asked(len(wait_s)), np.ones(len(wait_s), np.bool_),
        predicted_s[:, None] * np.exp(spread * normal), known, wait_s,
    )  # fmt: skip


def covered(wait_s: Floats, quantiles_s: Floats) -> float:
    """Return the share of intervals that held, in the second half."""
    half = len(wait_s) // 2
    held = (quantiles_s[:, 0] <= wait_s) & (wait_s <= quantiles_s[:, -1])
    return float(held[half:].mean())


def test_the_scale_of_errors_has_a_way_back() -> None:
    wait_s = np.array([0.0, 1.0, 1e6])
    assert np.allclose(as_seconds(as_log(wait_s)), wait_s)


def test_answers_count_for_those_that_are_still_open() -> None:
    age_s = np.array([40.0, 30.0, 20.0, 10.0])
    seen, weights = censoring_weights(age_s, np.array([35.0, 50.0, 5.0, 99.0]))
    assert seen.tolist() == [True, False, True, False]
    assert weights.tolist() == [4.0, 1.0]  # one of four is 35 s old, all are 5 s old


def test_quantiles_are_weighted() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 7.0])
    columns = np.stack([values, values, 10.0 * values], axis=1)
    assert weighted_quantiles(columns, weights).tolist() == [1.0, 2.0, 30.0]


def test_of_one_moment_a_few_count() -> None:
    rows = few_per_moment(np.repeat([0.0, 1.0, 2.0], [3, 100, 1]))
    assert rows.tolist()[:3] == [0, 1, 2]
    assert len(rows) == 3 + 8 + 1


@pytest.mark.parametrize("factor", [0.2, 1.0, 5.0])
def test_quantiles_that_are_wrong_by_a_factor_hold_afterwards(factor: float) -> None:
    n = 6_000
    wait_s = waits(n)
    wrong = as_log(np.outer(np.full(n, 20_000.0 * factor), [0.9, 1.0, 1.1]))
    predicted_s = as_seconds(recalibrated(asked(n), wait_s, wrong))
    assert 0.77 < covered(wait_s, predicted_s) < 0.83


@sizes
def test_nothing_later_moves_a_quantile(n: int) -> None:
    wait_s, until = waits(n), n // 2
    raw = as_log(np.outer(np.full(n, 20_000.0), [0.5, 1.0, 2.0]))
    moment_s = float(asked(n)[until])
    other = np.where(
        asked(n) + wait_s > moment_s, np.maximum(0.0, moment_s - asked(n)) + waits(n, 2), wait_s
    )
    assert not np.array_equal(other[:until], wait_s[:until])
    first = recalibrated(asked(n), wait_s, raw)[: until + 1]
    assert first.tolist() == recalibrated(asked(n), other, raw)[: until + 1].tolist()


def test_few_answers_leave_quantiles_as_they_are() -> None:
    raw = as_log(np.outer(np.full(40, 20_000.0), [0.5, 1.0, 2.0]))
    assert recalibrated(asked(40), waits(40), raw).tolist() == raw.tolist()


def test_waits_that_overlap_count_for_one() -> None:
    apart, same = np.array([0.0, 10.0, 20.0]), np.zeros(3)
    assert independent(apart, apart + 10.0) == pytest.approx(3.0)
    assert independent(same, same + 10.0) == pytest.approx(1.0)
    # the second half of the first is shared with the second, which is as long
    assert independent(np.array([0.0, 5.0]), np.array([10.0, 15.0])) == pytest.approx(1.5)
    assert independent(same, same) == 0.0  # nobody waited


def test_one_burst_moves_quantiles_less_than_as_many_waits_apart() -> None:
    """Give 300 answers of four times the forecast: all at one moment, or each alone."""
    n = 300
    at: Floats = asked(n) * 3.0
    raw = as_log(np.outer(np.full(n + 1, 900.0), [0.5, 1.0, 2.0]))

    def moved(asked_s: Floats, prior: float) -> float:
        asked_s = np.append(asked_s, 2e6)
        shifted = recalibrated(asked_s, np.full(n + 1, 3_600.0), raw, prior)
        return float((shifted - raw)[-1, 1])

    whole = moved(at, 0.0)
    assert whole == pytest.approx(np.log(3_660.0 / 960.0))
    assert moved(at, 10.0) == pytest.approx(300 / 310 * whole)
    burst_s: Floats = at / at[-1]  # who came within a second waited for the same
    assert moved(burst_s, 10.0) == pytest.approx(1 / 11 * whole, rel=0.01)


def test_it_is_not_known_while_recent_waits_are_the_better_forecast() -> None:
    """The replicates are unrelated to the answers in the second half."""
    n = 1_000
    truth_s, noise = waits(n), waits(n, 3, 1.0)
    predicted_s = np.where(np.arange(n) < n // 2, truth_s * noise**0.3, truth_s.mean() * noise**4)
    found = forecasts(questions(truth_s, predicted_s), 10)
    assert found.known[: n // 2].all()
    assert not found.known[-n // 8 :].any()


@sizes
def test_pinball_is_least_at_the_quantiles(n: int) -> None:
    wait_s = waits(n)
    right = np.broadcast_to(np.quantile(wait_s, [0.1, 0.5, 0.9]), (n, 3))
    for factor in (0.8, 1.25):
        assert pinball(wait_s, right).mean() < pinball(wait_s, right * factor).mean()


@pytest.mark.parametrize("n", [2_500, whole])
def test_a_model_takes_over_where_the_rule_is_another(n: int) -> None:
    """The rule's forecast is scrambled by the hour; the model sees the hour and corrects it."""
    rng = np.random.default_rng(5)
    truth_s = waits(n)
    asked_at = questions(truth_s * rng.lognormal(0.0, 0.1, n), truth_s)
    hour = rng.integers(0, 2, n)
    asked_at.known[:, FEATURES.index("hour")] = hour
    asked_at.quantiles_s[hour == 1] *= 30.0
    asked_at.known[:, FEATURES.index("request_s")] = np.nan  # a site where nobody asks for time
    asked_at.quantiles_s[:20, -1] = np.inf
    found = forecasts(asked_at, 10)
    assert found.learned[n // 2 :].mean() > 0.8
    assert 0.74 < covered(asked_at.wait_s, found.wait_s) < 0.86
    width_s = found.wait_s[:, 2] - found.wait_s[:, 0]
    assert np.median((width_s / truth_s)[n // 2 :]) < 2.0


@sizes
def test_no_model_is_fitted_where_the_rule_holds(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_of: list[int] = []

    def nobody(questions: Questions, from_s: Floats) -> Floats:
        asked_of.append(len(from_s))
        return np.full((len(questions), 3), np.nan)

    monkeypatch.setattr(module, "learned_quantiles", nobody)
    truth_s = waits(n)
    found = forecasts(questions(truth_s * waits(n, 3, 1.0) ** 0.3, truth_s), 10)
    assert asked_of == [0]
    assert not found.learned.any()
    assert found.known.all()


@sizes
def test_it_is_not_known_where_most_of_what_runs_is_of_new_users(n: int) -> None:
    asked_at = questions(waits(n), waits(n))
    asked_at.known[:100, FEATURES.index("running_new")] = 0.6
    known = forecasts(asked_at, 10).known
    assert not known[:100].any()
    assert known[100:].all()


@sizes
def test_scores_are_those_of_what_is_judged(n: int) -> None:
    truth_s = waits(n)
    asked_at = questions(truth_s * waits(n, 3, 1.0) ** 0.3, truth_s)
    asked_at.known[:100, FEATURES.index("running_new")] = 0.6
    judged = asked_at.job >= 50
    found = scores(asked_at, forecasts(asked_at, 10), judged)
    assert found["hourly"]["questions"] == 0
    assert found["hourly"]["coverage_ratio"] is None
    of = found["submission"]
    assert (of["questions"], of["unknown"]) == (n - 50, 50)
    assert 0.77 < of["coverage_ratio"] < 0.83
    assert of["weeks"] == ceil(n * INTERVAL_S / 604_800)
    assert of["pinball_ratio"] < 0.6
    assert of["width_ratio"] < 0.6
