"""`outrider reproduce perez` end to end, on small workloads."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from outrider.model.errors import ConfigurationError, OutriderError
from outrider_lab.commands.reproductions.perez import command
from outrider_lab.papers.perez.grid import COMPARED, FULL, QUICK, WINDOW, Size, points
from outrider_lab.papers.perez.reproduction import Reproduction
from outrider_lab.reporting.claims import NOT_COMPARABLE, Verdict
from outrider_lab.running.run_all import run_study
from tests.lab import made_up_perez as made_up

TINY = Size(True, 90, 10, 10, 90, ("exact",))
CLOCKED = {"decision_s", "cpu_s"}


def run(*words: str) -> Any:
    return CliRunner().invoke(command, list(words), standalone_mode=False)


def timeless(result: dict[str, Any]) -> Any:
    """Return a result without its clock times."""
    rows = [{k: v for k, v in row.items() if k not in CLOCKED} for row in result["rows"]]
    claims = [claim for claim in result["claims"] if "a decision takes" not in claim["claim"]]
    return result | {"rows": rows, "claims": claims}


def test_the_same_seeds_give_the_same_rows_with_any_number_of_processes() -> None:
    study = Reproduction(TINY, range(3, 4))
    one = run_study(study, 1)
    assert one["failed"] == []
    assert timeless(one) == timeless(run_study(study, 2))
    assert len(one["calibration"]) == 1


def test_a_file_of_the_user_is_run_and_calibrated_on(tmp_path: Path) -> None:
    lines = ["; MaxProcs: 2", "; UnixStartTime: 0"]
    lines += [
        f"{n} {40 * n} 15 {60 + 137 * (n % 9)} 1 -1 -1 1 3600 -1 1 {n % 3} {n % 2} -1 1 1 -1 -1"
        for n in range(1, 161)
    ]
    path = tmp_path / "site.swf"
    path.write_text("\n".join(lines) + "\n")
    found = run_study(Reproduction(TINY, range(1, 2), (str(path),)), 1)
    assert found["failed"] == []
    assert found["settings"]["windows"] == [str(path)]
    assert found["settings"]["class_source"] == "truth:900", "the paper's proxy, asked for by name"
    assert found["settings"]["truth"] == [
        "classes are made of true run times (truth:900)",
        "estimates are the true run times (exact)",
    ]
    assert {row["class_source"] for row in found["rows"]} == {"truth:900"}
    windows = [row for row in found["rows"] if row["row"] == WINDOW]
    assert [row["variant"] for row in windows] == [str(variant) for variant in COMPARED]
    assert {row["trace"] for row in windows} == {str(path)}
    (past,) = found["calibration"]
    assert (past["behaviour_policy"], past["jobs"]) == ("recorded", 80)


def test_a_run_that_failed_is_named_and_the_exit_code_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def with_a_failure(study: Reproduction, *rest: Any) -> dict[str, Any]:
        runs = made_up.results(made_up.as_the_paper, study.seeds, study.size)
        failed = [{"run": "sdj, seed 1", "error": "no memory"}]
        return made_up.summed_up(study.size, study.seeds, (), runs, failed)

    monkeypatch.setattr("outrider_lab.commands.many_runs.run_study", with_a_failure)
    ran = run("--quick")
    assert ran.return_value == 1, ran.output
    assert "failed: sdj, seed 1: no memory" in ran.stderr
    assert "sarsa literal" in ran.stdout, "what did run is shown"


def test_people_are_shown_waits_gains_and_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_the_paper(study: Reproduction, *rest: Any) -> dict[str, Any]:
        runs = made_up.results(made_up.as_the_paper, study.seeds, study.size)
        return made_up.summed_up(study.size, study.seeds, (), runs)

    monkeypatch.setattr("outrider_lab.commands.many_runs.run_study", as_the_paper)
    ran = run("--seeds", "5-7")
    assert ran.return_value == 0, ran.output
    assert "3 seeds, full size" in ran.stdout
    assert "TRUE RUN TIMES USED: classes are made of true run times (truth:900)" in ran.stdout
    assert "random errors (lognormal:1.0)" in ran.stdout
    assert "9.2" in ran.stdout, "the gain over FIFO at row 0.2 in that world"
    assert ran.stdout.count("reproduced") > 30


def test_what_is_wrong_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.swf"
    bad.write_text("no workload\n")
    for words, said in (
        (["--seeds", "4-1"], "A-B"),
        (["--quick", "--seeds", "9999-10000"], "below 10000"),
        (["--trace", str(bad)], "bad.swf"),
    ):
        ran = run(*words)
        assert isinstance(ran.exception, OutriderError), ran.output
        assert said in str(ran.exception)
    monkeypatch.setattr("outrider_lab.reporting.drawing.find_spec", lambda name: None)
    ran = run("--report", str(tmp_path / "report"))
    assert isinstance(ran.exception, ConfigurationError)
    assert "outrider[reports]" in str(ran.exception)
    assert not (tmp_path / "report").exists()


SIZES = [
    pytest.param(TINY, id="tiny"),
    pytest.param(QUICK, id="as the command has it", marks=pytest.mark.long),
]


@pytest.mark.slow
@pytest.mark.timeout(900)  # a busy machine takes its time
@pytest.mark.parametrize("size", SIZES)
def test_a_quick_run_has_every_row_writes_its_report_and_decides_no_claim(
    size: Size, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outrider_lab.papers.perez.grid.QUICK", size)
    folder = tmp_path / "new"
    ran = run("--quick", "--json", "--report", str(folder))
    assert ran.exception is None, ran.output
    assert ran.return_value == 0, ran.stderr
    result = json.loads(ran.stdout)
    assert result["failed"] == []
    assert len(result["rows"]) + len(result["variants"]) == len(points(size, range(1, 2)))
    assert {claim["verdict"] for claim in result["claims"]} == {NOT_COMPARABLE, Verdict.TOO_SMALL}
    assert json.loads((folder / "result.json").read_text()) == result
    page = (folder / "index.html").read_text()
    assert page.count("<figure>") == 14
    assert "This is a quick run" in page
    assert len(FULL.estimates) > len(QUICK.estimates)
