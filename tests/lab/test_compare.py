"""`outrider compare`: figures as replay has them, pairs job by job, and verdicts with intervals."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from outrider.cli.commands.replay import command as replay_command
from outrider.formats.swf.table import write_swf
from outrider.model.errors import OutriderError, TraceError
from outrider.simulation.generators.grids.workloads import perez_grid
from outrider_lab.commands.compare import command
from outrider_lab.comparison.comparison import (
    PUBLISHED,
    Comparison,
    JobOutcomes,
    PairedJobs,
    PolicyRun,
    TraceComparison,
    over_traces,
    pair_jobs,
)
from outrider_lab.comparison.difference import (
    BETTER,
    TOO_SMALL,
    UNDECIDED,
    WORSE,
    Differences,
    Stretches,
)
from outrider_lab.comparison.watched_run import Conditions, run_watched
from outrider_lab.reporting.bootstrap import DAY_S, blocks_of_time
from outrider_lab.running.run_all import run_study
from outrider_lab.running.run_spec import PolicySpec
from tests.fixtures.workload_files import file_of, row

JOBS = 300
CLASSES = ("interactive", "batch")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Serial jobs on ten machines: half a day, and a queue."""
    path = tmp_path_factory.mktemp("compare") / "grid.swf"
    grid = perez_grid(0.4, seed=3, jobs=JOBS, machines=10, load=1.1)
    numbered = dataclasses.replace(grid, vo=[str(sorted(set(grid.vo)).index(v)) for v in grid.vo])
    write_swf(numbered, path, {"MaxProcs": "10"})
    return path


def compared(*words: object) -> dict[str, Any]:
    """Return the output of ``outrider compare --json``."""
    given = [str(word) for word in (*words, "--workers", 1, "--json")]
    ran = CliRunner().invoke(command, given, standalone_mode=False)
    assert ran.exception is None, (ran.exception, ran.output)
    result: dict[str, Any] = json.loads(ran.stdout)
    return result


@pytest.fixture(scope="module")
def result(trace: Path) -> dict[str, Any]:
    """A comparison of edf with the published baselines."""
    return compared(trace, "--policy", "edf", "--estimates", "lognormal:1.0", "--block", 3600)


# -- from the trace to the printed figures --------------------------------------------------------


def test_figures_are_those_of_replay(trace: Path, result: dict[str, Any]) -> None:
    given = [str(trace), "--estimates", "lognormal:1.0", "--json"]
    given += [word for name in ("edf", "sjf") for word in ("--policy", name)]
    ran = CliRunner().invoke(replay_command, given, standalone_mode=False)
    assert ran.exception is None, ran.output
    found = {one["policy"]: one for one in result["traces"][0]["policies"]}
    for run in json.loads(ran.stdout)["runs"]:
        one = found[run["policy"]]
        for name in ("wait_s", "bounded_slowdown", "fairness", "utility", "settings"):
            assert one[name] == run[name], name


def ran(policy: str, trace: Path) -> tuple[dict[str, Any], JobOutcomes]:
    """Return the report of a run, and the outcome of each job."""
    file = Conditions().trace(str(trace))
    result = run_watched(Conditions().spec(file, PolicySpec(policy), 0))
    classes = np.array(file.load().job_class)
    waits, slowdowns = (np.array(result[name]) for name in ("wait_s", "bounded_slowdown"))
    short = file.load().run_s < 900
    return result["report"], JobOutcomes(file.load().submit_s, classes, short, waits, slowdowns)


def test_a_jobs_figures_are_those_the_report_is_made_of(trace: Path) -> None:
    report, jobs = ran("sjf", trace)
    assert len(jobs.wait_s) == JOBS
    assert report["bounded_slowdown"]["all"]["mean"] == pytest.approx(jobs.bounded_slowdown.mean())
    assert report["bounded_slowdown"]["all"]["max"] == jobs.bounded_slowdown.max()
    for name in CLASSES:
        waits = jobs.wait_s[jobs.job_class == name]
        assert report["wait_s"]["by_class"][name]["n"] == len(waits) > 0
        assert report["wait_s"]["by_class"][name]["mean"] == pytest.approx(waits.mean())
        assert report["wait_s"]["by_class"][name]["p95"] == pytest.approx(np.percentile(waits, 95))


