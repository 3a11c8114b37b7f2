"""`outrider reproduce mcgough` end to end, on small campuses."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from outrider.model.errors import ConfigurationError
from outrider_lab.commands.reproduce import command
from outrider_lab.papers.mcgough.grid import FULL, QUICK, RANDOM, Size, policies
from outrider_lab.papers.mcgough.reproduction import Reproduction
from outrider_lab.reporting.claims import NOT_COMPARABLE, Verdict
from outrider_lab.running.run_all import run_study
from tests.lab import made_up

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # a busy machine takes its time

TINY = Size(
    quick=True,
    campus=(("weeks", 1.0), ("machines", 15), ("clusters", 3)),
    epsilons=(0.05, 0.1),
    sigmas=(0.8,),
    histories=(20,),
    epochs_s=(900.0,),
    epoch_epsilons=(0.1,),
)


SIZES = [
    pytest.param(
        msgspec.structs.replace(QUICK, campus=(("weeks", 1.5), ("machines", 30), ("clusters", 4))),
        id="small",
    ),
    pytest.param(QUICK, id="as the command has it", marks=pytest.mark.long),
]


@pytest.fixture(scope="module", params=SIZES)
def quick(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    """Output of a quick run, shared by all tests that read it."""
    folder = tmp_path_factory.mktemp("report") / "new"
    words = ["mcgough", "--quick", "--json", "--report", str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("outrider_lab.papers.mcgough.grid.QUICK", request.param)
        ran = CliRunner().invoke(command, words, standalone_mode=False)
    assert ran.exception is None, ran.output
    assert ran.return_value == 0, ran.stderr
    return json.loads(ran.stdout), folder


def test_a_quick_run_has_every_row_and_no_failure(
    quick: tuple[dict[str, Any], Path],
) -> None:
    result, _ = quick
    assert result["failed"] == []
    assert [row["variant"] for row in result["rows"]] == [str(v) for v in policies(QUICK)]
    assert {row["years"] for row in result["rows"]} == {2}
    for row in result["rows"]:
        assert row["total_mwh"] == pytest.approx(row["goodput_mwh"] + row["badput_mwh"])
        assert row["total_mwh"] == pytest.approx(sum(w["total_mwh"] for w in row["by_week"]))
        assert row["starts"] == pytest.approx(sum(m["starts"] for m in row["by_month"]))
        assert row["overhead_min"]["mean"] <= row["overhead_min"]["p99"]
        assert row["saving_ratio_worst"] <= row["saving_ratio"]


def test_a_quick_run_says_so_and_decides_no_claim(quick: tuple[dict[str, Any], Path]) -> None:
    result, _ = quick
    assert result["settings"]["quick"] is True
    assert result["settings"]["seeds"] == [1, 2]
    assert {claim["verdict"] for claim in result["claims"]} == {NOT_COMPARABLE, Verdict.TOO_SMALL}


def test_policies_that_do_different_things_have_different_rows(
    quick: tuple[dict[str, Any], Path],
) -> None:
    rows = {row["variant"]: row for row in quick[0]["rows"]}
    random = rows[str(RANDOM)]
    assert rows["clairvoyant"]["total_mwh"] < rows["lowest_watts"]["total_mwh"]
    assert rows["lowest_watts"]["total_mwh"] < random["total_mwh"]
    assert rows["clairvoyant"]["overhead_ratio"] < 1.0
    assert random["saving_ratio"] == 0.0


def test_the_report_is_written_with_the_same_result(quick: tuple[dict[str, Any], Path]) -> None:
    result, folder = quick
    assert json.loads((folder / "result.json").read_text()) == result
    page = (folder / "index.html").read_text()
    assert page.count("<figure>") == 16
    assert "This is a quick run" in page


def test_the_same_seeds_give_the_same_rows_with_any_number_of_processes() -> None:
    one = run_study(Reproduction(TINY, [3, 4]), 1)
    assert one == run_study(Reproduction(TINY, [3, 4]), 3)
    assert one["failed"] == []
    assert one["rows"] != run_study(Reproduction(TINY, [5, 6]), 1)["rows"]


def test_a_run_that_failed_is_named_and_the_exit_code_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def with_a_failure(study: Reproduction, *rest: Any) -> dict[str, Any]:
        years = made_up.years(made_up.as_the_paper, range(1, 3), study.size)
        failed = [{"run": "ucb, seed 1", "error": "no memory"}]
        return made_up.summed_up(study.size, study.seeds, years, failed)

    monkeypatch.setattr("outrider_lab.commands.many_runs.run_study", with_a_failure)
    ran = CliRunner().invoke(command, ["mcgough", "--quick"], standalone_mode=False)
    assert ran.return_value == 1
    assert "failed: ucb, seed 1: no memory" in ran.stderr
    assert "clairvoyant" in ran.stdout, "what did run is shown"


def test_people_are_shown_savings_overheads_and_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_the_paper(study: Reproduction, *rest: Any) -> dict[str, Any]:
        years = made_up.years(made_up.as_the_paper, range(5, 9), study.size)
        return made_up.summed_up(study.size, study.seeds, years)

    monkeypatch.setattr("outrider_lab.commands.many_runs.run_study", as_the_paper)
    ran = CliRunner().invoke(command, ["mcgough", "--seeds", "5-8"], standalone_mode=False)
    assert ran.return_value == 0
    assert "4 years, full size" in ran.stdout
    assert "28.9 %" in ran.stdout, "epsilon .1 in that world"
    assert ran.stdout.count("reproduced") > 20
    assert len(policies(FULL)) > len(policies(QUICK))


def test_seeds_that_are_no_range_are_refused() -> None:
    ran = CliRunner().invoke(command, ["mcgough", "--seeds", "4-1"], standalone_mode=False)
    assert isinstance(ran.exception, ConfigurationError)
    assert "A-B" in str(ran.exception)


def test_without_matplotlib_a_report_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("outrider_lab.reporting.drawing.find_spec", lambda name: None)
    words = ["mcgough", "--report", str(tmp_path / "report")]
    ran = CliRunner().invoke(command, words, standalone_mode=False)
    assert isinstance(ran.exception, ConfigurationError)
    assert "outrider[reports]" in str(ran.exception)
    assert not (tmp_path / "report").exists()
