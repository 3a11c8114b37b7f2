"""Rows and verdicts from invented runs."""

from typing import Any

import pytest

from outrider_lab.papers.perez.grid import (
    COMPARED,
    ESTIMATES,
    FIFO,
    FULL,
    LITERAL,
    QUICK,
    ROWS,
    SARSA,
    SJF,
    TARGETS,
    UNTRAINED,
    WINDOW,
    points,
)
from outrider_lab.papers.perez.reproduction import Reproduction
from outrider_lab.reporting.claims import NOT_COMPARABLE, Verdict
from outrider_lab.running.run_all import specs_of
from tests.lab import made_up_perez as made_up

SEEDS = range(1, 6)
ROW_FIELDS = {
    "row", "targets", "policy", "preset", "estimates", "seeds", "interactive_wait_s",
    "batch_wait_s", "overhead_le_1_ratio", "fairness", "fairness_worst", "collapsed", "decision_s",
}  # fmt: skip
PLAIN = {"row": "0.2", "targets": "feasible", "estimates": "exact"}


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """The reproduction in a world in which the paper is right."""
    return made_up.summed_up(FULL, SEEDS, (), made_up.results(made_up.as_the_paper), [])


def test_the_output_has_the_fields_of_the_format(result: dict[str, Any]) -> None:
    assert set(result) >= {"paper", "settings", "rows", "claims"}
    assert result["paper"] == "perez"
    assert all(set(row) >= ROW_FIELDS for row in result["rows"])
    assert {"mean", "std", "max", "worst"} <= set(result["rows"][0]["interactive_wait_s"])
    assert {"p50", "p99"} == set(result["rows"][0]["decision_s"])
    fields = {"claim", "where", "paper", "measured", "interval", "verdict", "why"}
    assert all(set(claim) >= fields for claim in result["claims"])


def test_every_policy_has_a_row_for_each_row_target_and_estimate(result: dict[str, Any]) -> None:
    for row in ROWS:
        for targets in TARGETS:
            for estimates in ESTIMATES:
                for variant in COMPARED:
                    made_up.row_of(
                        result, row=row, targets=targets, estimates=estimates, variant=str(variant)
                    )
    assert made_up.row_of(result, row=WINDOW, variant="sdj")["refused_ratio"] == 0.4
    assert made_up.row_of(result, **PLAIN, variant=str(UNTRAINED))["preset"] is None


def test_figures_are_means_over_the_seeds_with_se_and_worst(result: dict[str, Any]) -> None:
    row = made_up.row_of(result, **PLAIN, variant="sarsa")
    waits = row["interactive_wait_s"]
    assert row["seeds"] == 5
    assert waits["mean"] == pytest.approx(100 * 1.0006)
    assert waits["worst"] == pytest.approx(100 * 1.001)
    assert waits["se"] == pytest.approx(100 * 2e-4 * 0.5**0.5)
    assert waits["max"] == pytest.approx(975 * 1.0006)
    assert row["interactive_wait_s_se"]["max"] == pytest.approx(975 * 2e-4 * 0.5**0.5)
    assert row["interactive_wait_s_worst"]["max"] == pytest.approx(975 * 1.001)
    assert row["fairness_worst"] == pytest.approx(0.968 * 1.0002), "of fairness, the least"


def test_gains_are_ratios_of_means_and_fifo_is_not_held_against_itself(
    result: dict[str, Any],
) -> None:
    row = made_up.row_of(result, **PLAIN, variant="sarsa")
    gain = row["gain_over_fifo"]
    assert gain["ratio"] == pytest.approx(9.23)
    assert gain["interval"].low <= gain["ratio"] <= gain["interval"].high
    assert row["batch_over_fifo"]["ratio"] == pytest.approx(90 / 825)
    assert row["batch_max_over_fifo"]["ratio"] == pytest.approx(1040 / 2383)
    fifo = made_up.row_of(result, **PLAIN, variant="fifo")
    assert (fifo["collapsed"], fifo["gain_over_fifo"], fifo["batch_over_fifo"]) == (None,) * 3


def test_a_run_as_slow_as_fifo_has_collapsed_and_shows_as_the_worst() -> None:
    runs = made_up.results(made_up.as_the_paper)
    plain = [t for t in runs if t.seed == 3 and str(t.situation) == "row 0.2, feasible, exact"]
    (bad,) = (spec for spec in plain if spec.policy == SARSA)
    (fifo,) = (spec for spec in plain if spec.policy == FIFO)
    runs[bad] = runs[fifo]
    row = made_up.row_of(made_up.summed_up(FULL, SEEDS, (), runs, []), **PLAIN, variant="sarsa")
    assert row["collapsed"] == 1
    assert row["interactive_wait_s"]["worst"] == pytest.approx(923 * 1.0006)
    assert row["gain_over_fifo"]["worst"] == pytest.approx(1.0)
    assert row["gain_over_fifo"]["interval"].low < 4 < row["gain_over_fifo"]["interval"].high