def test_a_jobs_slowdown_follows_from_its_wait_and_the_truth(trace: Path) -> None:
    _, jobs = ran("fifo", trace)
    run_s = Conditions().trace(str(trace)).load().run_s
    expected = np.maximum(1.0, (jobs.wait_s + run_s) / np.maximum(run_s, 10.0))
    assert jobs.bounded_slowdown == pytest.approx(expected)


def test_published_baselines_run_beside_the_policies_in_question(result: dict[str, Any]) -> None:
    (one,) = result["traces"]
    assert [policy["policy"] for policy in one["policies"]] == [*PUBLISHED, "edf"]
    means = {p["policy"]: p["bounded_slowdown"]["all"]["mean"] for p in one["policies"]}
    assert one["best_published"] == min(PUBLISHED, key=means.__getitem__)
    assert one["jobs"] == JOBS
    assert one["left_out"] == 0


def test_a_difference_is_that_of_the_means(result: dict[str, Any]) -> None:
    (one,) = result["traces"]
    found = {policy["policy"]: policy for policy in one["policies"]}
    for name in ("edf", "sjf"):
        ours, theirs, less = found[name], found["fifo"], found[name]["against_reference"]
        for mine, its, between in (
            (ours["bounded_slowdown"], theirs["bounded_slowdown"], less["bounded_slowdown"]),
            (ours["wait_s"], theirs["wait_s"], less["wait_s"]["all"]),
        ):
            assert between["difference"] == pytest.approx(mine["all"]["mean"] - its["all"]["mean"])
            assert between["interval"][0] <= between["difference"] <= between["interval"][1]
        for part in CLASSES:
            apart = ours["wait_s"]["by_class"][part]["mean"]
            apart -= theirs["wait_s"]["by_class"][part]["mean"]
            assert less["wait_s"]["by_class"][part]["difference"] == pytest.approx(apart)
    assert found["fifo"]["against_reference"] is None
    assert found[one["best_published"]]["against_best_published"] is None


def test_what_was_told_and_the_waits_by_length_are_in_document_and_tables(tmp_path: Path) -> None:
    requests = (60, 600, 3600)
    path = file_of(
        tmp_path, *(row(n, 9 * n, 40 + 7 * n, time_asked=requests[n % 3]) for n in range(1, 61))
    )
    (plain,) = compared(path, "--policy", "edf")["traces"]
    assert (plain["class_source"], plain["estimates"], plain["truth"]) == (
        "requested:900", "requested", [],
    )  # fmt: skip
    given = ("--class-by", "truth:100", "--estimates", "exact", "--interactive-below", 100)
    told = compared(path, "--policy", "edf", *given)
    (one,) = told["traces"]
    assert (one["class_source"], one["estimates"], len(one["truth"])) == ("truth:100", "exact", 2)
    assert (told["settings"]["class_by"], told["settings"]["interactive_below_s"]) == (
        "truth:100", 100.0,
    )  # fmt: skip
    edf = one["policies"][-1]
    assert edf["wait_s"]["by_length"]["short"]["n"] == 8
    assert edf["wait_s"]["by_length"]["short"] == edf["wait_s"]["by_class"]["interactive"]
    less = edf["against_reference"]["wait_s"]
    assert less["by_length"]["short"] == less["by_class"]["interactive"]
    words = [str(path), "--policy", "edf", *map(str, given), "--workers", "1"]
    table = CliRunner().invoke(command, words, standalone_mode=False)
    assert "TRUE RUN TIMES USED" in table.stdout.replace("\n", " ")
    assert "wait, ran < 100 s, mean [min]" in table.stdout


