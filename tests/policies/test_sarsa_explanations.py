"""Explanations by sarsa: value, position, the first job, and guards."""

from math import inf, nan

import numpy as np
import pytest

from outrider_policies.sarsa.explanations import QueuePosition, best_few, why
from outrider_policies.sarsa.job_features import Guards, JobColumns, JobProperties

NOW = 6_000.0
JOBS = JobColumns.of_jobs(
    [
        JobProperties(False, "physics", 0.0, 720.0, 4),
        JobProperties(True, "biology", 5_400.0, nan, 1),
        JobProperties(False, "all", 3_000.0, 60.0, 1),
    ]
)
VALUES = np.array([1.0, 3.0, 2.0])
NO_GUARDS = Guards(inf, inf)


def said(at: int, guarded: tuple[int, str] | None = None, guards: Guards = NO_GUARDS) -> str:
    return why(QueuePosition(at, JOBS, VALUES, guards, guarded, NOW))


def test_the_highest_value_is_first() -> None:
    assert said(1) == (
        "its value is 3.00, the highest of 3 waiting jobs: it starts first; "
        "no starvation guard is active"
    )


def test_another_has_so_many_before_it_and_knows_who_is_first() -> None:
    assert said(0) == (
        "its value is 1.00; 2 of 3 waiting jobs have a higher one; first is interactive biology of "
        "unknown length (value 3.00), which has the highest value; no starvation guard is active"
    )


def test_a_guard_puts_the_oldest_first_whatever_its_value() -> None:
    assert said(0, (0, "batch_guard")) == (
        "it has waited 100 min and is the oldest of those that waited too long: it starts first "
        "(its value of 1.00 does not matter now)"
    )
    assert said(1, (0, "batch_guard")) == (
        "its value is 3.00; 0 of 3 waiting jobs have a higher one; first is batch physics 12 min "
        "x4 (value 1.00), which has waited too long; no starvation guard is active"
    )


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (0, "it has waited long enough to precede higher values, while no interactive job waits, "),
        (1, "in 5 min it precedes higher values, "),
        (2, "in 50 min it precedes higher values, while no interactive job waits, "),
    ],
)
def test_it_is_said_when_the_wait_comes_before_values(at: int, told: str) -> None:
    guards = Guards(interactive_s=900.0, batch_s=6_000.0)
    assert said(at, None, guards).endswith(f"; {told}the oldest first")


def test_beside_the_chosen_job_the_best_four_are_shown() -> None:
    many = JobColumns.of_jobs([JobProperties(False, "all", 0.0, 60.0 * n, 1) for n in range(1, 8)])
    shown = best_few(0, many, np.array([0.0, 1.0, 6.0, 2.0, 5.0, 3.0, 4.0]))
    assert list(shown.items()) == [
        ("batch all 1 min", 0.0), ("batch all 3 min", 6.0), ("batch all 5 min", 5.0),
        ("batch all 7 min", 4.0), ("batch all 6 min", 3.0),
    ]  # fmt: skip
