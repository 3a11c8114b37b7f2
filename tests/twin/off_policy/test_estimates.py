"""SNIPS and DR: unbiased, with valid intervals."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from outrider.twin.off_policy.check import (
    completion_shares,
    effective_n,
    estimated,
)
from outrider.twin.off_policy.starts import Batches, Floats, Start, StartTable

DAYS = 28
FREE_N = {0: 6, 1: 3, 2: 1}
GOOD = (0.8, 0.5, 0.2)
"""Probability that a run completes on each group, give or take a tenth by day."""


def drawn(seed: int, odds: Callable[[random.Random], dict[int, float]], n: int = 900) -> StartTable:
    """Draw starts on machines uniformly; the candidate "c" draws a group, then a machine."""
    rng = random.Random(seed)
    tide = [rng.uniform(-0.1, 0.1) for _ in range(DAYS)]
    starts = []
    for at in range(n):
        day = at * DAYS // n
        group = rng.choices((0, 1, 2), weights=list(FREE_N.values()))[0]
        by_group = odds(rng)
        own = by_group.get(group, 0.0) / FREE_N[group]
        starts.append(
            Start(
                day * 86_400, rng.randrange(24), at // 3, group, FREE_N, {"c": (own, by_group)},
                rng.random() < GOOD[group] + tide[day],
            )
        )  # fmt: skip
    return StartTable(starts, 3, "c")


def only(group: int) -> Callable[[random.Random], dict[int, float]]:
    return lambda rng: {group: 1.0}


def uniform(rng: random.Random) -> dict[int, float]:
    return {group: n / 10 for group, n in FREE_N.items()}


def test_a_candidate_that_draws_like_the_incumbent_changes_nothing() -> None:
    table = drawn(1, uniform)
    assert table.weights == pytest.approx(np.ones(len(table)))
    made = estimated(table, table.day, 0.9)
    for difference in (made.difference, made.snips_difference):
        assert difference.value == pytest.approx(0.0, abs=1e-12)
        assert difference.high - difference.low == pytest.approx(0.0, abs=1e-12)
    assert made.incumbent.value == table.completed.mean()


@pytest.mark.parametrize("group", [0, 1])
def test_intervals_hold_the_truth_as_often_as_they_say(group: int) -> None:
    """Intervals of 90 % hold the truth in 170 of 200 logs or more (fewer: probability 1 %)."""
    chance = sum(GOOD[g] * n for g, n in FREE_N.items()) / 10
    held = {"dr": 0, "snips": 0}
    values: dict[str, list[float]] = {"dr": [], "snips": []}
    for seed in range(200):
        table = drawn(seed, only(group))
        made = estimated(table, table.day, 0.9)
        for name, estimate in (("dr", made.difference), ("snips", made.snips_difference)):
            held[name] += estimate.low <= GOOD[group] - chance <= estimate.high
            values[name].append(estimate.value)
    for name, n in held.items():
        assert 170 <= n <= 195, f"{name}: {n} of 200"
        off = abs(float(np.mean(values[name])) - (GOOD[group] - chance))
        assert off < 4 * float(np.std(values[name])) / 200**0.5, name


def test_an_interval_is_that_of_the_means_of_clusters_where_these_are_alike() -> None:
    """The textbook interval of 28 equal days is found: t(.975, 27) = 2.0518."""
    table = drawn(3, uniform, n=28 * 30)
    made = estimated(table, table.day, 0.95)
    days = np.array([table.completed[table.day == day].mean() for day in range(DAYS)])
    half = 2.0518305 * float(days.std(ddof=1)) / DAYS**0.5
    assert made.incumbent.low == pytest.approx(days.mean() - half)
    assert made.incumbent.high == pytest.approx(days.mean() + half)


def test_one_cluster_gives_no_interval() -> None:
    table = drawn(1, uniform)
    same = np.zeros(len(table), dtype=np.int64)
    with pytest.raises(ValueError, match="two clusters"):
        estimated(table, same, 0.9)


def test_the_model_of_a_day_does_not_know_that_day() -> None:
    table = drawn(4, uniform)
    before = completion_shares(table)
    of_day = table.day == 5
    table.completed[of_day] = 1.0 - table.completed[of_day]
    after = completion_shares(table)
    assert after[of_day] == pytest.approx(before[of_day])
    assert not np.allclose(after[table.day == 6], before[table.day == 6])
    assert before.min() > 0.0
    assert before.max() < 1.0


@pytest.mark.parametrize(
    ("weights", "n"), [([1.0] * 8, 8.0), ([4.0, 0.0, 0.0, 0.0], 1.0), ([2.0, 2.0, 0.0], 2.0)]
)
def test_the_effective_sample_size_is_that_of_equal_weights(weights: list[float], n: float) -> None:
    array: Floats = np.array(weights)
    assert effective_n(array) == pytest.approx(n)
    assert effective_n(np.zeros(3)) == 0.0


def test_jobs_of_one_user_submitted_together_are_one_batch() -> None:
    batches = Batches()
    submissions = [(0, "ann", 0.0), (1, "ann", 50.0), (2, "bob", 55.0), (3, "ann", 105.0),
            (4, "ann", 200.0)]  # fmt: skip
    for job, user, time_s in submissions:
        batches.submit(job, user, time_s)
    assert [batches.of(job) for job in range(5)] == [0, 0, 1, 0, 2]
