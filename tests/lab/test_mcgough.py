"""Rows, choices and verdicts from invented runs."""

from typing import Any

import pytest

from outrider_lab.papers.mcgough.grid import (
    COMPARED,
    FULL,
    LEVELS,
    QUICK,
    RANDOM,
    paper_bandit,
    policies,
)
from outrider_lab.papers.mcgough.reproduction import Reproduction
from outrider_lab.papers.mcgough.rows import LOWEST_ENERGY, LOWEST_OVERHEAD, RANDOMS_OVERHEAD
from outrider_lab.reporting.claims import NOT_COMPARABLE, Verdict
from outrider_lab.running.run_all import specs_of
from outrider_lab.running.run_spec import PolicySpec
from outrider_lab.running.traces import GeneratedCampus
from tests.lab import made_up

ROW_FIELDS = {
    "policy", "level", "epsilon", "sigma", "reconsider_s", "years", "total_mwh", "goodput_mwh",
    "badput_mwh", "overhead_min", "saving_ratio", "overhead_ratio", "unfinished", "evictions",
    "starts", "by_month", "by_week",
}  # fmt: skip
CLAIM_FIELDS = {"claim", "where", "paper", "measured", "interval", "verdict", "why"}
SEEDS = range(1, 5)


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """The reproduction in a world in which the paper is right."""
    return made_up.summed_up(FULL, SEEDS, made_up.years(made_up.as_the_paper), [])


def row(result: dict[str, Any], variant: object) -> dict[str, Any]:
    """The row of a variant."""
    found: list[dict[str, Any]] = [r for r in result["rows"] if r["variant"] == str(variant)]
    assert len(found) == 1
    return found[0]


def test_the_output_has_the_fields_of_the_format(result: dict[str, Any]) -> None:
    assert set(result) >= {"paper", "settings", "rows", "claims"}
    assert result["paper"] == "mcgough"
    assert all(set(one) >= ROW_FIELDS for one in result["rows"])
    assert all(set(one) >= CLAIM_FIELDS for one in result["claims"])
    assert {row["variant"] for row in result["rows"]} == {str(v) for v in policies(FULL)}


def test_a_row_names_what_ran_and_a_policy_without_levels_has_none(result: dict[str, Any]) -> None:
    bandit = row(result, paper_bandit("computer", 0.05))
    assert (bandit["policy"], bandit["level"]) == ("bandit", "computer")
    assert (bandit["epsilon"], bandit["sigma"], bandit["reconsider_s"]) == (0.05, 0.8, 3600.0)
    random = row(result, RANDOM)
    assert (random["level"], random["epsilon"], random["sigma"]) == (None, None, None)


def test_figures_are_means_over_the_years_with_se_and_worst(result: dict[str, Any]) -> None:
    random = row(result, RANDOM)
    assert random["years"] == 4
    assert random["total_mwh"] == pytest.approx(121.0 * 1.0005)
    assert random["total_mwh_worst"] == pytest.approx(121.0 * 1.0008)
    assert random["total_mwh_se"] == pytest.approx(121.0 * 2e-4 * 0.6454972)
    assert random["overhead_min"]["p99"] == pytest.approx(3 * 13.5 * 1.0005)
    assert set(random["overhead_min_se"]) == set(random["overhead_min_worst"]) == {
        "mean", "p95", "p99", "max",
    }  # fmt: skip
    assert random["saving_ratio"] == pytest.approx(0.0)
    assert (random["evictions"], random["starts"]) == (80, 200)


def test_savings_are_against_random_in_the_same_year_and_the_worst_is_the_least() -> None:
    years = made_up.years(made_up.as_the_paper)
    bandit = paper_bandit()
    years[1][bandit]["energy_wh"] = dict(years[1][RANDOM]["energy_wh"])
    found = row(made_up.summed_up(FULL, SEEDS, years, []), bandit)
    saving = 1 - 86.0 / 121.0
    assert found["saving_ratio"] == pytest.approx(saving * 3 / 4)
    assert found["saving_ratio_worst"] == pytest.approx(0.0)


def test_months_are_relative_to_random_and_weeks_leave_killed_jobs_out(
    result: dict[str, Any],
) -> None:
    bandit = row(result, paper_bandit())
    assert len(bandit["by_month"]) == 12
    assert len(bandit["by_week"]) == 52
    assert bandit["by_month"][0]["energy_ratio"] == pytest.approx(86.0 / 121.0)
    assert bandit["by_month"][0]["energy_ratio_se"] == pytest.approx(0.0, abs=1e-12)
    assert bandit["by_week"][10]["evicted_ratio"] == pytest.approx(0.50)
    assert bandit["by_week"][10]["evictions"] == 70


def test_each_level_is_chosen_at_the_epsilon_that_suits_the_case(result: dict[str, Any]) -> None:
    chosen = result["settings"]["choices"]
    assert chosen[LOWEST_ENERGY]["cluster"] == 0.01
    assert chosen[LOWEST_OVERHEAD]["computer"] == 0.8
    assert chosen[RANDOMS_OVERHEAD] == {
        "computer": 0.05, "cluster": 0.05, "cluster_week": 0.05, "system": 0.8,
    }  # fmt: skip
    assert set(chosen[LOWEST_OVERHEAD]) == set(LEVELS)


