"""`outrider sweep` on this machine: every cell's row, in any order, and after any ending."""

import fcntl
import json
import subprocess
import time
from pathlib import Path

import duckdb
import pytest

from outrider_lab.running.campus_run import run_on_campus
from outrider_lab.sweep.file import read_sweep
from outrider_lab.sweep.results import read_rows
from tests.cli.running import COMMAND, WITHIN_S, Done, outrider, shell
from tests.lab.swept import (
    ONE_TRACE,
    SMALL,
    SMALL_CELLS,
    install_policies,
    measured,
    on_path,
    rows_of,
    write_sweep,
)


def alone(*words: object) -> Done:
    """Sweep in this process: starting others takes longer than these runs."""
    return outrider("sweep", *words, "--workers", 1)


def test_each_cell_has_a_row_with_every_scalar_of_its_run(tmp_path: Path) -> None:
    file, out = write_sweep(tmp_path), tmp_path / "results.json"
    told = outrider("sweep", file, "--out", out, "--workers", 1, "--json").json()
    assert told.items() >= {"out": str(out), "cells": SMALL_CELLS, "kept": 0, "failed": []}.items()
    assert told["command"].startswith("outrider sweep ")
    specs, rows = read_sweep(file).specs, rows_of(out)
    assert [row["cell"] for row in rows] == [spec.key for spec in specs]
    report = run_on_campus(specs[4])
    row = rows[4]
    assert row["trace"] == specs[4].trace.name
    assert (row["policy"], row["settings.epsilon"], row["seed"]) == ("bandit", 0.2, 0)
    assert row["ledger_sha256"] == report["ledger_sha256"]
    assert row["jobs.completed"] == report["jobs"]["completed"] > 0
    assert row["wait_s.by_class.batch.p99"] == report["wait_s"]["by_class"]["batch"]["p99"]
    assert row["energy_wh.badput"] == report["energy_wh"]["badput"]
    assert row["evictions.owner"] == report["evictions"]["owner"]
    assert {tuple(row) for row in rows} == {tuple(rows[0])}, "not every row has every column"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["results.json", "sweep.toml"]


def test_results_depend_neither_on_the_workers_nor_on_the_format(tmp_path: Path) -> None:
    file = write_sweep(tmp_path)
    one, two = tmp_path / "one.json", tmp_path / "two.parquet"
    assert outrider("sweep", file, "--out", one, "--workers", 1).code == 0
    assert outrider("sweep", file, "--out", two, "--workers", 2).code == 0
    assert measured(read_rows(two)) == measured(rows_of(one))


def test_columns_of_parquet_have_types(tmp_path: Path) -> None:
    out = tmp_path / "results.parquet"
    text = ONE_TRACE + '[[policies]]\nname = "bandit"\nsettings.max_defer_s = [60, inf]\n'
    assert alone(write_sweep(tmp_path, text), "--out", out).code == 0
    with duckdb.connect() as connection:
        (found,) = connection.execute(
            'SELECT typeof(seed), typeof("wait_s.all.mean"), typeof(ledger_sha256), '
            '  typeof("settings.offer_full"), max("settings.max_defer_s") = \'inf\' '
            "FROM read_parquet(?) GROUP BY ALL", [str(out)],
        ).fetchall()  # fmt: skip
    assert found == ("BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", True)
    again = alone(tmp_path / "sweep.toml", "--out", out, "--resume", "--json").json()
    assert again["kept"] == 2
    assert [row["settings.max_defer_s"] for row in read_rows(out)] == [60.0, "inf"]


# -- endings ------------------------------------------------------------------------------------


def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    file, out = write_sweep(tmp_path), tmp_path / "results.json"
    kept_runs = tmp_path / "results.json.runs"
    with subprocess.Popen([COMMAND, "sweep", file, "--out", out, "--workers", "1"]) as sweep:
        deadline_s = time.monotonic() + WITHIN_S
        while not kept_runs.exists() or kept_runs.read_bytes().count(b"\n") < 2:
            assert time.monotonic() < deadline_s, "no run was kept"
            time.sleep(0.005)
        sweep.kill()
    done = kept_runs.read_bytes().count(b"\n")
    assert not out.exists(), "the sweep ended before it could be killed"
    kept_runs.write_bytes(kept_runs.read_bytes() + b'{"key": "torn')
    told = alone(file, "--out", out, "--resume", "--json").json()
    assert told["kept"] == done
    assert not kept_runs.exists()
    alone(file, "--out", tmp_path / "whole.json")
    assert measured(rows_of(out)) == measured(rows_of(tmp_path / "whole.json"))


def test_a_finished_sweep_resumed_runs_nothing_and_one_that_grew_only_the_rest(
    tmp_path: Path,
) -> None:
    file, out = write_sweep(tmp_path), tmp_path / "results.json"
    alone(file, "--out", out)
    before = out.read_bytes()
    assert alone(file, "--out", out, "--resume", "--json").json()["kept"] == SMALL_CELLS
    assert out.read_bytes() == before
    write_sweep(tmp_path, SMALL.replace("[0.05, 0.2]", "[0.05, 0.1, 0.2]"))
    grown = alone(file, "--out", out, "--resume", "--json").json()
    assert (grown["cells"], grown["kept"]) == (SMALL_CELLS + 4, SMALL_CELLS)
    kept = [row for row in measured(rows_of(out)) if row["settings.epsilon"] != 0.1]
    assert kept == measured(json.loads(before))


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    file, out = write_sweep(tmp_path), tmp_path / "results.json"
    alone(file, "--out", out)
    again = alone(file, "--out", out)
    assert again.code == 2
    assert "results.json: there already; --resume goes on with it" in again.err
    write_sweep(tmp_path, SMALL.replace("[0.05, 0.2]", "[0.05]"))
    shrunk = alone(file, "--out", out, "--resume")
    assert shrunk.code == 2
    assert "has a row of bandit, seed 0, on generated-1" in shrunk.err
    assert len(rows_of(out)) == SMALL_CELLS