def test_where_the_paper_is_right_every_comparable_claim_is_reproduced(
    result: dict[str, Any],
) -> None:
    claims = result["claims"]
    assert [
        c["claim"]
        for c in claims
        if c["verdict"]
        not in (
            Verdict.REPRODUCED,
            NOT_COMPARABLE,
        )
    ] == []
    not_comparable = {c["claim"] for c in claims if c["verdict"] == NOT_COMPARABLE}
    assert not_comparable == {c["claim"] for c in claims if c["expected"] is None}
    assert len(not_comparable) == 16
    assert len(claims) == len({c["claim"] for c in claims}), "each is told once"


def test_misprints_are_named_and_confirm_nothing(result: dict[str, Any]) -> None:
    whys = [c["why"] for c in result["claims"] if "misprint" in c["why"]]
    assert len(whys) == 4
    for meant in ("45.4", "34.3", "0.15", "2^(1/beta)"):
        assert any(meant in why for why in whys), meant


def test_where_nothing_helps_no_gain_is_reproduced() -> None:
    runs = made_up.results(made_up.nothing_helps)
    claims = made_up.summed_up(FULL, SEEDS, (), runs)["claims"]
    reproduced = {claim["claim"] for claim in claims if claim["verdict"] == Verdict.REPRODUCED}
    gains = (
        "divided",
        "improves",
        "reduced",
        "outperforms",
        "halves",
        "lowers",
        "better",
        "nine in ten",
    )
    assert not [c for c in reproduced if any(word in c for word in gains) and "accepted" not in c]
    assert "at second 50,000 the fairness is above 94 % (as printed)" in reproduced
    conserved = [c for c in claims if "conserved" in c["why"]]
    assert {c["verdict"] for c in conserved} == {Verdict.OUTSIDE}
    assert len(conserved) == 6


def test_a_quick_run_measures_and_decides_nothing() -> None:
    runs = made_up.results(made_up.as_the_paper, range(1, 3), QUICK)
    quick = made_up.summed_up(QUICK, range(1, 3), (), runs, [])
    assert quick["settings"]["quick"] is True
    assert {claim["verdict"] for claim in quick["claims"]} == {NOT_COMPARABLE, Verdict.TOO_SMALL}
    assert sum(claim["measured"] is not None for claim in quick["claims"]) > 40


def test_a_run_that_failed_leaves_its_row_the_other_seeds() -> None:
    runs = made_up.results(made_up.as_the_paper)
    gone = [run for run in runs if run.policy == LITERAL and run.seed == 2]
    for run in gone:
        del runs[run]
    failed = [{"run": str(run), "error": "no"} for run in gone]
    found = made_up.summed_up(FULL, SEEDS, (), runs, failed)
    assert made_up.row_of(found, **PLAIN, variant="sarsa literal")["seeds"] == 4
    assert made_up.row_of(found, **PLAIN, variant="sarsa")["seeds"] == 5
    assert len(found["failed"]) == len(gone) == 19


def test_claims_about_a_policy_that_always_failed_are_not_judged() -> None:
    runs = {t: r for t, r in made_up.results(made_up.as_the_paper).items() if t.policy != SJF}
    found = made_up.summed_up(FULL, SEEDS, (), runs, [])
    about = [claim for claim in found["claims"] if "shortest job first" in claim["claim"]]
    assert len(about) == 2
    assert {(c["verdict"], c["measured"]) for c in about} == {(Verdict.TOO_SMALL, None)}
    assert all("failed" in claim["why"] for claim in about)


def test_traces_of_the_user_take_the_place_of_the_windows_and_run_once() -> None:
    traces = ("a.swf", "b.swf", "c.swf")
    planned = points(FULL, SEEDS, traces)
    of_files = [(row, seed) for row, seed in planned if row.situation.trace]
    assert {seed for _, seed in of_files} == {1}
    assert len(of_files) == len(traces) * len(COMPARED)
    windows = [row.situation for row, _ in planned if row.situation.row == WINDOW]
    assert all(situation.trace for situation in windows)
    runs = made_up.results(made_up.as_the_paper, SEEDS, FULL, traces)
    found = made_up.summed_up(FULL, SEEDS, traces, runs, [])
    assert made_up.row_of(found, row=WINDOW, trace="b.swf", variant="sarsa")["targets"] == "equal"
    (claim,) = (c for c in found["claims"] if c["claim"] == "RL lowers the batch waits too")
    assert claim["verdict"] == Verdict.REPRODUCED
    assert "over 3 seeds" in claim["why"]


def test_the_plan_has_every_run_once() -> None:
    specs = specs_of(Reproduction(FULL, SEEDS))
    assert len(specs) == len({spec.key for spec in specs}) == len({str(spec) for spec in specs})
    calibrations = 4
    assert len(specs) - calibrations == 5 * (3 * 2 * 3 * len(COMPARED) + 3 + len(COMPARED))
