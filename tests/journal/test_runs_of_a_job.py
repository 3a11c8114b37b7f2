"""The runs of one job, out of a journal that has those of many."""

from pathlib import Path

import pytest

from outrider.journal import Entry, Journal, RunRecord, schema
from tests.journal.samples import decision


def run(job: str, end_s: float, reason: str = "") -> RunRecord:
    return RunRecord(job, "physics", "batch", "m1", 1, None, end_s - 2.0, end_s, 2.0, reason)


def test_the_last_runs_of_a_job_come_oldest_first(tmp_path: Path) -> None:
    runs = [run(f"ap1#{n % 3}.0", float(n), "owner" if n < 9 else "") for n in range(12)]
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.append(Entry(runs=runs))
        assert journal.runs_of("ap1#1.0", 10) == [runs[1], runs[4], runs[7], runs[10]]
        assert journal.runs_of("ap1#1.0", 2) == [runs[7], runs[10]]
        assert journal.runs_of("ap1#1.00", 10) == []


def test_they_are_found_by_an_index(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.sqlite") as journal:
        plan = journal._fetch("EXPLAIN QUERY PLAN SELECT 1 FROM runs WHERE job = 'a' ORDER BY id")
        assert "runs_by_job" in str(plan)


def test_a_short_form_finds_jobs_of_which_only_runs_are_kept(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.append(Entry(decisions=[decision(1.0, "ap1#7.0")], runs=[run("ap1#7.0", 5.0)]))
        journal.append(Entry(runs=[run("ap2#7.0", 6.0)]))
        assert journal.jobs_meant("7.0") == ["ap1#7.0", "ap2#7.0"]
        assert journal.jobs_meant("7", limit=1) == ["ap1#7.0"]


def test_a_journal_that_is_older_than_runs_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    with monkeypatch.context() as before:
        before.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[: schema.READABLE_FROM])
        before.setattr(schema, "VERSION", schema.READABLE_FROM)
        Journal(path).close()
    with Journal(path, read_only=True) as journal:
        assert journal.runs_of("ap1#7.0", 10) == []
        assert journal.jobs_meant("7") == []
