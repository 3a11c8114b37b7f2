"""The report page: every figure drawn, with units on its axes and a legend."""

import re
from typing import Any

import msgspec
import pytest

from outrider_lab.papers.perez.grid import FULL, LITERAL, SARSA, WINDOW
from outrider_lab.papers.perez.page import PAGE, drawings
from outrider_lab.reporting.page import Drawing
from tests.lab import made_up_perez as made_up
from tests.lab.drawn import texts

PAST = {
    "trace": "site.swf", "seed": 1, "behaviour_policy": "recorded", "jobs": 3000,
    "rows": [
        {"variant": "sarsa, start calibrated", "interactive_wait_s": 31.5, "batch_wait_s": None,
         "bounded_slowdown": 1.5,
         "less_shipped": {"difference": -0.25, "interval": (-0.5, -0.125), "verdict": "better"}},
        {"variant": "fifo", "interactive_wait_s": 41.5, "batch_wait_s": None,
         "bounded_slowdown": 2.5,
         "less_shipped": {"difference": 0.75, "interval": None, "verdict": "too small"}},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """Return the result as `result.json` contains it."""
    runs = made_up.results(made_up.as_the_paper, range(1, 4))
    made = made_up.summed_up(FULL, range(1, 4), (), runs)
    made["calibration"] = [PAST]
    read: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made))
    return read


@pytest.fixture(scope="module")
def figures(result: dict[str, Any]) -> list[Drawing]:
    """The drawings of the result."""
    return list(drawings(result["rows"]))


def test_the_papers_figures_3_to_7_and_the_learning_curve_are_there(figures: list[Drawing]) -> None:
    titles = [figure.title for figure in figures]
    for row in ("0.2", "0.4", "0.5"):
        assert f"Figure 3, left: waits of interactive jobs, row {row}" in titles
        assert f"Figure 3, right: relative overhead of interactive jobs, row {row}" in titles
    starts = ("Figure 4:", "Figure 5:", "Learning curve: interactive", "Learning curve: batch",
              "Figure 6, left: waits of interactive", "Figure 6, left: waits of batch",
              "Figure 6, right:", "Figure 7:")  # fmt: skip
    for start in starts:
        assert sum(title.startswith(start) for title in titles) == 1, start
    assert len(figures) == 14


def test_every_axis_has_a_name_with_its_unit_and_every_figure_a_legend(
    figures: list[Drawing],
) -> None:
    for figure in figures:
        for axis in ("matplotlib.axis_1", "matplotlib.axis_2"):
            name = texts(figure, axis)[-1]
            assert re.search(r"\w \[[^\]]+\]$", name), f"{figure.title}: {axis} is {name!r}"
        assert len(texts(figure, "legend")) >= 2, figure.title


def test_a_learner_is_never_drawn_beside_fifo_alone(figures: list[Drawing]) -> None:
    for figure in figures:
        if figure.title.startswith(("Figure 3", "Figure 4", "Figure 5")):
            assert set(texts(figure, "legend")) >= {"fifo", "sjf", "edf", str(SARSA), str(LITERAL)}


def test_without_runs_of_a_policy_its_lines_are_missing_and_nothing_else(
    result: dict[str, Any],
) -> None:
    rows = [row for row in result["rows"] if row["variant"] != str(LITERAL)]
    rows = [row for row in rows if row["row"] in ("0.4", WINDOW)]
    found = list(drawings(rows))
    assert len(found) == 6
    assert all(str(LITERAL) not in texts(figure, "legend") for figure in found)


def test_the_page_holds_claims_figures_and_a_table_for_each_situation(
    result: dict[str, Any], figures: list[Drawing]
) -> None:
    page = PAGE._replace(drawings=lambda _: figures).html(result)
    assert page.count("<figure>") == 14
    assert page.count('class="verdict') == len(result["claims"])
    assert page.count("shares, run times") == 19, "3 rows x 2 targets x 3 estimates, the windows"
    assert "surely a misprint of 45.4 s" in page
    assert "This is a quick run" not in page
    assert "TRUE RUN TIMES USED: classes are made of true run times (truth:900)" in page


def test_calibration_stands_beside_the_shipped_start(result: dict[str, Any]) -> None:
    page = PAGE.html({**result, "rows": []})
    assert "site.swf: 3000 jobs, decided by recorded." in page
    for cell in ("31.5", "-0.25", "-0.5 to -0.125", "better", "too small"):
        assert f'<td class="figure">{cell}</td>' in page
    assert "Calibrated by the past" not in PAGE.html({**result, "rows": [], "calibration": []})


def test_runs_that_failed_are_told_on_the_page(result: dict[str, Any]) -> None:
    failed = [{"run": "sarsa, seed 4, row 0.2", "error": "no <memory>"}]
    page = PAGE.html({**result, "rows": [], "failed": failed})
    assert "Runs that failed" in page
    assert "no &lt;memory&gt;" in page
