"""Runs of the journal in bins of time."""

import sqlite3
from pathlib import Path

import pytest

from outrider.journal import Entry, Journal, RunRecord, run_sums
from outrider.journal.run_sums import AtBins
from outrider.model.errors import LedgerError

T = 1_700_000_000.0


def run(
    job: str, start_s: float, end_s: float, reason: str = "", submit_s: float = 0.0, cpus: int = 1
) -> RunRecord:
    """Times are seconds after T."""
    return RunRecord(
        job, "physics", "batch", "m1", cpus, T + submit_s, T + start_s, T + end_s,
        end_s - start_s, reason,
    )  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """One job that is wasted and runs again, one that was over before the bins begin."""
    path = tmp_path / "journal.sqlite"
    runs = [
        run("0.0", 2.0, 4.0),
        run("1.0", 8.0, 15.0, reason="owner", submit_s=5.0),
        run("1.0", 21.0, 25.0, submit_s=5.0, cpus=4),
    ]
    with Journal(path) as journal:
        journal.append(Entry(runs=runs))
    return path


def test_runs_are_summed_up_by_where_they_begin_and_end(path: Path) -> None:
    with Journal(path, read_only=True) as journal:
        sums = journal.run_sums(T + 10.0, 10.0, T + 30.0, 5.0)
    assert sums is not None
    assert sums.starts == [AtBins(-1, 1, -2.0), AtBins(1, 1, 11.0)]
    assert sums.ends == [AtBins(0, 1, 5.0), AtBins(1, 1, 15.0)]
    assert sums.kept_from_s == T + 4.0


def test_a_job_waits_from_its_submission_and_again_from_the_end_of_a_lost_run(path: Path) -> None:
    with Journal(path, read_only=True) as journal:
        sums = journal.run_sums(T + 10.0, 10.0, T + 30.0, 5.0)
    assert sums is not None
    assert [(one.bin, one.n, one.sum_s) for one in sums.wait_starts] == [(-1, 1, -5.0), (0, 1, 5.0)]
    assert [(one.bin, one.n, one.sum_s) for one in sums.wait_ends] == [(-1, 1, -2.0), (1, 1, 11.0)]


def test_cpus_are_summed_up_by_what_became_of_their_runs(path: Path) -> None:
    with Journal(path, read_only=True) as journal:
        sums = journal.run_sums(T + 10.0, 10.0, T + 30.0, 5.0, waits=False)
        assert journal.runs_reach(5.0) == (True, T + 2.0, T + 4.0)
    assert sums is not None
    assert sums.cpu_starts == {
        "completed": [AtBins(1, 4, 44.0)],
        "thrown_away": [AtBins(-1, 1, -2.0)],
    }
    assert sums.cpu_ends == {"completed": [AtBins(1, 4, 60.0)], "thrown_away": [AtBins(0, 1, 5.0)]}
    assert sums.wait_starts == []


def test_only_the_newest_runs_are_looked_at(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_sums, "MAX_RUNS", 1)
    with Journal(path, read_only=True) as journal:
        sums = journal.run_sums(T, 10.0, T + 30.0, 5.0)
    assert sums is not None
    assert [one.n for one in sums.starts] == [1]
    assert sums.kept_from_s == T + 25.0
    # the run before it is still found: the wait begins where that ended, not at submission
    assert [one.sum_s for one in sums.wait_starts] == [15.0]


def test_what_takes_too_long_is_given_up_and_the_journal_can_be_asked_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_sums, "_LOOK_AT_CLOCK_EVERY", 1)
    with Journal(path, read_only=True) as journal:
        with pytest.raises(LedgerError, match="sum up the runs of the journal: interrupted"):
            journal.run_sums(T, 10.0, T + 30.0, -1.0)
        assert journal.last_end_of_run("1.0") == T + 25.0
        assert journal.last_end_of_run("9.0") is None
        assert journal.first_run_end_s() == T + 4.0


def test_a_journal_older_than_runs_has_no_sums(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE runs")
    with Journal(path, read_only=True) as journal:
        assert journal.run_sums(T, 10.0, T + 30.0, 5.0) is None
        assert journal.runs_reach(5.0) is None
        assert journal.first_run_end_s() is None
