"""`outrider replay` on workload files: the run object, its options, its output for people."""

import heapq
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outrider.api import RunTimeEstimate, RunTimeEstimator
from outrider.formats.swf.reading import read_swf
from outrider.model.jobs import Job, JobSpec
from outrider.model.utility import Linear
from outrider.plugins import finding as make
from tests.cli.running import outrider
from tests.fixtures.workload_files import file_of, row
from tests.replay.workloads.conftest import JOBS


def replay(trace: Path, *words: object) -> list[dict[str, Any]]:
    """Return the run objects of a replay."""
    runs: list[dict[str, Any]] = outrider("replay", trace, *words, "--json").json()["runs"]
    return runs


def exported(ledger: Path) -> list[dict[str, Any]]:
    """Return the rows of a ledger."""
    done = outrider("ledger", ledger, "--export", "jsonl")
    return [json.loads(line) for line in done.out.splitlines()]


def fifo_waits(path: Path) -> list[float]:
    """Simulate first come, first served on one-CPU machines, in the simplest way."""
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


@pytest.mark.parametrize("name", ["LCG-DE-10d-P100", "LPC-early-d149-10d-P100"])
def test_fifo_on_ten_days_of_a_real_site_waits_as_the_simplest_of_simulations_says(
    shared: Path, name: str
) -> None:
    path = shared / "data/swf/windows" / f"{name}.swf.gz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the shared folder")
    (run,) = replay(path, "--policy", "fifo")
    waits = fifo_waits(path)
    wait = run["wait_s"]["all"]
    assert wait["n"] == len(waits)
    assert wait["mean"] == pytest.approx(np.mean(waits))
    assert wait["max"] == pytest.approx(max(waits))


def test_a_run_has_the_fields_of_a_campus_and_says_what_was_in_force(grid: Path) -> None:
    (run,) = replay(grid, "--policy", "sjf", "--estimates", "lognormal:0.5")
    assert run["jobs"] == {
        "submitted": JOBS, "completed": JOBS, "removed": 0, "unfinished": 0, "impossible": 0,
        "skipped": {},
    }  # fmt: skip
    assert set(run["wait_s"]["by_class"]) == {"interactive", "batch"}
    assert set(run["wait_s"]["by_vo"]) == {"1", "2", "3", "4"}
    assert (run["machines"], run["cpus"], run["owner_sessions"]) == (8, 8, 0)
    assert (run["estimates"], run["discipline"]) == ("lognormal:0.5", "strict")
    assert (run["interactive_below_s"], run["vo_column"]) == (900.0, "group")
    assert run["class_source"] == "queue:interactive"
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
        desk, "--policy", "fifo", "--class-by", "requested:60", "--vo", "queue", "--machines", 9,
        "--shares", "all=1",
    )  # fmt: skip
    assert run["wait_s"]["by_class"]["interactive"]["n"] == 1
    assert set(run["wait_s"]["by_vo"]) == {"all"}
    assert run["cpus"] == 9
    assert run["wait_s"]["all"]["max"] == 0.0
    assert run["fairness"]["target"] == {"all": 1.0}


def test_reports_group_waits_by_true_run_time_whatever_the_class(desk: Path) -> None:
    by_length = {}
    hashes = set()
    for below_s in (60, 1001, 0):
        words = ("--class-by", "none", "--interactive-below", below_s)
        (run,) = replay(desk, "--policy", "sarsa", *words)
        by_length[below_s] = run["wait_s"]["by_length"]
        hashes.add(run["ledger_sha256"])
        assert run["interactive_below_s"] == below_s
        assert set(run["wait_s"]["by_class"]) == {"batch"}
    assert {below_s: one["short"]["n"] for below_s, one in by_length.items()} == {
        60: 2, 1001: 4, 0: 0,
    }  # fmt: skip
    assert by_length[1001]["short"] == by_length[0]["long"] == run["wait_s"]["all"]
    assert len(hashes) == 1, "no decision depends on it"


def test_jobs_that_never_start_are_counted_in_the_length_that_they_would_have(desk: Path) -> None:
    (run,) = replay(desk, "--policy", "fifo", "--until", 50, "--interactive-below", 60)
    found = {name: (one["n"], one["censored_n"]) for name, one in
             run["wait_s"]["by_length"].items()}  # fmt: skip
    assert found == {"short": (0, 2), "long": (1, 1)}
    (recorded,) = replay(desk, "--policy", "recorded", "--until", 50, "--interactive-below", 60)
    assert recorded["wait_s"]["by_length"]["short"]["n"] == 1


def test_what_users_requested_is_told_unless_the_truth_is_asked_for(desk: Path) -> None:
    (plain,) = replay(desk, "--policy", "sjf")
    (asked,) = replay(desk, "--policy", "sjf", "--estimates", "requested")
    assert (plain["estimates"], plain["class_source"]) == ("requested", "requested:900")
    assert plain["truth"] == asked["truth"] == []
    assert plain["ledger_sha256"] == asked["ledger_sha256"]


