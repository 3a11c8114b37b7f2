"""Survival's prices, predictions and fault rates, against examples worked out by hand.

One group of machines of 100 W. Good jobs are between 60 and 84.85 s long (the second bin), all
equally likely, bad ones are removed between 240 and 339.4 s from now (the sixth): means 72.426 s
and 289.706 s. The owner's hazard is 0 and a reboot cuts runs off, so each chance is a piece of a
straight line.
"""

from math import sqrt

import numpy as np
import pytest

from outrider_policies.survival.hosts import MEMORY_H, Faults
from outrider_policies.survival.job_length import BINS, EDGES_S, Lengths
from outrider_policies.survival.prices import Prices, group

WATTS = 100.0
DELAY_WH = 7.0
SECOND, SIXTH = 1, 5
GOOD_MEAN_S = (60.0 + 60.0 * sqrt(2.0)) / 2.0
BAD_MEAN_S = (240.0 + 240.0 * sqrt(2.0)) / 2.0
HOUR_S = 3600.0
NO_OWNER = 0.0


def prices(
    reboot_s: float, odds: float = 0.0, hazard: float = NO_OWNER, frailty: float = 1.0
) -> Prices:
    """Prices for jobs of any key on one group of one machine."""
    good, bad = np.zeros((BINS, BINS)), np.zeros((BINS, BINS))
    good[:, SECOND] = bad[:, SIXTH] = 1.0
    lengths = Lengths(good, bad, np.full((BINS, BINS), odds), GOOD_MEAN_S)
    one = group(np.array([0]), np.array([0]), np.array([frailty]))
    levels = np.full((1, 168), hazard)
    regime = np.ones(1)
    return Prices(one, np.array([WATTS]), lengths, levels, regime, 5.5, reboot_s / HOUR_S, DELAY_WH)


def test_the_bins_are_those_of_the_examples() -> None:
    assert [EDGES_S[SECOND], EDGES_S[SECOND + 1]] == pytest.approx([60.0, 60.0 * sqrt(2.0)])
    assert [EDGES_S[SIXTH], EDGES_S[SIXTH + 1]] == pytest.approx([240.0, 240.0 * sqrt(2.0)])


def test_where_nothing_interrupts_a_completion_costs_one_run() -> None:
    made = prices(reboot_s=30 * 86_400.0)
    assert made.of(0) == pytest.approx([WATTS * GOOD_MEAN_S / HOUR_S])
    assert made.predict(0, 0) == pytest.approx((0.0, GOOD_MEAN_S))
    assert made.good_ratio(0) == 1.0


def test_a_bad_job_costs_its_odds_times_the_time_until_it_is_removed() -> None:
    made = prices(reboot_s=30 * 86_400.0, odds=0.25)
    assert made.of(0) == pytest.approx([WATTS * (GOOD_MEAN_S + 0.25 * BAD_MEAN_S) / HOUR_S])
    assert made.good_ratio(0) == pytest.approx(0.8)
    assert made.predict(0, 0)[0] == pytest.approx(0.0), "a bad one is removed, not evicted"


def test_a_reboot_within_the_lengths_cuts_off_those_that_are_longer() -> None:
    """Check at 70 s: 10 of the 24.853 s in which good jobs end are before it."""
    made = prices(reboot_s=70.0, odds=0.25)
    completes = 10.0 / (60.0 * (sqrt(2.0) - 1.0))
    # a good run ends within the bin, on average in the middle of what is left of it; a bad one
    # is never removed in time and is cut off at 70 s
    good_run_s, bad_run_s = (60.0 + 70.0) / 2.0, 70.0
    expected = WATTS * (good_run_s + 0.25 * bad_run_s) / completes / HOUR_S
    expected += DELAY_WH * (1.0 / completes - 1.0)
    assert made.of(0) == pytest.approx([expected])
    evicted, _ = made.predict(0, 0)
    assert evicted == pytest.approx(1.0 - 0.8 * completes)
    assert made.completes_ratio(0, 0) == pytest.approx(completes)


@pytest.mark.parametrize("frailty", [1.0, 3.0])
def test_an_owner_interrupts_by_the_hazard_and_the_machine_s_frailty(frailty: float) -> None:
    hazard = 6.0  # log-ins an hour
    made = prices(reboot_s=30 * 86_400.0, hazard=hazard, frailty=frailty)
    a, b = (np.exp(-hazard * frailty * EDGES_S[at] / HOUR_S) for at in (SECOND, SECOND + 1))
    assert made.completes_ratio(0, 0) == pytest.approx((a + b) / 2.0)
    assert made.predict(0, 0)[0] == pytest.approx(1.0 - (a + b) / 2.0)


def test_the_bound_is_never_above_a_price_and_the_offer_ranks_by_price() -> None:
    for odds in (0.0, 0.5, 20.0):
        made = prices(reboot_s=300.0, odds=odds)
        assert made.bound_wh(0) <= made.of(0).min() + 1e-12
        ranked, at = made.offer(0).ranked
        assert ranked == pytest.approx(made.of(0).tolist())
        assert at == [0]


def test_machines_are_grouped_by_cluster_and_like_frailty_the_least_frail_first() -> None:
    """Machine 5 has left; the steps between groups are at 0.35, 0.6, 1, 1.7 and 4."""
    frailties = np.array([3.0, 0.9, 0.2, 2.0, 0.7, 1.0, 5.0])
    groups = group(np.array([0, 1, 2, 3, 4, 6]), np.array([0, 0, 0, 0, 2, 2]), frailties)
    assert groups.machines == [[2], [1], [3, 0], [4], [6]]
    assert groups.clusters == groups.cluster.tolist() == [0, 0, 0, 2, 2]
    assert groups.frailty == pytest.approx([0.2, 0.9, 2.5, 0.7, 5.0])
    assert (groups.populated, groups.first_groups.tolist()) == ([0, 2], [0, 3])
    assert groups.of_machine == [2, 1, 0, 2, 3, -1, 4]


def test_three_faults_in_an_hour_of_work_are_a_rate_of_one_and_a_half() -> None:
    """Two hours in all: the one that every machine is given, and the one that it worked."""
    faults = Faults()
    faults.grow(2)
    for _ in range(3):
        faults.end_run(1, 1.0 / 3.0, faulty=True)
    faults.end_run(0, 1.0, faulty=False)
    assert faults.rates() == pytest.approx([0.0, 1.5])


def test_faults_fade_within_days_and_are_kept_by_a_snapshot() -> None:
    faults, again = Faults(), Faults()
    faults.grow(1)
    faults.end_run(0, 0.0, faulty=True)
    for _ in range(int(MEMORY_H)):
        faults.fade()
    assert faults.rates() == pytest.approx([np.exp(-1.0)])
    again.restore(faults.save())
    again.grow(2)
    assert again.rates() == pytest.approx([np.exp(-1.0), 0.0])