def test_rows_of_another_version_are_not_mixed_in(tmp_path: Path) -> None:
    file, out = write_sweep(tmp_path), tmp_path / "results.json"
    alone(file, "--out", out)
    rows = rows_of(out)
    rows[3]["version"] = "0.0.9"
    out.write_text(json.dumps(rows))
    done = alone(file, "--out", out, "--resume")
    assert done.code == 2
    assert "was made by Outrider 0.0.9" in done.err


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "no results of a sweep"), ('[{"cell": "1"}]', "results.json row 1: no row of a sweep")],
)
def test_a_file_of_something_else_is_refused_and_kept(
    content: str, message: str, tmp_path: Path
) -> None:
    out = tmp_path / "results.json"
    out.write_text(content)
    done = alone(write_sweep(tmp_path), "--out", out, "--resume")
    assert done.code == 2
    assert message in done.err
    assert out.read_text() == content


# -- failures -----------------------------------------------------------------------------------


def test_a_failed_cell_is_named_tried_again_and_listed_with_its_error(tmp_path: Path) -> None:
    environment = install_policies(tmp_path / "plugins")
    both = '[[policies]]\nname = "clueless"\n[[policies]]\nname = "fifo"\n'
    file, out = write_sweep(tmp_path, ONE_TRACE + both), tmp_path / "results.json"
    done = shell("sweep", file, "--out", out, "--retries", 2, "--json", **environment)
    assert done.code == 1
    (failed,) = json.loads(done.out)["failed"]
    assert failed["policy"] == "clueless"
    assert "out of ideas" in failed["error"]
    assert done.err.count("clueless, seed 0, on generated-1 ") == 3
    assert "failed, attempt 3" in done.err
    bad, good = rows_of(out)
    assert (bad["policy"], bad["attempts"], bad["ledger_sha256"]) == ("clueless", 3, None)
    assert bad["error"] == failed["error"]
    assert (good["error"], good["attempts"]) == (None, 1)
    again = shell("sweep", file, "--out", out, "--retries", 0, "--resume", "--json", **environment)
    assert again.code == 1
    assert json.loads(again.out)["kept"] == 1


def test_a_cell_that_fails_once_is_done_at_its_second_attempt(tmp_path: Path) -> None:
    environment = install_policies(tmp_path / "plugins")
    text = ONE_TRACE + '[[policies]]\nname = "moody"\n'
    file, out = write_sweep(tmp_path, text), tmp_path / "results.json"
    done = shell("sweep", file, "--out", out, **environment)
    assert done.code == 0, done
    assert "not now" in done.err
    (row,) = rows_of(out)
    assert (row["error"], row["attempts"]) == (None, 2)
    assert row["jobs.completed"] > 0


def test_a_cell_whose_process_dies_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    environment = install_policies(tmp_path / "plugins")
    both = '[[policies]]\nname = "deadly"\n[[policies]]\nname = "fifo"\n'
    file, out = write_sweep(tmp_path, ONE_TRACE + both), tmp_path / "results.json"
    done = shell("sweep", file, "--out", out, "--retries", 0, **environment)
    assert done.code == 1
    assert "deadly, seed 0, on generated-1 " in done.err
    assert [row["error"] for row in rows_of(out)] == ["its process ended with exit code -9", None]


# -- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "results.csv"), "expected it to end in .json or .parquet"),
        (("--out", "nowhere/results.json"), "there is no folder nowhere"),
        (("--out", "r.json", "--jobs", 3), "--jobs: without a batch system expected --work"),
        (("--out", "r.json", "--cluster", "slurm", "--workers", 3), "expected --jobs"),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    words: tuple[object, ...], message: str, tmp_path: Path
) -> None:
    done = outrider("sweep", write_sweep(tmp_path), *words)
    assert done.code == 2
    assert message in done.err


def test_two_sweeps_do_not_write_to_one_file(tmp_path: Path) -> None:
    file, out = write_sweep(tmp_path), tmp_path / "results.json"
    with (tmp_path / "results.json.runs").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = outrider("sweep", file, "--out", out, "--resume")
    assert done.code == 2
    assert "another process is writing to it" in done.err


@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [
        ("duckdb", ("--out", "results.parquet"), "outrider[reports]"),
        ("distributed", ("--out", "results.json", "--cluster", "slurm"), "outrider[sweeps]"),
        ("dask_jobqueue", ("--out", "results.json", "--cluster", "pbs"), "outrider[sweeps]"),
    ],
)
def test_what_is_not_installed_is_named_with_the_extra_that_brings_it(
    module: str, words: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent" / f"{module}.py").write_text(f"raise ImportError('no {module} here')\n")
    file = write_sweep(tmp_path)
    words = (words[0], str(tmp_path / words[1]), *words[2:])
    done = shell("sweep", file, *words, **on_path(tmp_path / "absent"))
    assert done.code == 2
    assert module in done.err
    assert f"pip install '{extra}'" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["absent", "sweep.toml"]
