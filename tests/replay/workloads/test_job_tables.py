"""Job table of a replay: times of each job, and the reasons it waited."""

import csv
import dataclasses
from pathlib import Path
from typing import Any

import duckdb
import pytest

from outrider.formats.swf.reading import read_swf
from outrider.model.machines import MachineSpec, Resources
from outrider.model.modes import FIRST_FIT
from outrider.plugins.finding import make_policy
from outrider.replay.grid_run import GridRun
from outrider.replay.job_table import REASONS, JobTable
from tests.cli.running import outrider
from tests.fixtures.workload_files import file_of, row

POOL = "; MaxProcs: 4\n"


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def replayed(folder: Path, lines: list[str], *words: object, header: str = POOL) -> dict[str, Any]:
    """Return the rows of a replay, by job."""
    out = folder / "jobs.csv"
    trace = file_of(folder, *lines, header=header)
    outrider("replay", trace, "--jobs", out, "--json", *words).json()
    return {one["job"]: one for one in rows_of(out)}


def waits_of(one: dict[str, str]) -> dict[str, float]:
    """Return the seconds by reason that are not 0."""
    return {reason: float(one[f"{reason}_s"]) for reason in REASONS if float(one[f"{reason}_s"])}


def wide_site() -> list[str]:
    """Return lines of jobs: three of four CPUs are busy until 100 s, and three jobs wait."""
    return [
        row(1, 0, 100, 3, time_asked=100),
        row(2, 10, 50, 4, time_asked=50, user=7, group=3, queue=1),
        row(3, 20, 30, 1, time_asked=30),
        row(4, 30, 500, 1, time_asked=500),
    ]


def test_under_fcfs_those_that_would_fit_wait_behind_the_head(tmp_path: Path) -> None:
    jobs = replayed(tmp_path, wide_site(), "--policy", "fifo")
    assert [(j["start_s"], j["end_s"], j["waited_most_for"]) for j in jobs.values()] == [
        ("0.0", "100.0", ""),
        ("100.0", "150.0", "too_wide"),
        ("150.0", "180.0", "behind_head"),
        ("150.0", "650.0", "behind_head"),
    ]
    assert waits_of(jobs["2"]) == {"too_wide": 90.0}
    assert waits_of(jobs["3"]) == {"behind_head": 80.0, "no_machine": 50.0}
    columns = ("user", "vo", "class", "submit_s", "eligible_s", "ending", "cpus", "estimate_s")
    assert [jobs["2"][column] for column in (*columns, "runs", "wait_s")] == [
        "7", "3", "interactive", "10.0", "10.0", "completed", "4", "50.0", "1", "90.0",
    ]  # fmt: skip


def test_under_easy_a_long_one_would_delay_the_reservation(tmp_path: Path) -> None:
    jobs = replayed(tmp_path, wide_site(), "--policy", "fifo", "--discipline", "easy")
    assert jobs["3"]["wait_s"] == "0.0"
    assert waits_of(jobs["3"]) == {}
    # While job 3 runs (20 to 50 s) no CPU is free; then one is until 100 s.
    assert waits_of(jobs["4"]) == {"no_machine": 70.0, "would_delay": 50.0}
    assert jobs["4"]["waited_most_for"] == "no_machine"


def test_the_reasons_add_up_to_the_time_in_the_queue(tmp_path: Path) -> None:
    lines = [row(n, 7 * n, 40 + 13 * n % 200, 1 + n % 4, time_asked=300) for n in range(80)]
    for words in (("sjf",), ("wfp3", "--discipline", "easy"), ("sarsa",), ("fuzzy_td",)):
        jobs = replayed(tmp_path, lines, "--policy", *words)
        assert len(jobs) == 80
        for one in jobs.values():
            queued_s = float(one["start_s"]) - float(one["submit_s"])
            assert sum(waits_of(one).values()) >= queued_s - 1e-6  # a preempted job waits again
            if words[0] != "fuzzy_td":
                assert sum(waits_of(one).values()) == pytest.approx(queued_s, abs=1e-6)


