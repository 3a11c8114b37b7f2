"""`outrider replay` on workload files: the run object, its options, and what it refuses."""

import heapq
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.running import Done, outrider
from grids.files import HEADER, file_of, row
from outrider.model.utility import Linear
from outrider.virtual.swf import read_swf

JOBS = 400


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small grid that the real command made."""
    path = tmp_path_factory.mktemp("grid") / "grid.swf.gz"
    done = outrider(
        "generate", "grid", "--row", 0.4, "--jobs", JOBS, "--machines", 8, "--seed", 3,
        "--out", path,
    )  # fmt: skip
    assert done.code == 0, done
    return path


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """Four CPUs and parallel jobs; the second does not fit beside the first."""
    return file_of(
        tmp_path,
        row(1, 0, 100, 3, wait=0, group=1, time_asked=200),
        row(2, 1, 50, 4, wait=99, group=2, time_asked=60),
        row(3, 2, 30, 1, wait=0, group=1, time_asked=40),
        row(4, 3, 1000, 1, wait=200, group=2, time_asked=2000),
        row(5, 4, 0, 1, wait=0),
    )


def replay(trace: Path, *words: object) -> list[dict[str, Any]]:
    """The run objects of a replay."""
    runs: list[dict[str, Any]] = outrider("replay", trace, *words, "--json").json()["runs"]
    return runs


def fifo_waits(path: Path) -> list[float]:
    """First come, first served on one-CPU machines, by the simplest of simulations."""
    workload = read_swf(path)
    free_s = [0.0] * len(workload.machines)
    waits = []
    for submit_s, run_s in zip(workload.submit_s.tolist(), workload.run_s.tolist(), strict=True):
        start_s = max(submit_s, heapq.heappop(free_s))
        heapq.heappush(free_s, start_s + run_s)
        waits.append(start_s - submit_s)
    return waits


def test_fifo_waits_as_the_simplest_of_simulations_says(grid: Path) -> None:
    (run,) = replay(grid, "--policy", "fifo")
    waits = fifo_waits(grid)
    wait = run["wait_s"]["all"]
    assert wait["mean"] == pytest.approx(np.mean(waits))
    assert wait["max"] == pytest.approx(max(waits))
    assert wait["p95"] == pytest.approx(np.percentile(waits, 95))
    assert wait["n"] == JOBS


def test_a_run_has_the_fields_of_a_campus_and_says_what_was_in_force(grid: Path) -> None:
    (run,) = replay(grid, "--policy", "sjf", "--estimates", "lognormal:0.5")
    assert run["jobs"] == {
        "submitted": JOBS, "completed": JOBS, "removed": 0, "unfinished": 0, "skipped": {},
    }  # fmt: skip
    assert set(run["wait_s"]["by_class"]) == {"interactive", "batch"}
    assert set(run["wait_s"]["by_vo"]) == {"1", "2", "3", "4"}
    assert (run["machines"], run["cpus"], run["owner_sessions"]) == (8, 8, 0)
    assert (run["estimates"], run["backfill"]) == ("lognormal:0.5", "none")
    assert (run["interactive_below_s"], run["vo_column"]) == (900.0, "group")
    assert 0 < run["utility"]["total"] <= run["goodput_s"]
    assert run["energy_wh"]["goodput"] is None, "nobody says what the machines draw"
    assert len(run["ledger_sha256"]) == 64


def test_all_policies_of_a_run_are_told_the_same_estimates(grid: Path) -> None:
    words = ("--estimates", "lognormal:1.0", "--seed", 4)
    together = replay(grid, "--policy", "fifo", "--policy", "sjf", *words)
    (alone,) = replay(grid, "--policy", "sjf", *words)
    assert together[1]["ledger_sha256"] == alone["ledger_sha256"]


def test_estimates_change_an_order_that_asks_for_them_and_no_other(grid: Path) -> None:
    hashes = {
        (policy, rule): replay(grid, "--policy", policy, "--estimates", rule)[0]["ledger_sha256"]
        for policy in ("fifo", "sjf")
        for rule in ("exact", "lognormal:1.0")
    }
    assert hashes["fifo", "exact"] == hashes["fifo", "lognormal:1.0"]
    assert hashes["sjf", "exact"] != hashes["sjf", "lognormal:1.0"]


def test_easy_lets_short_jobs_pass_a_wide_one_and_none_does_not(desk: Path) -> None:
    waits = {
        rule: replay(desk, "--policy", "fifo", "--backfill", rule)[0]["wait_s"]["all"]
        for rule in ("none", "easy")
    }
    assert waits["none"]["mean"] == pytest.approx((0 + 99 + 148 + 147) / 4)
    assert waits["easy"]["mean"] == pytest.approx((0 + 99 + 0 + 147) / 4)


def test_recorded_is_what_the_traces_own_scheduler_did(desk: Path) -> None:
    recorded, fifo = replay(desk, "--policy", "recorded", "--policy", "fifo")
    assert (recorded["policy"], recorded["settings"]) == ("recorded", {})
    assert recorded["wait_s"]["all"]["mean"] == pytest.approx((0 + 99 + 0 + 200) / 4)
    assert recorded["jobs"]["skipped"] == {"run time <= 0": 1}
    assert fifo["wait_s"]["all"]["mean"] != recorded["wait_s"]["all"]["mean"]
    assert set(recorded) - {"overbooked"} == set(fifo)


def test_options_choose_class_vo_machines_and_shares(desk: Path) -> None:
    (run,) = replay(
        desk, "--policy", "fifo", "--interactive-below", 40, "--vo", "queue", "--machines", 9,
        "--shares", "all=1",
    )  # fmt: skip
    assert run["wait_s"]["by_class"]["interactive"]["n"] == 1
    assert set(run["wait_s"]["by_vo"]) == {"all"}
    assert run["cpus"] == 9
    assert run["wait_s"]["all"]["max"] == 0.0
    assert run["fairness"]["target"] == {"all": 1.0}


def test_the_utility_declared_for_a_class_is_the_one_that_counts(desk: Path) -> None:
    words = ("--interactive-below", 0, "--utility", "batch=linear:zero_at=3")
    (run,) = replay(desk, "--policy", "fifo", *words)
    expected = 0.0
    for wait_s, run_s, cpus in ((0, 100, 3), (99, 50, 4), (148, 30, 1), (147, 1000, 1)):
        expected += float(Linear(zero_at=3.0).unit(wait_s + run_s, run_s)) * run_s * cpus
    assert run["utility"]["total"] == pytest.approx(expected)
    assert run["utilities"] == ["batch=linear:zero_at=3"]


def test_what_was_done_to_the_trace_is_said_beside_the_result(tmp_path: Path) -> None:
    path = file_of(tmp_path, row(1, 9, 5), row(2, 3, 5), row(3, 4, 0))
    done = outrider("replay", path, "--policy", "fifo", "--json")
    assert "warning" in done.err
    assert "jobs are sorted by submission" in done.err
    assert json.loads(done.out)["runs"][0]["jobs"]["skipped"] == {"run time <= 0": 1}


def test_people_get_waits_by_class_slowdown_fairness_and_utility(grid: Path) -> None:
    done = outrider("replay", grid, "--policy", "fifo", "--policy", "sjf")
    assert done.code == 0
    for label in ("8 CPUs on 8 machines", "interactive: ran less than 900 s",
                  "wait, interactive, p95 [min]", "wait, batch, max [min]",
                  "bounded slowdown, mean", "fairness, windowed", "utility [CPU h]",
                  "ledger_sha256"):  # fmt: skip
        assert label in done.out


def test_until_gives_the_first_rows_of_the_whole_ledger(grid: Path, tmp_path: Path) -> None:
    rows = {}
    for name, words in (("whole", ()), ("part", ("--until", 20_000))):
        ledger = tmp_path / f"{name}.sqlite"
        replay(grid, "--policy", "fifo", "--ledger", ledger, *words)
        rows[name] = outrider("ledger", ledger, "--export", "jsonl").out.splitlines()
    assert 0 < len(rows["part"]) < len(rows["whole"])
    assert rows["whole"][: len(rows["part"])] == rows["part"]
    assert json.loads(rows["whole"][len(rows["part"])])["time_s"] > 20_000


REFUSED = [
    (("--policy", "fifo", "--estimates", "exakt"), 'did you mean "exact"'),
    (("--policy", "fifo", "--estimates", "lognormal"), "right would be lognormal:SIGMA"),
    (("--policy", "fifo", "--utility", "batch"), "right would be CLASS=SHAPE"),
    (("--policy", "fifo", "--utility", "batch=linea"), 'did you mean "linear"?'),
    (("--policy", "fifo", "--utility", "batch=linear:zero=2"), 'did you mean "zero_at"?'),
    (("--policy", "fifo", "--utility", "batch=linear:zero_at=1"), '"zero_at" = 1'),
    (("--policy", "fifo", "--utility", "batch=step", "--utility", "batch=soft"), "twice"),
    (("--policy", "fifo", "--shares", "1=.7,2=.4"), "sum to 1.1"),
    (("--policy", "fifo", "--machines", "3"), 'larger than the machine: "4"'),
    (("--policy", "fifo", "--machines", "0"), "--machines"),
    (("--policy", "fifo", "--backfill", "lazy"), "--backfill"),
    (("--policy", "fifo", "--vo", "site"), "--vo"),
    (("--policy", "recorded", "--set", "recorded.x=1"), "has no settings"),
    (("--policy", "fifos"), 'did you mean "fifo"?'),
]


@pytest.mark.parametrize(("words", "why"), REFUSED)
def test_what_is_wrong_is_refused_with_what_would_be_right(
    desk: Path, words: tuple[str, ...], why: str
) -> None:
    done = outrider("replay", desk, *words)
    assert (done.code, done.out) == (2, "")
    assert why in done.err


def test_a_log_whose_first_job_comes_late_counts_from_that_job(tmp_path: Path) -> None:
    path = file_of(tmp_path, row(1, 5000, 20, wait=0), row(2, 5010, 30, wait=0))
    for run in replay(path, "--policy", "fifo", "--policy", "recorded"):
        assert run["span_s"] == 40.0
        assert run["utilisation_ratio"] == pytest.approx(50 / (4 * 40))
    done = outrider("replay", path, "--policy", "fifo", "--until", 10)
    assert (done.code, done.out) == (2, "")
    assert "the first job of desk.swf comes at 5000 s" in done.err


def test_recorded_is_refused_before_a_ledger_is_begun(grid: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "none.sqlite"
    done = outrider("replay", grid, "--policy", "recorded", "--ledger", ledger)
    assert (done.code, done.out) == (2, "")
    assert "does not say how long its jobs waited" in done.err
    assert list(tmp_path.iterdir()) == []


OF_WORKLOADS = [
    ("--interactive-below", 900, "jobs of a campus have no class"),
    ("--vo", "user", "jobs.csv of a campus has a column for it"),
    ("--estimates", "exact", "nobody estimates the run times of a campus"),
    ("--backfill", "easy", "every job of a campus has one CPU"),
    ("--utility", "batch=step", "jobs of a campus have no utility"),
    ("--machines", 9, "a campus names its machines in machines.csv"),
]


@pytest.mark.parametrize(("option", "value", "why"), OF_WORKLOADS)
def test_options_that_do_not_fit_a_campus_are_refused_before_anything_runs(
    grid: Path, tmp_path: Path, option: str, value: object, why: str
) -> None:
    done: Done = outrider("replay", grid, tmp_path, "--policy", "fifo", option, value)
    assert (done.code, done.out) == (2, "")
    assert f"{option}: {why}; the option is for workload files (.swf)" in done.err


def test_a_trace_that_is_not_there_is_refused_before_the_first_is_run(grid: Path) -> None:
    done = outrider("replay", grid, "nowhere.swf", "--policy", "fifo")
    assert (done.code, done.out) == (2, "")
    assert "nowhere.swf: there is no such file or folder" in done.err


def test_a_bad_line_is_refused_or_left_out_and_counted(tmp_path: Path) -> None:
    path = file_of(tmp_path, row(1, 0, 5), row(2, "soon", 5), header=HEADER)
    refused = outrider("replay", path, "--policy", "fifo")
    assert refused.code == 2
    assert 'line 7, column "submit time": not a number: "soon"' in refused.err
    (run,) = replay(path, "--policy", "fifo", "--skip-bad")
    assert run["jobs"]["skipped"] == {"not a number": 1}
