"""History of one machine in a journal: its last runs and its events."""

from pathlib import Path

import pytest

from outrider.journal import Entry, Journal, RunRecord, schema
from outrider.journal.reading import _EVENTS_OF, _RUNS_ON
from outrider.model.events import DRAINED, OWNER_CAME, OWNER_WENT, POWER, SUBMITTED, NamedEvent
from outrider.model.jobs import JobSpec

EVENTS: list[NamedEvent] = [
    (1.0, OWNER_CAME, "m1", None),
    (2.0, OWNER_CAME, "m2", None),
    (3.0, POWER, "m1", 50.0),
    (4.0, SUBMITTED, "m1", JobSpec()),  # a job of that name
    (5.0, OWNER_WENT, "m1", None),
    (6.0, DRAINED, "m1", None),
]


def run(job: str, machine: str, end_s: float) -> RunRecord:
    return RunRecord(job, "all", "batch", machine, 1, 0.0, 1.0, end_s, end_s - 1.0, "")


ENTRY = Entry(
    inputs=[("pool", event) for event in EVENTS],
    runs=[run("1.0", "m1", 2.0), run("2.0", "m2", 3.0), run("3.0", "m1", 4.0)],
)


def test_the_last_runs_and_events_of_a_machine_are_told(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.append(ENTRY)
        assert [run.job for run in journal.runs_on("m1", 10) or []] == ["3.0", "1.0"]
        assert [run.job for run in journal.runs_on("m1", 1) or []] == ["3.0"]
        assert journal.runs_on("m", 10) == []
        events = [(1.0, "owner_came"), (5.0, "owner_went"), (6.0, "drained")]
        assert journal.events_of_machine("m1", 10) == events
        assert journal.events_of_machine("m1", 2) == events[1:]


@pytest.mark.parametrize(
    ("query", "index"), [(_RUNS_ON, "runs_by_machine"), (_EVENTS_OF, "events_by_machine")]
)
def test_both_are_found_by_an_index(tmp_path: Path, query: str, index: str) -> None:
    with Journal(tmp_path / "journal.sqlite") as journal:
        plan = str(journal._fetch(f"EXPLAIN QUERY PLAN {query}", {"machine": "m1", "limit": 9}))
    assert index in plan
    assert "SCAN" not in plan
    assert "TEMP B-TREE" not in plan


def test_an_older_journal_is_not_searched_through_and_gets_the_indexes_when_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    with monkeypatch.context() as before:
        before.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:7])
        before.setattr(schema, "VERSION", 7)
        with Journal(path) as journal:
            journal.append(ENTRY)
    with Journal(path, read_only=True) as journal:
        assert journal.runs_on("m1", 10) is None
        assert journal.events_of_machine("m1", 10) is None
        assert len(list(journal.runs())) == 3
    with Journal(path) as journal:
        assert len(journal.runs_on("m1", 10) or []) == 2
        assert len(journal.events_of_machine("m1", 10) or []) == 3
