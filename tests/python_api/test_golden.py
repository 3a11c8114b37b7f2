"""Figures of the Python API are exactly those of the command line."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import outrider
from outrider.python_api.records import Run
from outrider.replay.trials import Trace
from tests.cli import running

OF_THIS_PROCESS = ("wall_s", "cpu_s", "max_rss_mb", "ledger")


def generated(out: Path, *words: object) -> Path:
    """Generate a grid with the command."""
    assert running.outrider("generate", "grid", *words, "--seed", 3, "--out", out).code == 0
    return out


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return 400 jobs of one CPU, on 8 machines."""
    out = tmp_path_factory.mktemp("grid") / "grid.swf"
    return generated(out, "--row", 0.2, "--jobs", 400, "--machines", 8)


@pytest.fixture(scope="module")
def small_grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the first 100 jobs, for runs of a dozen policies."""
    out = tmp_path_factory.mktemp("grid") / "small.swf"
    return generated(out, "--row", 0.2, "--jobs", 100, "--machines", 8)


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return parallel jobs on one machine."""
    out = tmp_path_factory.mktemp("grid") / "machine.swf"
    return generated(out, "--like", "vengerov", "--rate", 0.1, "--length", 3000)


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a campus folder of a week."""
    out = tmp_path_factory.mktemp("campus") / "campus"
    words = ("--seed", 3, "--weeks", 1, "--machines", 20)
    assert running.outrider("generate", "campus", *words, "--out", out).code == 0
    return out


def of_command(*words: object) -> dict[str, Any]:
    run: dict[str, Any] = running.outrider("replay", *words, "--json").json()["runs"][0]
    return without(run)


def of_api(run: Run) -> dict[str, Any]:
    """Return the run as in JSON, where undefined or infinite values are null."""
    return without(json.loads(msgspec.json.encode(run.as_dict(), enc_hook=str)))


def without(run: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name not in OF_THIS_PROCESS}


@pytest.mark.parametrize("policy", ["fifo", "wfp3", "sarsa"])
@pytest.mark.parametrize(
    ("discipline", "estimates"),
    [("first_fit", "exact"), ("strict", "lognormal:1.0"), ("easy", "learned")],
)
def test_workload_file(grid: Path, policy: str, discipline: str, estimates: str) -> None:
    expected = of_command(
        grid, "--policy", policy, "--discipline", discipline, "--estimates", estimates,
        "--seed", 5, "--machines", 7,
    )  # fmt: skip
    run = outrider.replay(
        grid, policy=policy, discipline=discipline, estimates=estimates, seed=5, machines=7
    )
    assert of_api(run) == expected
    assert run.wait_s["all"]["mean"] == expected["wait_s"]["all"]["mean"]


@pytest.mark.parametrize("discipline", ["easy", "conservative"])
def test_parallel_jobs_with_everything_that_can_be_asked(parallel: Path, discipline: str) -> None:
    expected = of_command(
        parallel, "--policy", "f1", "--discipline", discipline, "--estimates", "lognormal:0.5",
        "--utility", "batch=linear:zero_at=2", "--class-by", "truth:7", "--interactive-below", 6,
        "--vo", "user", "--until", 2000, "--seed", 2,
    )  # fmt: skip
    run = outrider.replay(
        parallel, policy="f1", discipline=discipline, estimates="lognormal:0.5",
        utilities={"batch": "linear:zero_at=2"}, class_by="truth:7", interactive_below_s=6,
        vo="user", until_s=2000, seed=2,
    )  # fmt: skip
    assert of_api(run) == expected


@pytest.mark.parametrize("estimates", [None, "learned"])
def test_campus(campus: Path, estimates: str | None) -> None:
    words = () if estimates is None else ("--estimates", estimates)
    expected = of_command(
        campus, "--policy", "bandit", "--preset", "bandit=literal", "--set", "bandit.epsilon=0.05",
        "--seed", 4, *words,
    )  # fmt: skip
    run = outrider.replay(
        campus, policy="bandit", preset="literal", settings={"epsilon": 0.05}, seed=4,
        estimates=estimates,
    )  # fmt: skip
    assert of_api(run) == expected


def test_what_is_made_by_chance_is_what_the_commands_write(
    grid: Path, parallel: Path, campus: Path
) -> None:
    made: dict[Path, Trace] = {
        grid: outrider.generate_grid(3, row=0.2, jobs=400, machines=8),
        parallel: outrider.generate_grid(3, like="vengerov", rate=0.1, length_s=3000),
        campus: outrider.generate_campus(3, weeks=1, machines=20),
    }
    for path, trace in made.items():
        from_file = of_api(outrider.replay(path, policy="random_match", seed=1))
        assert of_api(outrider.replay(trace, policy="random_match", seed=1)) == from_file | {
            "trace": trace.name
        }


def test_a_trace_that_was_read_is_one_with_its_path(grid: Path, campus: Path) -> None:
    read = outrider.read_swf(grid, vo="user", class_by="requested:60")
    from_path = outrider.replay(grid, policy="sjf", vo="user", class_by="requested:60", machines=9)
    assert of_api(outrider.replay(read, policy="sjf", machines=9)) == of_api(from_path) | {
        "trace": "grid.swf"
    }
    from_path = outrider.replay(campus, policy="fifo")
    read_campus = outrider.read_campus(campus)
    assert of_api(outrider.replay(read_campus)) == of_api(from_path) | {"trace": read_campus.name}


def test_records_of_jobs_are_those_of_the_command(grid: Path, tmp_path: Path) -> None:
    of_the_command, of_the_api = tmp_path / "command.csv", tmp_path / "api.csv"
    of_command(grid, "--policy", "sjf", "--jobs", of_the_command)
    run = outrider.replay(grid, policy="sjf")
    assert run.job_rows.write(of_the_api) == run.jobs["submitted"]
    assert of_the_api.read_text() == of_the_command.read_text()


def test_records_of_a_ledger_are_those_of_the_command(grid: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.sqlite"
    run = outrider.replay(grid, policy="sarsa", ledger=file, jobs=False)
    for table in ("decisions", "outcomes"):
        done = running.outrider("ledger", "export", file, "--rows", table)
        expected = [json.loads(line) for line in done.out.splitlines()]
        with outrider.open_journal(file) as journal:
            found = [dict(row) for row in journal.rows(table).as_they_are()]
        assert json.loads(msgspec.json.encode(found)) == expected != []
    with outrider.open_journal(file) as journal:
        assert sum(1 for _ in journal.decisions) == run.decisions
        assert journal.meta("policy") == "sarsa"


def test_a_comparison_is_that_of_the_command(small_grid: Path, tmp_path: Path) -> None:
    words = ("--seeds", "1-2", "--estimates", "lognormal:1.0", "--machines", 7, "--workers", 1)
    done = running.outrider(
        "compare",
        small_grid,
        "--policy",
        "edf",
        *words,
        "--runs",
        tmp_path / "runs.jsonl",
        "--json",
    )
    expected = done.json()
    found = outrider.compare(
        small_grid, ["edf"], seeds=(1, 2), estimates="lognormal:1.0", machines=7
    )
    text = json.loads(msgspec.json.encode(found.as_dict(), enc_hook=str))
    for document in (expected, text):
        for policy in (row for trace in document["traces"] for row in trace["policies"]):
            del policy["cpu_s"]
    assert found.failed == []
    assert text == {name: expected[name] for name in text}
    assert expected.keys() - text.keys() == {"version", "command", "date"}


def test_what_logs_tell_is_what_the_command_tells(tmp_path: Path) -> None:
    log = tmp_path / "EventLog"
    log.write_text(
        "".join(
            f"{number:03d} (00{job}.000.000) 2026-11-21 {clock} {text}\n...\n"
            for number, job, clock, text in (
                (0, 1, "10:00:00", "Job submitted from host: <10.0.0.1:9618>"),
                (0, 2, "10:00:10", "Job submitted from host: <10.0.0.1:9618>"),
                (1, 1, "10:00:20", "Job executing on host: <10.0.0.7:9618>"),
                (4, 1, "10:01:20", "Job was evicted.\n\t(0) CPU times"),
                (1, 2, "10:01:30", "Job executing on host: <10.0.0.7:9618>"),
                (5, 2, "10:02:10", "Job terminated.\n\t(1) Normal termination (return value 0)"),
            )
        )
    )
    words = ("--year", 2026, "--timezone", "Europe/Berlin", "--system", "schedd")
    expected = running.outrider("ingest", log, *words, "--json").json()
    found = outrider.ingest(log, year=2026, timezone="Europe/Berlin", system="schedd")
    assert found.jobs["completed"] == 1
    assert found.wait_s["all"]["n"] == 2
    assert without(json.loads(msgspec.json.encode(found.as_dict(), enc_hook=str))) == without(
        expected
    )
