"""Blocks are as long as the waits' autocorrelation and the mean wait ask for."""

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from outrider_lab.comparison.difference import BETTER, TOO_SMALL, WORSE, Differences, Stretches
from outrider_lab.reporting.bootstrap import block_of_waits, politis_white
from outrider_lab.reporting.claims import FEWEST_BLOCKS

Floats = NDArray[np.float64]

GAP_S = 60.0
JOBS = 600
TRIALS = 500
MOST_WRONG = 0.06
POLICIES = ("ours", "theirs")
HALF_AND_HALF = [0.0] * 5 + [1.0] * 5


def arriving(n: int) -> Floats:
    """Submissions a gap apart."""
    return np.arange(n, dtype=np.float64) * GAP_S


def remembering(phi: float, n: int, seed: int) -> Floats:
    """A first-order autoregression of unit innovations, its beginning cut off."""
    noise = np.random.default_rng(seed).normal(size=n + 500)
    series = np.zeros_like(noise)
    for k in range(1, len(noise)):
        series[k] = phi * series[k - 1] + noise[k]
    return series[500:]


# -- the length ---------------------------------------------------------------------------------


def test_the_length_by_hand() -> None:
    """Five zeros, five ones.

    Covariances at lags 0 to 5: .25, .175, .1, .025, -.05, -.125. Weights at 1 to 5: 1, 1, .8, .4,
    0. Slope 2 (.175 + 2 x .1 + 3 x .02 - 4 x .02) = .71, spectrum .25 + 2 (.175 + .1 + .02 - .02)
    = .8. Length (2 x .71^2 / (4/3 x .8^2))^(1/3) x 10^(1/3) = 1.0572 x 2.1544.
    """
    assert politis_white(HALF_AND_HALF) == pytest.approx(2.2776, abs=1e-3)


def test_half_as_long_again_in_whole_gaps_between_arrivals() -> None:
    arrivals = arriving(10)
    assert block_of_waits(arrivals, HALF_AND_HALF) == 4 * GAP_S  # 1.5 x 2.28 = 3.42 gaps


def test_never_below_the_mean_wait() -> None:
    arrivals = arriving(10)
    assert block_of_waits(arrivals, 1000.0 * np.array(HALF_AND_HALF)) == 500.0
    given = Stretches(arrivals, np.full((10, 2), [30.0, 200.0]), block_s=100.0)
    assert given.block_s(0, 0) == 100.0
    assert given.block_s(0, 1) == given.block_s(1, 0) == 200.0, "nor where somebody chose"


def test_waits_are_taken_in_order_of_arrival() -> None:
    arrivals = arriving(200)
    waits = np.exp(remembering(0.9, 200, seed=1))
    mixed = np.random.default_rng(2).permutation(200)
    assert block_of_waits(arrivals[mixed], waits[mixed]) == block_of_waits(arrivals, waits)
    assert block_of_waits(arrivals, waits[mixed]) < block_of_waits(arrivals, waits)


def test_the_more_the_queue_remembers_the_longer() -> None:
    lengths = [politis_white(remembering(phi, 2000, seed=3)) for phi in (0.0, 0.5, 0.9, 0.98)]
    assert lengths == sorted(lengths)
    assert lengths[0] < 5
    assert lengths[-1] > 10 * lengths[0]


def test_a_queue_that_never_forgets_leaves_too_few_blocks_for_a_verdict() -> None:
    trend = np.arange(400.0)
    values = np.stack([trend, trend + 5.0], axis=1)
    found = Differences(POLICIES, values, Stretches(arriving(400), values))
    less = found.between("ours", "theirs")
    assert less["blocks"] < FEWEST_BLOCKS
    assert (less["verdict"], less["interval"]) == (TOO_SMALL, None)


def test_what_has_no_length_of_its_own() -> None:
    assert politis_white([5.0] * 50) == 1.0, "all alike"
    assert politis_white([1.0, 2.0, 3.0]) == 3.0, "too few to tell: one block"
    assert politis_white([0.0, 1.0] * 50) == 1.0, "neighbours make up for each other"
    assert block_of_waits([7.0], [0.0]) == 1.0
    assert block_of_waits([7.0] * 20, np.arange(20.0)) == pytest.approx(9.5), "all at once"


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        politis_white([1.0, np.nan, *range(20)])
    with pytest.raises(ValueError, match="2 waits of 3 jobs"):
        block_of_waits([0.0, 1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="0 waits of 0 jobs"):
        block_of_waits([], [])


@pytest.mark.parametrize(("blocks_n", "judged"), [(9, False), (10, True)])
def test_below_ten_blocks_there_is_no_verdict(blocks_n: int, judged: bool) -> None:
    waits = np.random.default_rng(5).random((blocks_n * 20, 2)) + np.array([0.0, 50.0])
    arrivals = arriving(len(waits))
    found = Differences(POLICIES, waits, Stretches(arrivals, waits, block_s=20 * GAP_S))
    less = found.between("ours", "theirs")
    assert less["blocks"] == blocks_n
    assert less["block_s"] == 20 * GAP_S
    assert less["verdict"] == (BETTER if judged else TOO_SMALL)


# -- how often equals are called different ------------------------------------------------------


def equals(mean_wait_s: float, trial: int) -> Floats:
    """Waits of two policies that are equally good, and white: no job's has to do with another's."""
    return np.random.default_rng([19, trial]).exponential(mean_wait_s, (JOBS, 2))


def wrong_ratio(mean_wait_s: float, block_s: float | None) -> tuple[float, Counter[float]]:
    """Return how many of the trials call equals different, and how long blocks were, how often."""
    arrivals = arriving(JOBS)
    wrong, lengths = 0, Counter[float]()
    for trial in range(TRIALS):
        waits = equals(mean_wait_s, trial)
        found = Differences(POLICIES, waits, Stretches(arrivals, waits, block_s), trial)
        less = found.between("ours", "theirs")
        assert less["verdict"] != TOO_SMALL
        wrong += less["verdict"] in (BETTER, WORSE)
        lengths[less["block_s"]] += 1
    return wrong / TRIALS, lengths


@pytest.mark.slow
@pytest.mark.timeout(900)  # a busy machine takes its time
def test_equals_are_called_different_in_at_most_6_of_100_trials() -> None:
    """White waits, shorter than a gap: 500 trials, each at the length that it chose."""
    wrong, lengths = wrong_ratio(1.0, None)
    assert wrong <= MOST_WRONG
    assert len(lengths) > 1


@pytest.mark.long
@pytest.mark.timeout(900)
def test_so_they_are_at_every_length_that_was_chosen() -> None:
    _, lengths = wrong_ratio(1.0, None)
    for block_s in lengths:
        found, _ = wrong_ratio(1.0, block_s)
        assert found <= MOST_WRONG, f"{block_s:g} s: {found:.1%}"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("gaps", [5, 20, 50])
def test_so_they_are_where_the_mean_wait_makes_blocks_longer(gaps: int) -> None:
    wrong, lengths = wrong_ratio(gaps * GAP_S, None)
    assert wrong <= MOST_WRONG
    assert max(lengths) > gaps * GAP_S
