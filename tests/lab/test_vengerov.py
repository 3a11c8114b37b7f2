"""`outrider reproduce vengerov`: what is run, what is measured, and what is said of it."""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from outrider.model.errors import ConfigurationError
from outrider.model.events import COMPLETED, RESIZED, RESUMED, STARTED, SUSPENDED
from outrider.model.utility import Linear
from outrider.simulation.generators.grids.workloads import vengerov_grid
from outrider_lab.commands.reproduce import command
from outrider_lab.papers.vengerov.grid import (
    CELLS,
    CONTINUOUS,
    FULL,
    QUICK,
    Scene,
    Size,
    Treatment,
    aggressive,
    beyond,
    learned,
    none,
    replan,
    treatments,
)
from outrider_lab.papers.vengerov.machine_run import (
    TRAINING_SEEDS,
    WINDOWS,
    StepRun,
    _measured,
    run_on_machine,
    spec_of,
)
from outrider_lab.papers.vengerov.page import PAGE, drawings
from outrider_lab.papers.vengerov.reproduction import Report, Reproduction
from outrider_lab.reporting.claims import NOT_COMPARABLE, Verdict

TINY = Size(True, 300, 400, (0.1, 0.2))


def made_up(factor: float) -> dict[Treatment, dict[int, Report]]:
    """Reports in which everything but best fit earns `factor` of best fit's utility."""
    reports: dict[Treatment, dict[int, Report]] = defaultdict(dict)
    for treatment in treatments(FULL):
        for seed in range(1, 13):
            worth = 100.0 + seed + (0.0 if treatment.policy == "none" else 100.0 * (factor - 1.0))
            reports[treatment][seed] = {
                "utility_k": worth, "utilisation_ratio": 0.5, "productivity": 0.3,
                "completed": 100, "by_window": [worth] * WINDOWS,
                "outputs": [0.0] * 8 if treatment.inputs == 3 else None,
            }  # fmt: skip
    return reports


def summed_up(
    seeds: Sequence[int], reports: dict[Treatment, dict[int, Report]], *failed: dict[str, str]
) -> dict[str, Any]:
    return Reproduction(FULL, seeds).sum_up(reports) | {"failed": list(failed)}


def verdicts(result: dict[str, Any]) -> dict[str, str]:
    return {claim["claim"]: claim["verdict"] for claim in result["claims"]}


def test_in_whole_steps_every_run_ends_at_a_step() -> None:
    workload = vengerov_grid(0.2, 3, length_s=500.0)
    policy = spec_of(aggressive(), TINY, 3).make_policy()
    ends = {}
    for whole in (True, False):
        run = StepRun(workload, policy, 500.0, {"batch": Linear()}, whole)
        ends[whole] = [event[0] for event in run.stream() if event[1] == COMPLETED]
        policy = spec_of(aggressive(), TINY, 3).make_policy()
    assert len(ends[True]) > 50
    assert all(end == ceil(end) for end in ends[True])
    assert any(end != ceil(end) for end in ends[False]), "shrunk runs end between steps"


def test_figures_are_those_of_equations_7_and_8() -> None:
    workload = vengerov_grid(0.1, 1, length_s=200.0)
    workload.submit_s[:2], workload.run_s[:2], workload.cpus[:2] = (0.0, 5.0), (10.0, 8.0), (6, 4)
    events = [
        (0.0, STARTED, 0, (0, 6)), (5.0, STARTED, 1, (0, 2)), (10.0, COMPLETED, 0, None),
        (10.0, RESIZED, 1, 4), (12.0, SUSPENDED, 1, None), (13.0, RESUMED, 1, (0, 4)),
        (16.5, COMPLETED, 1, None),
    ]  # fmt: skip
    figures = _measured(iter(events), workload, Linear(), 100)
    busy_s = 6 * 10 + 2 * 5 + 4 * 2 + 4 * 3.5
    worth = 6 * 10 * 1.0 + 4 * 8 * (2 - 11.5 / 8)
    assert figures["utilisation_ratio"] == pytest.approx(busy_s / 2400)
    assert figures["utility_k"] == pytest.approx(worth / 1000)
    assert figures["productivity"] == pytest.approx(worth / 2400)
    assert sum(figures["by_window"]) == pytest.approx(worth * WINDOWS / 100)


def test_no_arrivals_that_judge_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    import outrider_lab.papers.vengerov.machine_run as module

    seeds: list[int] = []

    def noted(rate: float, seed: int, **more: Any) -> Any:
        seeds.append(seed)
        return vengerov_grid(rate, seed, **more)

    monkeypatch.setattr(module, "vengerov_grid", noted)
    run_on_machine(spec_of(learned(3), TINY, 7))
    assert seeds == [7 + TRAINING_SEEDS, 7]


