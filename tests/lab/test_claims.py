"""Verdicts come from the measured interval and from nothing else."""

from math import isnan, nan
from operator import itemgetter

import pytest

from outrider_lab.reporting.claims import (
    NOT_COMPARABLE,
    Claim,
    Stated,
    Statistic,
    Verdict,
    counted,
    greatest,
    in_words,
    interval_of,
    judge,
    judged,
    least,
    less,
    ratio,
    region,
    rule,
    standard_error,
    times,
    unmeasured,
    verdict_of,
)

SAVES = Claim("it saves 30 %", "7.1", "30 %", "saving", 0.25, 0.35)


def test_an_interval_within_the_region_reproduces_the_claim() -> None:
    judged = judge(SAVES, [0.30, 0.31, 0.29, 0.30])
    assert judged["verdict"] == Verdict.REPRODUCED
    assert judged["measured"] == pytest.approx(0.30)
    assert "between 0.25 and 0.35" in judged["why"]


def test_an_interval_outside_the_region_does_not() -> None:
    judged = judge(SAVES, [0.10, 0.11, 0.09])
    assert judged["verdict"] == Verdict.OUTSIDE
    assert "does not lie between 0.25 and 0.35" in judged["why"]


def test_an_interval_that_crosses_the_border_is_undecided() -> None:
    judged = judge(SAVES, [0.24, 0.36, 0.30])
    assert judged["measured"] == pytest.approx(0.30), "the mean alone would have said yes"
    assert judged["verdict"] == Verdict.UNDECIDED
    assert "lies only partly between 0.25 and 0.35" in judged["why"]


def test_one_seed_gives_no_interval_and_no_verdict() -> None:
    judged = judge(SAVES, [0.30])
    assert (judged["verdict"], judged["interval"]) == (Verdict.TOO_SMALL, None)
    assert judged["measured"] == 0.30


def test_a_run_too_small_gives_its_figures_and_no_verdict() -> None:
    judged = judge(SAVES, [0.30, 0.31], "8 weeks are too short")
    assert judged["verdict"] == Verdict.TOO_SMALL
    assert judged["why"] == "8 weeks are too short"
    assert judged["interval"] is not None


def test_what_nothing_of_ours_can_confirm_is_never_judged() -> None:
    claim = Claim("121 MWh", "7", "121", "MWh", incomparable="another campus")
    judged = judge(claim, [121.0, 121.1, 121.2])
    assert (judged["verdict"], judged["why"]) == (NOT_COMPARABLE, "another campus")


def test_years_that_could_not_be_measured_do_not_count() -> None:
    assert judge(SAVES, [0.30, nan, 0.31, 0.30])["verdict"] == Verdict.REPRODUCED
    judged = judge(SAVES, [nan, nan])
    assert (judged["verdict"], judged["measured"]) == (Verdict.TOO_SMALL, None)
    assert "nothing was measured" in judged["why"]


@pytest.mark.parametrize(
    ("interval", "region", "measured_n", "verdict"),
    [
        ((0.28, 0.32), (0.25, 0.35), 4, Verdict.REPRODUCED),
        ((0.10, 0.20), (0.25, 0.35), 4, Verdict.OUTSIDE),
        ((0.36, 0.40), (0.25, 0.35), 4, Verdict.OUTSIDE),
        ((0.20, 0.30), (0.25, 0.35), 4, Verdict.UNDECIDED),
        ((0.20, 0.40), (0.25, 0.35), 4, Verdict.UNDECIDED),
        ((0.36, 0.40), (0.25, None), 4, Verdict.REPRODUCED),  # exceeded
        ((0.25, 0.30), (0.25, None), 4, Verdict.UNDECIDED),  # its end is not in the region
        ((0.20, 0.25), (0.25, None), 4, Verdict.OUTSIDE),
        ((-0.1, 0.2), (None, None), 4, Verdict.REPRODUCED),
        ((0.28, 0.32), (0.25, 0.35), 1, Verdict.TOO_SMALL),
        (None, (0.25, 0.35), 4, Verdict.TOO_SMALL),
    ],
)
def test_the_four_verdicts_by_hand(
    interval: tuple[float, float] | None,
    region: tuple[float | None, float | None],
    measured_n: int,
    verdict: Verdict,
) -> None:
    assert verdict_of(interval, region, measured_n) is verdict


def test_with_fewer_blocks_than_asked_for_there_is_no_verdict() -> None:
    assert verdict_of((0.1, 0.2), (0.0, None), 9, fewest=10) is Verdict.TOO_SMALL
    assert verdict_of((0.1, 0.2), (0.0, None), 10, fewest=10) is Verdict.REPRODUCED


def test_it_is_said_how_many_claims_were_tried() -> None:
    claims = [
        judge(SAVES, [0.30, 0.31, 0.29, 0.30]),
        judge(SAVES, [0.10, 0.11, 0.09]),
        judge(SAVES, [0.24, 0.36, 0.30]),
        judge(SAVES, [0.24, 0.37, 0.30]),
        judge(SAVES, [0.30]),
        judge(Claim("121 MWh", "7", "121", "MWh", incomparable="another campus"), [121.0, 121.1]),
    ]
    found = counted(claims)
    assert found == {
        "tried": 5, "reproduced": 1, "outside": 1, "undecided": 2, "too small": 1,
        "not comparable": 1,
    }  # fmt: skip
    assert in_words(found) == (
        "5 claims tried: 1 reproduced, 1 outside, 2 undecided, 1 too small; 1 not comparable"
    )


def test_every_verdict_is_explained_in_a_sentence_of_its_own() -> None:
    sentences = {verdict.sentence for verdict in Verdict}
    assert len(sentences) == len(Verdict) == 4
    assert all(verdict in rule() for verdict in Verdict)


def test_one_sided_regions_have_one_border() -> None:
    less = Claim("less", "1", "less", "ratio", high=1.0)
    more = Claim("more", "1", "more", "ratio", low=1.0)
    assert judge(less, [0.5, 0.6, 0.55])["verdict"] == Verdict.REPRODUCED
    assert judge(more, [0.5, 0.6, 0.55])["verdict"] == Verdict.OUTSIDE
    assert (region(less.low, less.high), region(more.low, more.high)) == ("below 1", "above 1")
    assert judge(less, [1.0, 1.0])["expected"] == [None, 1.0]


def test_what_is_just_equal_is_not_less() -> None:
    less = Claim("less", "1", "less", "ratio", high=1.0)
    assert judge(less, [1.0, 1.0, 1.0])["verdict"] == Verdict.OUTSIDE


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
    assert found["verdict"] == Verdict.REPRODUCED
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
