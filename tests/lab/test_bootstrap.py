"""Intervals by resampling: they cover what they say they cover, also where neighbours agree."""

import numpy as np
import pytest

from outrider.model.student import student_quantile
from outrider_lab.reporting.bootstrap import (
    Interval,
    blocks_of_time,
    interval,
    paired_interval,
    resampled_means,
)

TRIALS = 200


def coverage(blocks_n: int, in_block: int, by_block: bool) -> float:
    """Return how often the interval of the mean of correlated values holds the truth, 0.

    Each block has a shift of its own, as large as the scatter of the values within it.
    """
    rng = np.random.default_rng(7)
    blocks = np.repeat(np.arange(blocks_n), in_block)
    held = 0
    for trial in range(TRIALS):
        values = rng.normal(size=blocks_n)[blocks] + rng.normal(size=len(blocks))
        drawn = resampled_means(values, trial, blocks if by_block else None, resamples=300)
        held += interval(drawn).holds_zero
    return held / TRIALS


def test_intervals_over_blocks_cover_the_truth_where_neighbours_agree() -> None:
    assert 0.90 <= coverage(30, 20, by_block=True) <= 0.98


def test_intervals_over_single_values_would_not() -> None:
    assert coverage(30, 20, by_block=False) < 0.60


def test_independent_values_are_covered_without_blocks() -> None:
    assert 0.90 <= coverage(60, 1, by_block=False) <= 0.98


def test_the_spread_of_resampled_means_is_the_standard_error() -> None:
    values = np.random.default_rng(1).exponential(size=2500)
    drawn = resampled_means(values, seed=2)[:, 0]
    assert drawn.mean() == pytest.approx(values.mean(), abs=0.002)
    assert drawn.std() == pytest.approx(values.std() / 50, rel=0.05)


def test_pairing_takes_out_what_both_have_in_common() -> None:
    rng = np.random.default_rng(3)
    shared = rng.lognormal(3.0, 2.0, size=1000)
    ours, theirs = shared + 1.0 + rng.normal(0, 0.1, 1000), shared
    low, high = paired_interval(ours, theirs)
    assert 0.98 < low < 1.0 < high < 1.02
    alone = interval(resampled_means(ours, 0)[:, 0] - resampled_means(theirs, 1)[:, 0])
    assert alone.holds_zero


def test_columns_are_drawn_together() -> None:
    values = np.random.default_rng(4).normal(size=(50, 1))
    drawn = resampled_means(np.hstack([values, values + 5.0]), seed=9)
    assert np.allclose(drawn[:, 1] - drawn[:, 0], 5.0)


@pytest.mark.parametrize("blocks_n", [6, 10])
def test_told_how_few_blocks_there_are_intervals_are_wider(
    blocks_n: int,
) -> None:
    """Check the coverage, .86 and .90 by plain intervals, .93 and .94 by the others."""
    rng = np.random.default_rng(11)
    plain = widened = 0
    for trial in range(1000):
        drawn = resampled_means(rng.normal(size=blocks_n), trial, resamples=400)
        plain += interval(drawn).holds_zero
        widened += interval(drawn, blocks_n).holds_zero
    assert plain < 915
    assert widened > plain + 25
    assert 910 <= widened <= 970


@pytest.mark.parametrize(
    ("freedom", "exact"), [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042)]
)
def test_students_quantile_is_that_of_the_tables(freedom: int, exact: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(exact, abs=0.0005)


def test_the_same_seed_gives_the_same_interval_and_another_one_another() -> None:
    values = np.random.default_rng(5).normal(size=100)
    first, again, other = (interval(resampled_means(values, seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_large_blocks_count_by_their_size() -> None:
    """The mean is that of the rows drawn, not of the blocks' means."""
    blocks = np.array([0] * 99 + [1])
    values = np.array([0.0] * 99 + [100.0])
    drawn = resampled_means(values, 0, blocks)[:, 0]
    assert set(np.round(drawn, 6)) == {0.0, 1.0, 100.0}


def test_drawing_in_parts_changes_nothing_of_the_shape() -> None:
    """Many rows are drawn a few resamples at a time."""
    drawn = resampled_means(np.ones((50_000, 2)), seed=0, resamples=300)
    assert drawn.shape == (300, 2)
    assert np.allclose(drawn, 1.0)


def test_blocks_are_stretches_of_time_numbered_without_gaps() -> None:
    time_s = [0.0, 86_399.0, 86_400.0, 10 * 86_400.0, -1.0]
    assert blocks_of_time(time_s).tolist() == [1, 1, 2, 3, 0]
    assert blocks_of_time(time_s, block_s=1e9).tolist() == [1, 1, 1, 1, 0]


def test_an_interval_that_touches_zero_holds_it() -> None:
    assert Interval(0.0, 1.0).holds_zero
    assert not Interval(0.1, 1.0).holds_zero
    assert not Interval(-1.0, -0.1).holds_zero


def test_what_cannot_be_resampled_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to resample"):
        resampled_means([], 0)
    with pytest.raises(ValueError, match="2 blocks for 3 rows"):
        resampled_means([1.0, 2.0, 3.0], 0, np.array([0, 1]))
    with pytest.raises(ValueError, match="3 values beside 2"):
        paired_interval([1.0, 2.0, 3.0], [1.0, 2.0])
