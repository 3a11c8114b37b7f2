"""Refusals of `outrider replay` on workload files, before anything runs."""

from pathlib import Path

import pytest

from tests.cli.running import Done, outrider
from tests.fixtures.workload_files import HEADER, file_of, row

REFUSED = [
    (("--policy", "fifo", "--estimates", "exakt"), 'did you mean "exact"'),
    (("--policy", "fifo", "--estimates", "lognormal"), "expected lognormal:SIGMA"),
    (("--policy", "fifo", "--utility", "batch"), "expected CLASS=SHAPE"),
    (("--policy", "fifo", "--utility", "batch=linea"), 'did you mean "linear"?'),
    (("--policy", "fifo", "--utility", "batch=linear:zero=2"), 'did you mean "zero_at"?'),
    (("--policy", "fifo", "--utility", "batch=linear:zero_at=1"), '"zero_at" = 1'),
    (("--policy", "fifo", "--utility", "batch=step", "--utility", "batch=soft"), "twice"),
    (("--policy", "fifo", "--utility", "batchh=linear"), 'no class "batchh"; did you mean "batch"'),
    (("--policy", "fifo", "--shares", "1=.7,2=.4"), "sum to 1.1"),
    (("--policy", "fifo", "--machines", "3"), 'larger than the machine: "4"'),
    (("--policy", "fifo", "--machines", "0"), "--machines"),
    (("--policy", "fifo", "--until", "nan"), "nan is not a number of seconds"),
    (("--policy", "fifo", "--interactive-below", "inf"), "inf is not a number of seconds"),
    (("--policy", "fifo", "--class-by", "request:900"), 'did you mean "requested"?'),
    (("--policy", "fifo", "--class-by", "requested:soon"), "requested:S with S seconds"),
    (("--policy", "fifo", "--class-by", "queue:fast"), 'queue "fast"'),
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


def test_recorded_is_refused_before_a_ledger_is_begun(grid: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "none.sqlite"
    done = outrider("replay", grid, "--policy", "recorded", "--ledger", ledger)
    assert (done.code, done.out) == (2, "")
    assert "does not record how long its jobs waited" in done.err
    assert list(tmp_path.iterdir()) == []


OF_WORKLOADS = [
    ("--class-by", "none", "jobs of a campus have no class"),
    ("--interactive-below", 900, "waits on a campus are not reported by run time"),
    ("--vo", "user", "jobs.csv of a campus has a column for it"),
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


@pytest.mark.parametrize("rule", ["exact", "lognormal:0.5"])
def test_the_true_run_times_of_a_campus_are_told_to_nobody(tmp_path: Path, rule: str) -> None:
    done: Done = outrider("replay", tmp_path, "--policy", "fifo", "--estimates", rule)
    assert (done.code, done.out) == (2, "")
    assert "policies do not see true run times; expected requested" in done.err


def test_a_trace_that_is_not_there_is_refused_before_the_first_is_run(grid: Path) -> None:
    done = outrider("replay", grid, "nowhere.swf", "--policy", "fifo")
    assert (done.code, done.out) == (2, "")
    assert "nowhere.swf: there is no such file or folder" in done.err


def test_a_bad_line_is_refused_or_left_out_and_counted(tmp_path: Path) -> None:
    path = file_of(tmp_path, row(1, 0, 5), row(2, "soon", 5), header=HEADER)
    refused = outrider("replay", path, "--policy", "fifo")
    assert refused.code == 2
    assert 'line 7, column "submit time": not a number: "soon"' in refused.err
    words = ("--policy", "fifo", "--skip-bad", "--json")
    (run,) = outrider("replay", path, *words).json()["runs"]
    assert run["jobs"]["skipped"] == {"not a number": 1}
