"""Ends of jobs, from a journal with inputs of many jobs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outrider.journal import Entry, Journal, schema
from outrider.journal.job_lookup import _LAST_END, ENDED_JOBS, JobEnd
from outrider.journal.reading import JournalReading
from outrider.journal.records import RunRecord
from outrider.model.events import COMPLETED, EVICTED, REMOVED, SUBMITTED, NamedEvent
from outrider.model.jobs import JobSpec

INPUTS: list[NamedEvent] = [
    (1.0, SUBMITTED, "ap1#7.0", JobSpec()),
    (2.0, EVICTED, "ap1#7.0", "owner"),
    (3.0, REMOVED, "ap1#7.0", "removed"),
    (4.0, COMPLETED, "ap1#8.0", None),
    (5.0, SUBMITTED, "ap2#7.0", JobSpec()),
    (6.0, REMOVED, "ap1#9.0", "removed"),
    (7.0, COMPLETED, "ap1#9.0", None),
]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """A journal with the inputs of a pool."""
    journal = Journal(tmp_path / "journal.sqlite")
    journal.append(Entry([("pool", event) for event in INPUTS]))
    return journal


def test_the_last_end_of_a_job_is_told_with_its_reason(journal: Journal) -> None:
    with journal:
        assert journal.end_of("ap1#7.0") == JobEnd(3.0, "removed", "removed")
        assert journal.end_of("ap1#8.0") == JobEnd(4.0, "completed", "")
        assert journal.end_of("ap1#9.0") == JobEnd(7.0, "completed", "")
        assert journal.end_of("ap2#7.0") is None, "it is here"
        assert journal.end_of("ap1#7") is None


def test_a_short_form_finds_jobs_of_which_only_the_end_is_kept(journal: Journal) -> None:
    with journal:
        assert journal.jobs_meant("8.0") == ["ap1#8.0"]
        assert journal.jobs_meant("7") == ["ap1#7.0"]


def test_both_are_found_by_an_index(journal: Journal) -> None:
    lookup = f"SELECT min(job) FROM {ENDED_JOBS} WHERE job > :job"
    with journal:
        for query in (_LAST_END, lookup):
            plan = str(journal._fetch(f"EXPLAIN QUERY PLAN {query}", {"job": "a"}))
            assert "ends_by_job" in plan
            assert "SCAN" not in plan


def test_a_journal_without_the_index_is_not_searched_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    with monkeypatch.context() as before:
        before.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:6])
        before.setattr(schema, "VERSION", 6)
        with Journal(path) as journal:
            journal.append(Entry([("pool", event) for event in INPUTS]))
    with Journal(path, read_only=True) as journal:
        assert journal.end_of("ap1#7.0") is None
        assert journal.jobs_meant("8.0") == []
    with Journal(path) as journal:
        assert journal.end_of("ap1#7.0") == JobEnd(3.0, "removed", "removed"), "brought up to date"


def test_who_reads_while_a_job_leaves_is_never_told_its_end_without_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunRecord("ap1#7.0", "physics", "", "m1", 1, 1.0, 2.0, 3.0, 1.0, "removed")
    path = tmp_path / "journal.sqlite"

    def leaving_after(read: Callable[..., Any]) -> Callable[..., Any]:
        def first_read(self: JournalReading, *asked: Any) -> Any:
            answer = read(self, *asked)
            monkeypatch.undo()
            with Journal(path) as writing:
                writing.append(Entry([("pool", INPUTS[2])], runs=[run]))
            return answer

        return first_read

    with Journal(path) as journal:
        journal.append(Entry([("pool", INPUTS[0])]))
    for read in (JournalReading.end_of, JournalReading.runs_of):
        monkeypatch.setattr(JournalReading, read.__name__, leaving_after(read))
    with Journal(path, read_only=True) as journal:
        runs, end = journal.runs_and_end_of("ap1#7.0", 20)
        assert (end, runs) in [
            (None, []),
            (None, [run]),
            (JobEnd(3.0, "removed", "removed"), [run]),
        ]
        assert journal.runs_and_end_of("ap1#7.0", 20)[0] == [run], "it left meanwhile"