def test_a_file_without_requests_has_exact_estimates_and_says_that_they_are_the_truth(
    grid: Path,
) -> None:
    (run,) = replay(grid, "--policy", "sjf")
    assert run["estimates"] == "exact"
    assert run["truth"] == ["estimates are the true run times (exact)"]


TOLD = [
    (("--estimates", "exact"), "estimates are the true run times (exact)"),
    (("--estimates", "lognormal:1"), "true run times with random errors (lognormal:1)"),
    (("--class-by", "truth:60"), "classes are made of true run times (truth:60)"),
]


@pytest.mark.parametrize(("words", "truth"), TOLD)
def test_every_output_says_so_where_policies_are_told_the_truth(
    desk: Path, tmp_path: Path, words: tuple[str, ...], truth: str
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    run, _ = replay(desk, "--policy", "fifo", "--policy", "recorded", *words)
    assert truth in "; ".join(run["truth"])
    table = outrider("replay", desk, "--policy", "fifo", *words, "--ledger", ledger)
    assert "TRUE RUN TIMES USED" in table.out.replace("\n", " ")
    with sqlite3.connect(ledger) as kept:
        assert truth in "".join(map(str, kept.execute("SELECT * FROM meta")))
    (plain,) = replay(desk, "--policy", "fifo")
    assert plain["truth"] == []


def test_the_utility_declared_for_a_class_is_the_one_that_counts(desk: Path) -> None:
    words = ("--class-by", "none", "--utility", "batch=linear:zero_at=3")
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


def test_shares_of_vos_that_the_trace_has_not_are_warned_of(desk: Path) -> None:
    done = outrider("replay", desk, "--policy", "fifo", "--shares", "1=.5,physics=.5", "--json")
    assert "--shares: no job belongs to physics" in done.err
    assert done.json()["runs"][0]["fairness"]["target"] == {"1": 0.5, "2": 0.0, "physics": 0.5}


class LongestFirst(RunTimeEstimator):
    """Estimator with shorter estimates for larger requests."""

    name = "longest_first"
    description = "for a test"

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        assert spec.estimate_s is not None, "the request is known"
        return RunTimeEstimate(1e6 / spec.estimate_s, 0.0, 1e6)

    def learn(self, job: Job, run_s: float, now: float) -> None:
        """Learn nothing from an end."""


def test_learned_estimates_are_those_of_the_estimator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "load_estimator", lambda name: LongestFirst)
    asked = ((1, 100), (2, 20), (3, 50), (4, 80))
    path = file_of(
        tmp_path, *(row(job, job, 10, time_asked=asked_s) for job, asked_s in asked),
        header="; MaxProcs: 1\n",
    )  # fmt: skip
    ledger = tmp_path / "ledger.sqlite"
    replay(path, "--policy", "sjf", "--estimates", "learned", "--ledger", ledger)
    rows = exported(ledger)
    assert [row["job"] for row in rows if row["action"] == "start"] == ["1", "4", "3", "2"]


def test_rows_of_what_was_recorded_say_that_nobody_of_ours_decided(
    desk: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    (run,) = replay(desk, "--policy", "recorded", "--ledger", ledger)
    rows = exported(ledger)
    assert {(row["policy"], row["mode"]) for row in rows} == {("recorded", "observe")}
    assert [(row["time_s"], row["job"], row["cpus"]) for row in rows] == [
        (0, "1", 3), (2, "3", 1), (100, "2", 4), (203, "4", 1),
    ]  # fmt: skip
    assert run["decisions"] == 4


def test_people_get_waits_by_class_slowdown_fairness_and_utility(grid: Path) -> None:
    done = outrider("replay", grid, "--policy", "fifo", "--policy", "sjf")
    assert done.code == 0
    for label in ("8 CPUs on 8 machines", "classes queue:interactive",
                  "wait, ran < 900 s, mean [min]", "wait, interactive, p95 [min]",
                  "wait, batch, max [min]",
                  "bounded slowdown, mean", "fairness, windowed", "utility [CPU h]",
                  "ledger_sha256"):  # fmt: skip
        assert label in done.out


def test_until_gives_the_first_rows_of_the_whole_ledger(grid: Path, tmp_path: Path) -> None:
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, words in (("whole", ()), ("part", ("--until", 20_000))):
        ledger = tmp_path / f"{name}.sqlite"
        replay(grid, "--policy", "fifo", "--ledger", ledger, *words)
        rows[name] = exported(ledger)
    assert 0 < len(rows["part"]) < len(rows["whole"])
    assert rows["whole"][: len(rows["part"])] == rows["part"]
    assert rows["whole"][len(rows["part"])]["time_s"] > 20_000


def test_a_log_whose_first_job_comes_late_counts_from_that_job(tmp_path: Path) -> None:
    path = file_of(tmp_path, row(1, 5000, 20, wait=0), row(2, 5010, 30, wait=0))
    for run in replay(path, "--policy", "fifo", "--policy", "recorded"):
        assert run["span_s"] == 40.0
        assert run["utilisation_ratio"] == pytest.approx(50 / (4 * 40))
    done = outrider("replay", path, "--policy", "fifo", "--until", 10)
    assert (done.code, done.out) == (2, "")
    assert "the first job of desk.swf comes at 5000 s" in done.err
