"""Chances of an evicted job by completions and removals."""

import numpy as np
import pytest

from outrider_policies.survival.job_length import BINS, EDGES_S, MIDDLES_S, JobLength

HOUR_S = 3600.0


def bin_of(seconds: float) -> int:
    return int(np.searchsorted(EDGES_S, seconds, side="right")) - 1


def counted(lengths_s: list[float], ages_s: list[float], times: int = 1) -> JobLength:
    """Count so often that the priors weigh little."""
    jobs = JobLength()
    for _ in range(times):
        jobs.take(lengths_s, ages_s)
    return jobs


def test_odds_are_removals_at_a_greater_age_to_completions_of_a_greater_length() -> None:
    lengths = [0.5 * HOUR_S] * 6000 + [5 * HOUR_S] * 1000
    jobs = counted(lengths, [0.1 * HOUR_S] * 1500 + [40 * HOUR_S] * 500, 20)
    odds = jobs.estimate().odds
    fresh, lost_2h = bin_of(0.0), bin_of(2 * HOUR_S)
    young, day_old = bin_of(0.0), bin_of(24 * HOUR_S)
    assert odds[fresh, young] == pytest.approx(2000 / 7000, rel=0.01)
    assert odds[lost_2h, young] == pytest.approx(2000 / 1000, rel=0.01)
    assert odds[lost_2h, day_old] == pytest.approx(500 / 1000, rel=0.01)
    assert odds[fresh, day_old] == pytest.approx(500 / 7000, rel=0.01)


def test_a_job_is_the_likelier_bad_the_more_it_lost_and_the_likelier_good_the_older_it_is() -> None:
    rng = np.random.default_rng(3)
    jobs = counted(
        (HOUR_S * rng.lognormal(0.0, 0.7, 20_000)).tolist(),
        (HOUR_S * rng.lognormal(0.0, 2.5, 5_000)).tolist(),
    )
    odds = jobs.estimate().odds
    assert (np.diff(odds, axis=0) >= 0).all(), "falls with the longest lost run"
    assert (np.diff(odds, axis=1) <= 0).all(), "rises with the age"


@pytest.mark.parametrize("lost_h", [0.0, 1.0, 3.0])
def test_the_length_of_a_good_job_is_that_of_all_longer_ones(lost_h: float) -> None:
    rng = np.random.default_rng(4)
    lengths = HOUR_S * rng.lognormal(0.0, 0.8, 50_000)
    good = counted(lengths.tolist(), [], 20).estimate().good
    at = bin_of(lost_h * HOUR_S)
    longer = lengths[lengths >= EDGES_S[at]]
    assert good[at] @ MIDDLES_S == pytest.approx(longer.mean(), rel=0.05)  # bins are 41 % wide
    assert good[at, :at].sum() == 0.0


def test_every_distribution_sums_to_one_also_where_nothing_was_seen() -> None:
    for jobs in (JobLength(), counted([100.0] * 50, [1e9, 5.0])):
        lengths = jobs.estimate()
        assert lengths.good.sum(axis=1) == pytest.approx(np.ones(BINS))
        assert lengths.bad.sum(axis=1) == pytest.approx(np.ones(BINS))
        assert np.isfinite(lengths.odds).all()


def test_the_time_until_a_removal_is_counted_from_the_present_age() -> None:
    bad = counted([], [40 * HOUR_S] * 1000, 20).estimate().bad
    fresh, half_a_day_old = bin_of(0.0), bin_of(12 * HOUR_S)
    assert bad[fresh] @ MIDDLES_S == pytest.approx(40 * HOUR_S, rel=0.2)
    assert bad[half_a_day_old] @ MIDDLES_S == pytest.approx(28 * HOUR_S, rel=0.2)


def test_while_nothing_was_seen_jobs_are_believed_to_be_long_and_good() -> None:
    lengths = JobLength().estimate()
    assert lengths.mean_s > 24 * HOUR_S
    assert lengths.odds[0, 0] == pytest.approx(1 / 40)
    assert lengths.odds.max() < 1.0


def test_what_was_counted_fades_and_news_outweigh_it() -> None:
    jobs = counted([HOUR_S] * 1000, [])
    for _ in range(40):
        jobs.forget(0.9)
        jobs.take([4 * HOUR_S] * 25, [])
    assert jobs.completed.sum() == pytest.approx(1000 * 0.9**40 + 250 * (1 - 0.9**40))
    assert jobs.completed[bin_of(4 * HOUR_S)] > 10 * jobs.completed[bin_of(HOUR_S)]


def test_counts_of_other_bins_are_refused() -> None:
    saved = counted([100.0], [200.0]).save()
    again = JobLength()
    again.restore(saved)
    assert again.save() == saved
    saved["removed"].append(1.0)
    with pytest.raises(ValueError, match="expected 31"):
        again.restore(saved)
