"""Time utility functions: the papers' shapes, at the points that the papers name."""

from itertools import pairwise
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.accounting.accounting import UtilityStatistics
from outrider.model.errors import ConfigurationError
from outrider.model.utility import (
    SHAPES,
    Batch,
    Concave,
    Constant,
    Convex,
    Interactive,
    Linear,
    Rising,
    Soft,
    Step,
    TimeUtility,
)
from outrider.plugins.finding import make_utilities

HOUR_S = 3600.0


@pytest.mark.parametrize(
    ("utility", "turnaround_s", "worth"),
    [
        (Constant(), 1e9, 1.0),
        (Step(slack_s=60.0), 660.0, 1.0),
        (Step(slack_s=60.0), 661.0, 0.0),
        (Soft(slack_s=60.0, fade_s=600.0), 960.0, 0.5),
        (Interactive(alpha_per_h=0.5, startup_s=60.0), 660.0 + log(2) / 0.5 * HOUR_S, 0.5),
        (Batch(beta=0.3, startup_s=60.0), 660.0 * 2 ** (1 / 0.3), 0.5),
        (Linear(), 600.0, 1.0),
        (Linear(), 900.0, 0.5),
        (Linear(), 1200.0, 0.0),
        (Convex(), 900.0, 0.25),
        (Concave(), 900.0, 0.5**0.5),
        (Rising(least=0.5, full_s=3600.0), 600.0 + 1800.0, 0.75),
    ],
)
def test_the_papers_shapes_go_through_the_points_they_name(
    utility: TimeUtility, turnaround_s: float, worth: float
) -> None:
    assert float(utility.unit(turnaround_s, 600.0)) == pytest.approx(worth)


@pytest.mark.parametrize("shape", sorted(set(SHAPES) - {"rising"}))
def test_waiting_longer_is_never_worth_more(shape: str) -> None:
    utility = SHAPES[shape]()
    turnaround_s = np.linspace(600.0, 1e5, 400)
    worth = utility.unit(turnaround_s, np.full(400, 600.0))
    assert worth.shape == (400,)
    assert worth[0] == 1.0, "nobody could be served better"
    assert all(later <= sooner for sooner, later in pairwise(worth.tolist()))
    assert worth.min() >= 0.0


def test_a_rising_utility_is_worth_more_to_who_waited() -> None:
    waited_s = np.linspace(0.0, 1e4, 50)
    worth = Rising().unit(600.0 + waited_s, np.full(50, 600.0))
    assert all(later >= sooner for sooner, later in pairwise(worth.tolist()))


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        (
            {"shape": "linaer"},
            r'batch: "shape" = "linaer": no utility has that shape; did you mean "linear"',
        ),
        ({}, '"shape" is missing: expected one of constant, .*, as in shape = "step"'),
        ({"shape": "linear", "zero_at": 0.5}, "zero_at.*0.5.*more than 1, as in zero_at = 2.0"),
        ({"shape": "step", "slack": 3}, 'unknown setting "slack"; did you mean "slack_s"'),
    ],
)
def test_a_wrong_declaration_is_refused_by_name(given_: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make_utilities({"batch": given_}, "site.toml utilities")


def test_a_declared_class_has_its_own_and_others_have_the_batch_jobs() -> None:
    book = UtilityStatistics(
        make_utilities({"urgent": {"shape": "step"}, "batch": {"shape": "linear"}}, "x")
    )
    book.completed("urgent", np.array([61.0, 62.0]), np.array([1.0, 1.0]), np.array([2.0, 1.0]))
    book.completed("nightly", np.array([1.5]), np.array([1.0]), np.array([1.0]))
    assert book.total == pytest.approx(2.0 * 1.0 + 0.0 + 1.0 * 0.5)


@given(st.lists(st.tuples(st.floats(1.0, 1e5), st.floats(1.0, 1e4)), max_size=3000))
def test_the_sum_is_that_of_the_jobs_and_survives_a_restart(
    jobs: list[tuple[float, float]],
) -> None:
    book, at_once, utility = UtilityStatistics(), UtilityStatistics(), Batch()
    wait_s, run_s = np.array(jobs).reshape(-1, 2).T
    at_once.completed("batch", wait_s + run_s, run_s, 4 * run_s)
    for at, one in enumerate(np.arange(len(jobs)).reshape(-1, 1)):
        if at == len(jobs) // 2:
            again = UtilityStatistics()
            again.restore(book.save())
            book = again
        book.completed("batch", (wait_s + run_s)[one], run_s[one], 4 * run_s[one])
    assert book.total == at_once.total
    expected = sum(float(utility.unit(w + r, r)) * 4 * r for w, r in jobs)
    assert book.total == pytest.approx(expected)