def test_two_processes_find_what_one_finds(trace: Path) -> None:
    given = (trace, "--policy", "sjf", "--seeds", "0-1", "--estimates", "lognormal:0.5")
    alone, together = compared(*given), compared(*given, "--workers", 2)
    for one in (alone, together):
        del one["date"], one["command"]
        for policy in one["traces"][0]["policies"]:
            del policy["cpu_s"]
    assert alone == together
    assert alone["traces"][0]["policies"][0]["seeds"] == [0, 1]


def test_settings_presets_and_the_baseline_reach_the_runs(trace: Path) -> None:
    result = compared(trace, "--policy", "edf", "--baseline", "sjf",
                      "--set", "edf.batch_s=1000", "--machines", 20)  # fmt: skip
    (one,) = result["traces"]
    found = {policy["policy"]: policy for policy in one["policies"]}
    assert found["edf"]["settings"]["batch_s"] == 1000.0
    assert found["edf"]["against_reference"]["policy"] == "sjf"
    assert found["fifo"]["against_reference"]["policy"] == "sjf"
    assert one["machines"] == 20


def test_people_get_tables(trace: Path, tmp_path: Path) -> None:
    other = tmp_path / "again.swf"
    other.write_bytes(trace.read_bytes())
    given = [str(trace), str(other), "--policy", "edf", "--workers", "1"]
    ran = CliRunner().invoke(command, given, standalone_mode=False)
    assert ran.exception is None, ran.output
    for words in ("bounded slowdown, mean", "wait, interactive, p95 [min]", "fairness, windowed",
                  "minus that of fifo", "the best published", "traces by verdict",
                  "blocks"):  # fmt: skip
        assert words in ran.stdout
    assert re.search(r"\d+ of [\d.]+ (s|min|h|d)\b", ran.stdout), "how many blocks, how long"


def test_that_fairness_is_degenerate_over_many_equal_targets_is_said(tmp_path: Path) -> None:
    path = tmp_path / "many.swf"
    grid = perez_grid(0.4, seed=3, jobs=60, machines=5, load=1.1)
    many = dataclasses.replace(grid, vo=[str(number % 30) for number in range(60)])
    write_swf(many, path, {"MaxProcs": "5"})
    for tell, given in ((command, ["--workers", "1"]), (replay_command, [])):
        words = [str(path), "--policy", "edf", *given]
        ran = CliRunner().invoke(tell, words, standalone_mode=False)
        assert ran.exception is None, ran.output
        assert "fairness is degenerate: 30 VOs have a target of 3.33% each" in ran.stdout
    (trace,) = compared(path, "--policy", "edf")["traces"]
    assert trace["fairness_note"].startswith("fairness is degenerate")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--policy", "sfj"), 'did you mean "sjf"'),
        (("--policy", "recorded"), "`outrider replay` reports it"),
        (("--policy", "sjf", "--policy", "sjf"), "--policy sjf: given more than once"),
        (("--policy", "edf", "--set", "edf.batch=1"), "batch"),
        (("--policy", "edf", "--set", "fifo2.x=1"), 'policy "fifo2" is not in this run'),
        (("--policy", "edf", "--estimates", "lognorm:1"), "lognormal:SIGMA"),
        (("--policy", "edf", "--shares", "a=.7,b=.7"), "sum to 1.4"),
        (("--policy", "edf", "--seeds", "3-1"), "A <= B"),
    ],
)
def test_bad_words_are_refused_before_anything_runs(
    trace: Path, given: tuple[str, ...], said: str
) -> None:
    ran = CliRunner().invoke(command, [str(trace), *given], standalone_mode=False)
    assert isinstance(ran.exception, OutriderError)
    assert said in str(ran.exception)
    assert ran.stdout == ""