def test_a_run_gives_the_same_figures_again() -> None:
    spec = spec_of(learned(5, Scene(0.2, CONTINUOUS)), TINY, 2)
    assert run_on_machine(spec) == run_on_machine(spec)


@pytest.mark.parametrize("treatment", [none(), aggressive(), replan()], ids=str)
def test_who_does_not_learn_has_no_rules_to_tell(treatment: Treatment) -> None:
    assert run_on_machine(spec_of(treatment, TINY, 1))["outputs"] is None
    assert len(run_on_machine(spec_of(learned(3), TINY, 1))["outputs"]) == 8


def test_seeds_that_train_are_refused_as_judges() -> None:
    words = ["vengerov", "--quick", "--seeds", "9999-10000"]
    ran = CliRunner().invoke(command, words, standalone_mode=False)
    assert isinstance(ran.exception, ConfigurationError), ran.output
    assert f"below {TRAINING_SEEDS}" in str(ran.exception)


def test_dropping_hopeless_jobs_is_a_rule_of_the_scene() -> None:
    kept, dropped = (
        run_on_machine(spec_of(none(Scene(0.3, drop_hopeless=drop)), TINY, 1))
        for drop in (False, True)
    )
    assert dropped["utility_k"] > kept["utility_k"]


def test_the_full_size_has_every_cell_of_the_comparison() -> None:
    planned = {treatment for treatment, _ in Reproduction(FULL, [1]).points()}
    for scene in CELLS:
        assert {none(scene), aggressive(scene), learned(3, scene), learned(5, scene),
                beyond(scene), replan(scene)} <= planned  # fmt: skip
    assert len(Reproduction(FULL, [1, 2]).points()) == 2 * len(planned)
    assert FULL.train_steps == 25_000
    assert FULL.test_steps == 20_000


def test_verdicts_follow_the_figures() -> None:
    seeds = range(1, 13)
    better, worse = (verdicts(summed_up(seeds, made_up(f))) for f in (1.3, 0.9))
    claim = "beyond the paper: learned both is 1.11 of none at rate 0.1"
    assert better[claim] == Verdict.REPRODUCED
    assert worse[claim] == Verdict.OUTSIDE
    assert better["learned beats aggressive (both)"] == Verdict.OUTSIDE, "a tie is not better"
    assert better["productivity in thousands of utility units"] == NOT_COMPARABLE


def test_few_runs_decide_nothing() -> None:
    few = summed_up([1, 2], made_up(1.3))
    assert set(verdicts(few).values()) == {NOT_COMPARABLE, Verdict.TOO_SMALL}


def test_a_failed_run_is_told_and_does_not_count() -> None:
    reports = made_up(1.3)
    del reports[none()][4]
    result = summed_up(range(1, 13), reports, {"run": "none, seed 4", "error": "broke"})
    row = next(row for row in result["rows"] if row["variant"] == str(none()))
    assert row["runs"] == 11
    assert "none, seed 4" in PAGE.html(result)


def test_the_papers_figures_are_drawn_with_units_and_legends() -> None:
    figures = drawings(summed_up(range(1, 13), made_up(1.3)))
    numbers = [int(n) for f in figures for n in re.findall(r"^Figure (\d+):", f.title)]
    assert numbers == [2, 3, 4, 5]
    assert figures[-1].title == "Recovery from a bad start"
    for figure in figures:
        assert len(re.findall(r">[^<]+ \[[^\]<]+\]<", figure.svg)) >= 2, figure.title
        assert "learned both, 3 inputs" in figure.svg, figure.title


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(TINY, id="tiny"),
        pytest.param(QUICK, id="as the command has it", marks=pytest.mark.long),
    ],
)
def test_the_command_runs_whole_and_writes_its_report(
    size: Size, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outrider_lab.papers.vengerov.grid.QUICK", size)
    ran = CliRunner().invoke(
        command, ["vengerov", "--quick", "--seeds", "1-1", "--json", "--report", str(tmp_path)],
        standalone_mode=False,
    )  # fmt: skip
    assert ran.exception is None, ran.output
    assert ran.return_value == 0, ran.stderr
    result = json.loads(ran.stdout)
    assert result["settings"]["truth"] == ["estimates are the true run times (exact)"]
    assert "TRUE RUN TIMES USED" in (tmp_path / "index.html").read_text()
    told = [*result["rows"], *result["variants"]]
    assert sorted(row["variant"] for row in told) == sorted(str(v) for v in treatments(size))
    wanted = {"rate", "steps", "policy", "over", "preempt", "inputs", "drop_hopeless", "runs",
              "utility_k", "utilisation_ratio"}  # fmt: skip
    for row in told:
        assert wanted <= row.keys()
        assert 0.0 < row["utilisation_ratio"] <= 1.0
        assert np.isfinite(row["utility_k"]["mean"])
    assert (tmp_path / "index.html").read_text().count("<svg") == 5
    assert json.loads((tmp_path / "result.json").read_text()) == result
