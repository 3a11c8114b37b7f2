"""Outcome of a trial: ratios, valid intervals, and none where it was too short."""

import numpy as np
import pytest

from outrider.service.canary_trial.trial import MIN_PAIRS, DaySums, Trial, outcome_of
from tests.service.canary_trial.trials import trial


def days_of(made: Trial, rng: np.random.Generator, ratio: float) -> list[DaySums]:
    """Draw days with a weekly rhythm and noise, on which acting costs `ratio` times as much."""
    found = []
    for day, acts in enumerate(made.acts):
        busy = 3.0 if day % 7 < 5 else 0.6
        goodput_s = 1e6 * busy * rng.lognormal(0.0, 0.3)
        costs = (ratio if acts else 1.0) * (1.5 if day % 7 < 5 else 0.5)
        found.append(
            DaySums(
                goodput_s=goodput_s,
                badput_s=goodput_s * costs * rng.lognormal(0.0, 0.3),
                energy_j=100.0 * goodput_s * costs * rng.lognormal(0.0, 0.2),
                completed=int(300 * busy),
                evictions=int(300 * busy * costs),
                overhead_s=300 * busy * 600.0 * rng.lognormal(0.0, 0.3),
                overheads=int(300 * busy),
            )
        )
    return found


def test_days_that_differ_by_nothing_else_give_the_ratio_exactly() -> None:
    made = trial()
    days = [
        DaySums(1e6, (2e6 if acts else 4e6), 3e8, 100, 50, 1e5, 100) for acts in made.acts
    ]  # fmt: skip
    found = outcome_of(made, days)
    assert (found.pairs, found.too_short) == (14, "")
    badput = found.measures["badput_ratio"]
    assert (badput.acting, badput.control) == (2.0, 4.0)
    assert badput.estimate == pytest.approx(0.5)
    assert badput.low == pytest.approx(0.5)
    assert found.measures["energy_ratio"].estimate == pytest.approx(1.0)


@pytest.mark.parametrize("days", [14, 28, 56])
def test_intervals_of_90_percent_hold_the_ratio_about_that_often(days: int) -> None:
    rng = np.random.default_rng(days)
    held = 0
    for seed in range(400):
        made = trial(seed=seed, days=days)
        one = outcome_of(made, days_of(made, rng, 0.7)).measures["badput_ratio"]
        assert one.low is not None
        assert one.high is not None
        held += one.low <= 0.7 <= one.high
    assert 0.85 <= held / 400 <= 0.95


def test_fewer_than_five_pairs_are_too_short_to_say() -> None:
    made = trial(days=14)
    days = days_of(made, np.random.default_rng(1), 0.7)
    for day in range(3):
        days[day] = DaySums()
    found = outcome_of(made, days)
    assert found.pairs == MIN_PAIRS - 1
    assert found.too_short == "too short to say: 4 pairs of days"
    assert all(one.estimate is None for one in found.measures.values())


def test_unknown_watts_and_days_without_evictions_leave_their_measure_unknown_alone() -> None:
    made = trial()
    days = days_of(made, np.random.default_rng(2), 0.7)
    days[3].energy_j = float("nan")
    for day, acts in zip(days, made.acts, strict=True):
        day.evictions = 0 if acts else day.evictions
    found = outcome_of(made, days).measures
    assert found["energy_ratio"].estimate is None
    assert found["evictions_ratio"].estimate is None
    assert found["badput_ratio"].estimate is not None


def test_it_says_whether_it_falls_into_what_was_stated() -> None:
    stated = {
        "energy_ratio": {"estimate": 0.7, "low": 0.01, "high": 2.0},
        "badput_ratio": {"estimate": 3.0, "low": 2.9, "high": 3.1},
    }
    made = trial(stated=stated, stated_as="next")
    found = outcome_of(made, days_of(made, np.random.default_rng(3), 0.7)).measures
    assert (found["energy_ratio"].within, found["energy_ratio"].agrees) == (True, True)
    assert (found["badput_ratio"].within, found["badput_ratio"].agrees) == (False, False)
    assert found["evictions_ratio"].within is None


def test_beside_a_narrow_statement_it_agrees_as_far_as_it_is_unsure_itself() -> None:
    made = trial()
    days = days_of(made, np.random.default_rng(3), 0.7)
    one = outcome_of(made, days).measures["badput_ratio"]
    assert one.estimate is not None
    assert one.high is not None
    for part, agrees in ((0.9, True), (1.2, False)):
        centre = one.estimate * (one.high / one.estimate) ** part
        stated = {"badput_ratio": {"estimate": centre, "low": centre * 0.99, "high": centre * 1.01}}
        compared = outcome_of(trial(stated=stated, stated_as="next"), days).measures["badput_ratio"]
        assert (compared.within, compared.agrees) == (False, agrees)


def test_a_forecast_that_is_right_about_its_own_error_agrees_in_about_90_percent() -> None:
    rng, error, agreed = np.random.default_rng(5), 0.1, 0
    for seed in range(400):
        centre = 0.7 * float(np.exp(rng.normal(0.0, error)))
        half = float(np.exp(1.645 * error))
        stated = {"estimate": centre, "low": centre / half, "high": centre * half}
        made = trial(seed=seed, stated={"badput_ratio": stated}, stated_as="next")
        agreed += bool(outcome_of(made, days_of(made, rng, 0.7)).measures["badput_ratio"].agrees)
    assert 0.85 <= agreed / 400 <= 0.95