def test_a_policy_that_failed_on_a_trace_is_left_out_of_it_and_the_others_are_compared(
    trace: Path,
) -> None:
    study = Comparison([str(trace)], [PolicySpec("edf")], "edf")
    whole = run_study(study, 1)
    results = {
        row: {0: study_result(study, row)} for row, _ in study.points() if row.policy != "edf"
    }
    left = study.sum_up(results)
    assert [one["policy"] for one in left["traces"][0]["policies"]] == [*PUBLISHED]
    assert all(one["against_reference"] is None for one in left["traces"][0]["policies"])
    both = {one["policy"]: one for one in whole["traces"][0]["policies"]}
    for one in left["traces"][0]["policies"]:
        assert one["wait_s"] == both[one["policy"]]["wait_s"]
    assert study.sum_up({})["traces"] == []


def study_result(study: Comparison, row: Any) -> Any:
    return run_watched(study.spec_of(row, 0))


def test_a_damaged_trace_is_refused_by_its_line(trace: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.swf"
    lines = trace.read_text().splitlines()
    lines[-1] = lines[-1].rsplit(" ", 1)[0] + " nine"
    bad.write_text("\n".join(lines))
    ran = CliRunner().invoke(command, [str(bad), "--policy", "sjf"], standalone_mode=False)
    assert isinstance(ran.exception, TraceError)
    assert f"line {len(lines)}" in str(ran.exception)


# -- differences and verdicts ---------------------------------------------------------------------


def by_day_of(blocks: NDArray[np.int64]) -> Stretches:
    """Days of jobs that hardly waited."""
    return Stretches(blocks.astype(np.float64) * DAY_S, np.zeros((len(blocks), 2)), DAY_S)


def differences(scatter: float, shift: float, days: int = 20) -> Differences:
    """Two policies on jobs whose days differ much; the second is `shift` above the first."""
    rng = np.random.default_rng(1)
    blocks = np.repeat(np.arange(days), 30)
    ours = rng.exponential(100.0, days)[blocks]
    theirs = ours + shift + rng.normal(0.0, scatter, len(ours))
    values = np.stack([ours, theirs], axis=1)
    return Differences(("ours", "theirs"), values, by_day_of(blocks))


def test_a_sure_difference_is_better_one_way_and_worse_the_other() -> None:
    found = differences(scatter=5.0, shift=3.0)
    assert found.between("ours", "theirs")["verdict"] == BETTER
    assert found.between("theirs", "ours")["verdict"] == WORSE
    low, high = found.between("theirs", "ours")["interval"]
    assert 2.0 < low < 3.0 < high < 4.0


def test_what_chance_could_have_made_is_undecided() -> None:
    assert differences(scatter=60.0, shift=0.5).between("ours", "theirs")["verdict"] == UNDECIDED


def test_a_difference_of_one_day_among_many_alike_is_not_taken_for_sure() -> None:
    """A hundred jobs of one bad day are one observation."""
    blocks = np.repeat(np.arange(20), 100)
    ours = np.where(blocks == 7, 50.0, 1.0)
    values = np.stack([ours, np.ones_like(ours)], axis=1)
    by_day = Differences(("ours", "theirs"), values, by_day_of(blocks))
    assert by_day.between("ours", "theirs")["verdict"] == UNDECIDED
    by_job = Differences(("ours", "theirs"), values, by_day_of(np.arange(len(ours))))
    assert by_job.between("ours", "theirs")["verdict"] == WORSE


def test_few_days_give_no_interval() -> None:
    found = differences(scatter=5.0, shift=30.0, days=9)
    assert found.between("ours", "theirs") == {
        "difference": pytest.approx(-30.0, abs=2.0),
        "interval": None,
        "ratio": pytest.approx(found.mean("ours") / found.mean("theirs")),
        "blocks": 9,
        "block_s": DAY_S,
        "verdict": TOO_SMALL,
    }
    assert found.log_ratios("ours", "theirs") is None


# -- pairs and traces -----------------------------------------------------------------------------


def run_of(policy: str, slowdown: list[float], seed: int = 0) -> PolicyRun:
    """A run on jobs submitted half a day apart."""
    n = len(slowdown)
    classes = np.array([CLASSES[k % 2] for k in range(n)])
    waits = np.array(slowdown) * 10.0
    jobs = JobOutcomes(
        np.arange(n) * DAY_S / 2, classes, classes == CLASSES[0], waits, np.array(slowdown)
    )
    return PolicyRun(policy, seed, {}, jobs)


def test_jobs_that_some_policy_did_not_complete_are_left_out_and_counted() -> None:
    runs = [run_of("a", [1.0, np.nan, 3.0, 4.0]), run_of("b", [2.0, 2.0, 2.0, np.nan])]
    paired = pair_jobs(runs)
    assert paired.left_out == 2
    assert paired.bounded_slowdown.tolist() == [[1.0, 2.0], [3.0, 2.0]]
    assert paired.wait_s.tolist() == [[10.0, 20.0], [30.0, 20.0]]
    assert paired.submit_s.tolist() == [0.0, DAY_S]
    assert paired.of_class("interactive").tolist() == [True, True]


def test_of_several_seeds_a_jobs_figure_is_their_mean() -> None:
    runs = [run_of("a", [1.0, 5.0], 1), run_of("b", [1.0, 1.0], 1), run_of("a", [3.0, 7.0], 2),
            run_of("b", [1.0, 1.0], 2)]  # fmt: skip
    paired = pair_jobs(runs)
    assert paired.policies == ("a", "b")
    assert paired.bounded_slowdown.tolist() == [[2.0, 1.0], [6.0, 1.0]]


def comparison(name: str, **slowdowns: float) -> TraceComparison:
    """A trace on which every job has the same figure, but for a scatter common to all policies."""
    scatter = 1.0 + np.random.default_rng(0).random(60)
    runs = [run_of(policy, (mean * scatter).tolist()) for policy, mean in slowdowns.items()]
    paired: PairedJobs = pair_jobs(runs)
    return TraceComparison(name, paired, runs, DAY_S)


def test_the_best_published_is_that_of_the_trace_and_ours_is_never_it() -> None:
    one = comparison("x", fifo=9.0, sjf=3.0, wfp3=4.0, ours=1.0)
    assert one.best_published == "sjf"
    assert one.differences("sjf", "sjf") is None
    found = one.differences("ours", one.best_published)
    assert found is not None
    assert found["bounded_slowdown"]["verdict"] == BETTER
    assert comparison("y", ours=1.0, theirs=2.0).best_published is None


def test_over_traces_verdicts_are_counted_and_ratios_multiplied() -> None:
    traces = [
        comparison("x", fifo=8.0, sjf=4.0, ours=2.0),
        comparison("y", fifo=8.0, sjf=2.0, ours=4.0),
        comparison("z", fifo=2.0, sjf=4.0, ours=2.0),
    ]
    rows = {row["policy"]: row for row in over_traces(traces, "fifo")}
    ours = rows["ours"]["against_best_published"]  # sjf, sjf, fifo
    assert (ours["better"], ours["worse"], ours["undecided"]) == (1, 1, 1)
    assert ours["not_worse_ratio"] == pytest.approx(2 / 3)
    assert ours["ratio"] == pytest.approx(1.0)
    against = rows["ours"]["against_reference"]
    assert against["traces"] == 3
    assert against["ratio"] == pytest.approx((0.25 * 0.5 * 1.0) ** (1 / 3))
    assert against["interval"][0] <= against["ratio"] <= against["interval"][1]
    assert rows["fifo"]["against_reference"] is None


def test_blocks_follow_the_submission_of_the_paired_jobs() -> None:
    one = comparison("x", fifo=2.0, ours=1.0)
    assert (
        one.slowdown.blocks_n("ours", "fifo")
        == len(set(blocks_of_time(one.jobs.submit_s).tolist()))
        == 30
    )
