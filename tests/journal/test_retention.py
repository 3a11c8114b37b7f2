"""A journal within its budget: the oldest rows go first, and none that a restart needs."""

import asyncio
from pathlib import Path

import pytest

from outrider.journal import Entry, Journal, RunRecord, verify
from outrider.journal.journal import give_back_pages, prune_journal
from outrider.model.events import SUBMITTED
from outrider.model.jobs import JobSpec
from outrider.service.journal.recording import Recording
from tests.journal.samples import decision, numbered_entry

BUDGET = 1_000_000


def entry(number: int) -> Entry:
    """Ten submissions, a decision and a run of one second of event time."""
    spec = JobSpec(user="somebody", vo="physics")
    return Entry(
        inputs=[("log", (float(number), SUBMITTED, f"{number}.{n}", spec)) for n in range(10)],
        decisions=[decision(float(number))],
        runs=[
            RunRecord(f"{number}.0", "physics", "batch", "lab-1", 1, None, number - 1, number, 1.0)
        ],
        cursors={"log": number},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of two megabytes."""
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        journal.append_all([entry(number) for number in range(2_500)])
        assert journal.used_bytes() > 2 * BUDGET
    return path


def test_the_oldest_rows_are_dropped_until_it_fits_and_the_file_is_smaller(path: Path) -> None:
    with Journal(path) as journal:
        last = journal.last_seq()
        gone = journal.keep_within(BUDGET, oldest_snapshot_seq=last)
        assert 0.8 * BUDGET < journal.used_bytes() <= BUDGET
        assert journal.keep_within(BUDGET, oldest_snapshot_seq=last) == 0
        inputs = [seq for seq, _, _ in journal.inputs_after(0)]
        assert inputs[-1] == last - 1
        assert inputs[0] == journal.pruned_seq() + 1
        assert len(inputs) + len(list(journal.decisions())) == last - gone
        assert len(list(journal.runs())) == 2_500  # runs outlive events
        assert journal.cursor("log") == 2_499
    assert path.stat().st_size <= 1.1 * BUDGET
    assert verify(path).ok


def test_room_is_made_for_what_comes_next(path: Path) -> None:
    with Journal(path) as journal:
        for _ in range(6):
            budget = journal.used_bytes() - 1
            journal.keep_within(budget, oldest_snapshot_seq=journal.last_seq())
            assert journal.used_bytes() <= 0.95 * budget


def test_inputs_after_the_oldest_snapshot_stay_whatever_they_take(path: Path) -> None:
    with Journal(path) as journal:
        journal.keep_within(BUDGET, oldest_snapshot_seq=5_000)
        assert next(journal.inputs_after(0))[0] == 5_001
        assert list(journal.decisions()) == []
        assert journal.used_bytes() > BUDGET
    assert verify(path).ok


def test_runs_go_last_where_nothing_else_is_left(path: Path) -> None:
    with Journal(path) as journal:
        journal.keep_within(160_000, oldest_snapshot_seq=journal.last_seq())
        runs = [run.end_s for _, run in journal.runs()]
        assert 0 < len(runs) < 2_500
        assert runs[-1] == 2_499.0
        assert journal.append(entry(3_000)) == 2_500 * 11 + 11
    assert verify(path).ok


def test_runs_are_kept_for_longer_than_events(path: Path) -> None:
    with Journal(path) as journal:
        journal.prune(2_000.0, oldest_snapshot_seq=journal.last_seq(), runs_before_s=1_000.0)
        assert next(journal.inputs_after(0))[2][0] == 2_000.0
        runs = list(journal.runs())
        assert [run.end_s for _, run in runs] == [float(n) for n in range(1_000, 2_500)]
        assert runs[0][1].vo == "physics"
    assert verify(path).ok


def test_the_daemon_says_what_it_dropped_and_still_does_after_a_restart(path: Path) -> None:
    async def keep() -> None:
        recording.snapshots.save(recording.last_seq, {})
        await recording.retention.keep_within(BUDGET)
        await recording.settle()

    recording = Recording(path.parent)
    asyncio.run(keep())
    figures = recording.figures()
    recording.close()
    assert figures["dropped_rows"] > 10_000
    assert figures["budget_bytes"] == BUDGET
    assert recording.retention.over_budget is not None
    assert "oldest rows were dropped before their time" in recording.retention.over_budget
    again = Recording(path.parent)
    assert again.figures()["dropped_rows"] == figures["dropped_rows"]
    again.close()


def test_the_daemon_says_so_where_it_cannot_keep_its_budget(path: Path) -> None:
    recording = Recording(path.parent)  # without a snapshot every input is needed
    asyncio.run(recording.retention.keep_within(BUDGET))
    recording.close()
    assert recording.retention.over_budget is not None
    assert "more than its budget of 1,000,000" in recording.retention.over_budget


def test_who_watches_a_journal_hears_of_all_that_pruning_does(tmp_path: Path) -> None:
    """A long pruning must not look like a disk that hangs."""
    with Journal(tmp_path / "journal.sqlite") as journal:
        for number in range(10):
            large = numbered_entry(number, rows=1_000)
            large.meta = {f"ballast {number}": "x" * 1_000_000}
            journal.append(large)
        heard: list[str] = []
        doing = "pruning"
        journal.watch(lambda: heard.append(doing))
        assert prune_journal(journal._connection, 1e12, 10**9) > 0
        journal._connection.execute("DELETE FROM meta")
        doing = "giving back"
        give_back_pages(journal._connection)
        journal.reopen()
        doing = "recording"
        for number in range(3):
            journal.append(numbered_entry(number, rows=1_000))
    assert set(heard) == {"pruning", "giving back", "recording"}