def test_where_the_paper_is_right_every_comparable_claim_is_reproduced(
    result: dict[str, Any],
) -> None:
    verdicts = {one["claim"]: one["verdict"] for one in result["claims"]}
    absolute = {
        "random matching uses 121 MWh",
        "random matching has a mean overhead of 13.5 minutes",
    }
    assert {claim for claim, verdict in verdicts.items() if verdict == NOT_COMPARABLE} == absolute
    assert [claim for claim, verdict in verdicts.items() if verdict == Verdict.OUTSIDE] == []


def better_than_the_paper(policy: PolicySpec) -> made_up.Figures:
    """Return the figures of the paper, but with a third less waste for learners."""
    useful, wasted, overhead = made_up.as_the_paper(policy)
    return useful, wasted if policy == RANDOM else wasted * 2 / 3, overhead


def test_a_saving_above_the_printed_one_is_exceeded_and_reproduced() -> None:
    claims = made_up.summed_up(FULL, SEEDS, made_up.years(better_than_the_paper), [])["claims"]
    savings = {one["claim"]: one for one in claims if " saves " in one["claim"]}
    for claim, printed in (
        ("epsilon .1 saves 28 to 30 % of the energy", 0.30),
        ("epsilon .01 saves 47 to 53 %", 0.53),
        ("at random's overhead the cluster level saves 30 %", 0.30),
    ):
        assert savings[claim]["measured"] > printed + 0.05, claim
        assert savings[claim]["verdict"] == Verdict.REPRODUCED, claim


def test_the_result_counts_its_verdicts(result: dict[str, Any]) -> None:
    assert result["verdicts"] == {
        "tried": 33, "reproduced": 33, "outside": 0, "undecided": 0, "too small": 0,
        "not comparable": 2,
    }  # fmt: skip


def test_years_that_disagree_leave_claims_undecided_and_none_is_called_outside() -> None:
    """Check two years, one that saves 45 % and one that saves nothing, whose mean is inside."""
    years = made_up.years(made_up.as_the_paper, range(1, 3))
    for seed, world in ((1, better_than_the_paper), (2, made_up.nothing_helps)):
        years[seed] = made_up.years(world, range(seed, seed + 1))[seed]
    claims = made_up.summed_up(FULL, range(1, 3), years, [])["claims"]
    (claim,) = [
        one for one in claims if one["claim"] == "epsilon .1 saves 28 to 30 % of the energy"
    ]
    assert claim["verdict"] == Verdict.UNDECIDED
    assert "only partly" in claim["why"]


def test_where_nothing_helps_only_the_claims_of_no_effect_are_reproduced() -> None:
    years = made_up.years(made_up.nothing_helps, learns=False)
    claims = made_up.summed_up(FULL, SEEDS, years, [])["claims"]
    reproduced = {one["claim"] for one in claims if one["verdict"] == Verdict.REPRODUCED}
    assert reproduced == {one["claim"] for one in claims if one["expected"] == [0.95, 1.05]}
    assert len(reproduced) == 11


def test_where_everything_matters_no_claim_of_no_effect_is_reproduced() -> None:
    claims = made_up.summed_up(FULL, SEEDS, made_up.years(made_up.everything_matters), [])["claims"]
    verdicts = {one["verdict"] for one in claims if one["expected"] == [0.95, 1.05]}
    assert verdicts == {Verdict.OUTSIDE}


def test_a_quick_run_measures_and_decides_nothing() -> None:
    quick = made_up.summed_up(
        QUICK, range(1, 3), made_up.years(made_up.as_the_paper, range(1, 3), QUICK), []
    )
    assert quick["settings"]["quick"] is True
    assert {one["verdict"] for one in quick["claims"]} == {NOT_COMPARABLE, Verdict.TOO_SMALL}
    assert sum(one["measured"] is not None for one in quick["claims"]) > 20


def test_a_run_that_failed_in_one_year_leaves_its_row_the_other_years() -> None:
    years = made_up.years(made_up.as_the_paper)
    del years[2][paper_bandit()]
    found = made_up.summed_up(FULL, SEEDS, years, [{"run": "that one", "error": "no"}])
    assert row(found, paper_bandit())["years"] == 3
    assert row(found, paper_bandit(epsilon=0.2))["years"] == 4
    assert found["failed"] == [{"run": "that one", "error": "no"}]


def test_claims_about_a_run_that_failed_in_all_years_are_not_judged() -> None:
    years = made_up.years(made_up.as_the_paper)
    for year in years.values():
        for epsilon in FULL.epsilons:
            del year[paper_bandit("computer", epsilon)]
    found = made_up.summed_up(FULL, SEEDS, years, [])
    (claim,) = [one for one in found["claims"] if "computer level has the lowest" in one["claim"]]
    assert (claim["verdict"], claim["measured"]) == (Verdict.TOO_SMALL, None)
    assert "failed" in claim["why"]


def test_the_plan_has_every_policy_of_the_comparison_once_a_year() -> None:
    specs = specs_of(Reproduction(FULL, [1, 2]))
    assert len(specs) == len({spec.key for spec in specs}) == 2 * len(policies(FULL))
    for policy in (RANDOM, *COMPARED):
        assert sum(spec.policy == policy for spec in specs) == 2, policy
    assert all(isinstance(spec.trace, GeneratedCampus) for spec in specs)
    assert all(spec.trace.seed == spec.seed for spec in specs)  # type: ignore[union-attr]
