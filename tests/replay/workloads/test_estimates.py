"""Run time estimates that policies see in replays of workloads."""

import numpy as np
import pytest

from outrider.model.errors import ConfigurationError
from outrider.simulation.estimates import EstimateRule, estimate_rule, estimated
from outrider.simulation.generators.grids import perez_grid

WORKLOAD = perez_grid(0.2, 1)


def test_exact_estimates_are_the_truth() -> None:
    assert estimated(WORKLOAD, estimate_rule("exact"), 0).estimate_s.tolist() == (
        WORKLOAD.run_s.tolist()
    )


@pytest.mark.parametrize("rule", ["requested", "learned"])
def test_what_users_asked_for_is_told_and_nothing_where_they_did_not(rule: str) -> None:
    workload = perez_grid(0.2, 1, jobs=3)
    workload.requested_s[:] = [60.0, np.nan, 7200.0]
    estimates = estimated(workload, estimate_rule(rule), 0)
    assert [estimates.spec(job).estimate_s for job in range(3)] == [60.0, None, 7200.0]


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_lognormal_estimates_are_off_by_a_factor_of_that_spread(sigma: float) -> None:
    estimates = estimated(WORKLOAD, estimate_rule(f"lognormal:{sigma}"), 3)
    error = np.log(estimates.estimate_s / WORKLOAD.run_s)
    assert error.mean() == pytest.approx(0.0, abs=4 * sigma / np.sqrt(6000))
    assert error.std() == pytest.approx(sigma, rel=0.04)
    assert abs(np.corrcoef(error, np.log(WORKLOAD.run_s))[0, 1]) < 0.06


def test_lognormal_estimates_depend_on_the_seed_alone() -> None:
    rule = EstimateRule("lognormal", 1.0)
    one, same, other = (estimated(WORKLOAD, rule, seed).estimate_s for seed in (4, 4, 5))
    assert one.tolist() == same.tolist()
    assert one.tolist() != other.tolist()


def test_no_spread_is_the_truth() -> None:
    estimates = estimated(WORKLOAD, estimate_rule("lognormal:0"), 0)
    assert estimates.estimate_s.tolist() == WORKLOAD.run_s.tolist()


def test_estimating_leaves_the_workload_as_it_was() -> None:
    before = WORKLOAD.estimate_s.copy()
    estimated(WORKLOAD, estimate_rule("lognormal:1"), 0).estimate_s[:] = 0
    estimated(WORKLOAD, estimate_rule("exact"), 0).estimate_s[:] = 0
    assert WORKLOAD.estimate_s.tolist() == before.tolist() == WORKLOAD.run_s.tolist()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("exakt", 'did you mean "exact"'),
        ("lognormal", "expected lognormal:SIGMA"),
        ("lognormal:-1", "with SIGMA from 0 to 10"),
        ("lognormal:much", "with SIGMA from 0 to 10"),
        ("lognormal:nan", "with SIGMA from 0 to 10"),
        ("exact:1", 'did you mean "exact"'),
        ("", "known: "),
    ],
)
def test_a_rule_that_is_none_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        estimate_rule(text)
    assert why in str(caught.value)
