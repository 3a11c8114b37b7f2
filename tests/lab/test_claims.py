"""Verdicts come from the measured interval and from nothing else."""

from math import isnan, nan
from operator import itemgetter

import pytest

from outrider_lab.reporting.claims import (
    NOT_COMPARABLE,
    NOT_REPRODUCED,
    REPRODUCED,
    Claim,
    interval_of,
    judge,
    region,
    standard_error,
)
from outrider_lab.reporting.judging import (
    Stated,
    Statistic,
    greatest,
    judged,
    least,
    less,
    ratio,
    times,
    unmeasured,
)

SAVES = Claim("it saves 30 %", "7.1", "30 %", "saving", 0.25, 0.35)


def test_an_interval_within_the_region_reproduces_the_claim() -> None:
    judged = judge(SAVES, [0.30, 0.31, 0.29, 0.30])
    assert judged["verdict"] == REPRODUCED
    assert judged["measured"] == pytest.approx(0.30)
    assert "between 0.25 and 0.35" in judged["why"]


def test_an_interval_outside_the_region_does_not() -> None:
    judged = judge(SAVES, [0.10, 0.11, 0.09])
    assert judged["verdict"] == NOT_REPRODUCED
    assert "does not lie between 0.25 and 0.35" in judged["why"]


def test_an_interval_that_crosses_the_border_does_not_and_says_that_it_is_undecided() -> None:
    judged = judge(SAVES, [0.24, 0.36, 0.30])
    assert judged["measured"] == pytest.approx(0.30), "the mean alone would have said yes"
    assert judged["verdict"] == NOT_REPRODUCED
    assert "undecided" in judged["why"]


def test_one_seed_gives_no_interval_and_no_verdict() -> None:
    judged = judge(SAVES, [0.30])
    assert (judged["verdict"], judged["interval"]) == (NOT_COMPARABLE, None)
    assert judged["measured"] == 0.30


def test_a_run_too_small_gives_its_figures_and_no_verdict() -> None:
    judged = judge(SAVES, [0.30, 0.31], "8 weeks are too short")
    assert judged["verdict"] == NOT_COMPARABLE
    assert judged["why"] == "8 weeks are too short"
    assert judged["interval"] is not None


def test_what_nothing_of_ours_can_confirm_is_never_judged() -> None:
    claim = Claim("121 MWh", "7", "121", "MWh", incomparable="another campus")
    judged = judge(claim, [121.0, 121.1, 121.2])
    assert (judged["verdict"], judged["why"]) == (NOT_COMPARABLE, "another campus")


def test_years_that_could_not_be_measured_do_not_count() -> None:
    assert judge(SAVES, [0.30, nan, 0.31, 0.30])["verdict"] == REPRODUCED
    judged = judge(SAVES, [nan, nan])
    assert (judged["verdict"], judged["measured"]) == (NOT_COMPARABLE, None)
    assert "nothing was measured" in judged["why"]


def test_one_sided_regions_have_one_border() -> None:
    less = Claim("less", "1", "less", "ratio", high=1.0)
    more = Claim("more", "1", "more", "ratio", low=1.0)
    assert judge(less, [0.5, 0.6, 0.55])["verdict"] == REPRODUCED
    assert judge(more, [0.5, 0.6, 0.55])["verdict"] == NOT_REPRODUCED
    assert (region(less.low, less.high), region(more.low, more.high)) == ("below 1", "above 1")
    assert judge(less, [1.0, 1.0])["expected"] == [None, 1.0]


def test_what_is_just_equal_is_not_less() -> None:
    less = Claim("less", "1", "less", "ratio", high=1.0)
    assert judge(less, [1.0, 1.0, 1.0])["verdict"] == NOT_REPRODUCED


def test_the_interval_is_students() -> None:
    """Four values: 3.182 standard errors each way."""
    values = [1.0, 2.0, 3.0, 4.0]
    assert standard_error(values) == pytest.approx(0.6454972)
    assert interval_of(values) == pytest.approx((2.5 - 3.182 * 0.6454972, 2.5 + 3.182 * 0.6454972))
    assert interval_of([1.0]) is None


@pytest.mark.parametrize("seeds", [2, 4, 8])
def test_the_interval_covers_the_truth_in_19_of_20_cases(seeds: int) -> None:
    import numpy as np

    draws = np.random.default_rng(7).normal(size=(4000, seeds)).tolist()
    intervals = [interval_of(draw) for draw in draws]
    covered = sum(low <= 0.0 <= high for low, high in filter(None, intervals))
    assert covered / len(draws) == pytest.approx(0.95, abs=0.012)


OURS: Statistic[dict[str, float]] = itemgetter("ours")
THEIRS: Statistic[dict[str, float]] = itemgetter("theirs")
SEEDS = [
    {"ours": 3.0, "theirs": 4.0},
    {"ours": 3.1, "theirs": 4.0},
    {"ours": 3.2},
    {"ours": 2.9, "theirs": 0.0},
]


def test_a_statistic_counts_only_the_seeds_that_have_its_runs() -> None:
    claim = Claim("less waiting", "1", "less", "ours over theirs", high=1.0)
    stated = Stated(claim, ratio(OURS, THEIRS), "a weak test")
    (found,) = judged([stated], SEEDS, None)
    assert found["measured"] == pytest.approx((3.0 / 4.0 + 3.1 / 4.0) / 2)
    assert found["verdict"] == REPRODUCED
    assert "over 2 seeds" in found["why"]
    assert found["why"].endswith("; a weak test")


def test_statistics_are_put_together_from_others() -> None:
    nothing: list[Statistic[dict[str, float]]] = []
    seed = SEEDS[0]
    assert less(OURS, THEIRS)(seed) == -1.0
    assert times(OURS, 60.0)(seed) == 180.0
    assert (least([OURS, THEIRS])(seed), greatest([OURS, THEIRS])(seed)) == (3.0, 4.0)
    assert isnan(least(nothing)(seed))
    assert isnan(unmeasured(seed))