def test_memory_that_nobody_has_left_is_too_wide_and_that_nobody_has_is_impossible(
    tmp_path: Path,
) -> None:
    lines = [row(1, 0, 100), row(2, 5, 60), row(3, 7, 60), row(4, 9, 60)]
    plain = read_swf(file_of(tmp_path, *lines, header=POOL))
    needs = [Resources(memory_mib=mib) for mib in (600.0, 600.0, 2000.0, 300.0)]
    machine = MachineSpec(cpus=4, resources=Resources(memory_mib=1000.0))
    workload = dataclasses.replace(
        plain, resources=needs, machines=[machine], machine_names=["pool"]
    )
    table = JobTable(workload.job_names)
    policy = make_policy("fifo", {}, 0, "test")
    run = GridRun(workload, [policy], table.decided, until_s=500.0, discipline=FIRST_FIT)
    run.job_table = table
    run.run()
    rows = list(table.rows())
    assert [(one["start_s"], one["end_s"], one["waited_most_for"]) for one in rows] == [
        (0.0, 100.0, None), (100.0, 160.0, "too_wide"), (None, None, "impossible"),
        (9.0, 69.0, None),
    ]  # fmt: skip
    assert (rows[1]["too_wide_s"], rows[2]["impossible_s"]) == (95.0, 493.0)
    assert (rows[2]["ending"], rows[2]["wait_s"], rows[2]["runs"]) == (None, None, 0)


def test_a_policy_that_defers_says_so_and_evicted_jobs_wait_again(tmp_path: Path) -> None:
    campus, out = tmp_path / "campus", tmp_path / "jobs.csv"
    outrider(
        "generate", "campus", "--seed", 3, "--weeks", 1, "--machines", 12, "--clusters", 3,
        "--jobs", 300, "--out", campus,
    )  # fmt: skip
    report = outrider(
        "replay", campus, "--policy", "bandit", "--jobs", out, "--json"
    ).json()["runs"][0]  # fmt: skip
    jobs = rows_of(out)
    assert len(jobs) == report["jobs"]["submitted"]
    assert sum(int(one["runs"]) for one in jobs) == report["starts"]
    assert sum(int(one["runs"]) > 1 for one in jobs) > 0
    deferred = [float(one["deferred_s"]) for one in jobs]
    assert max(deferred) > 0
    ended = [one["ending"] for one in jobs]
    assert ended.count("completed") == report["jobs"]["completed"]
    assert ended.count("removed") == report["jobs"]["removed"]


def test_what_was_recorded_says_when_and_not_why(tmp_path: Path) -> None:
    lines = [row(1, 0, 100, 1, wait=5), row(2, 10, 60, 1, wait=200)]
    jobs = replayed(tmp_path, lines, "--policy", "recorded")
    assert [(j["wait_s"], j["waited_most_for"], j["no_machine_s"]) for j in jobs.values()] == [
        ("5.0", "", ""),
        ("200.0", "", ""),
    ]


def test_watching_changes_no_decision_and_several_runs_get_files_of_their_own(
    tmp_path: Path,
) -> None:
    trace = file_of(tmp_path, *wide_site(), header=POOL)
    asked = ("replay", trace, "--policy", "fifo", "--policy", "sjf", "--json")
    alone = outrider(*asked).json()["runs"]
    watched = outrider(*asked, "--jobs", tmp_path / "all.csv").json()["runs"]
    assert [r["ledger_sha256"] for r in alone] == [r["ledger_sha256"] for r in watched]
    assert sorted(p.name for p in tmp_path.glob("all*")) == ["all-fifo-0.csv", "all-sjf-0.csv"]


def test_parquet_holds_what_csv_holds(tmp_path: Path) -> None:
    trace, out = file_of(tmp_path, *wide_site(), header=POOL), tmp_path / "jobs.parquet"
    outrider("replay", trace, "--policy", "fifo", "--jobs", out, "--json").json()
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT job, start_s, behind_head_s, waited_most_for FROM read_parquet(?)", [str(out)]
        ).fetchall()
    assert found == [
        ("1", 0.0, 0.0, None), ("2", 100.0, 0.0, "too_wide"),
        ("3", 150.0, 80.0, "behind_head"), ("4", 150.0, 70.0, "behind_head"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("jobs.txt", "jobs.txt: expected it to end in .jsonl or .ndjson or .csv or .parquet"),
        ("nowhere/jobs.csv", "there is no folder"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, name: str, says: str
) -> None:
    trace = file_of(tmp_path, *wide_site(), header=POOL)
    done = outrider("replay", trace, "--policy", "fifo", "--jobs", tmp_path / name)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
