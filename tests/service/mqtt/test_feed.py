"""Published rows of a journal: selection, pieces, and reports of lost ones."""

from pathlib import Path

import pytest

from outrider.journal import Entry, Journal, OutcomeRecord
from outrider.model.decisions import DecisionRow
from outrider.service.mqtt.publisher import PIECE_ROWS, Numbered, read_piece


def decision(time_s: float, job: str) -> DecisionRow:
    return DecisionRow(time_s, job, "start", "lab-1", 1, "best", "bandit", "shadow")


def end(
    time_s: float, job: str, policy: str, ending: str = "evicted", machine: str | None = "lab-1"
) -> OutcomeRecord:
    reason = "" if ending == "completed" else "owner"
    return OutcomeRecord(time_s, job, machine, ending, reason, 9.5, policy)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the journal of a test is."""
    return tmp_path / "journal.sqlite"


def write(path: Path, *entries: Entry) -> None:
    with Journal(path) as journal:
        for entry in entries:
            journal.append(entry)


def read_all(path: Path) -> list[Numbered]:
    """Return every row, piece by piece, as the publisher goes on."""
    rows: list[Numbered] = []
    after = 0
    while True:
        piece = read_piece(path, after)
        rows += piece.rows
        assert all(after < seq <= piece.until for seq, _ in piece.rows)
        if piece.until == after:
            return rows
        after = piece.until


def test_decisions_and_evictions_come_in_the_order_of_their_numbers(path: Path) -> None:
    write(
        path,
        Entry(decisions=[decision(1.0, "a")], outcomes=[end(1.0, "b", "bandit")]),
        Entry(decisions=[decision(2.0, "c")], outcomes=[end(2.0, "d", "bandit", "completed")]),
    )
    piece = read_piece(path, 0)
    assert [(seq, row.job) for seq, row in piece.rows] == [(1, "a"), (2, "b"), (3, "c")]
    assert (piece.until, piece.lost) == (4, 0)
    assert read_piece(path, 4).rows == []


def test_a_run_thrown_away_is_told_once_however_many_policies_learn_from_it(path: Path) -> None:
    told = [end(1.0, job, policy) for job in ("a", "b") for policy in ("bandit", "sarsa", "wolf")]
    write(path, Entry(outcomes=told))
    assert [(seq, row.job) for seq, row in read_piece(path, 0).rows] == [(1, "a"), (4, "b")]
    for after in (1, 2):  # also where a piece ended between the rows that tell of one run
        assert [seq for seq, _ in read_piece(path, after).rows] == [4]


def test_removed_runs_count_and_jobs_that_never_ran_do_not(path: Path) -> None:
    killed, cancelled = end(1.0, "a", "", "removed"), end(2.0, "b", "", "removed", machine=None)
    write(path, Entry(outcomes=[killed, cancelled]))
    assert [row for _, row in read_piece(path, 0).rows] == [killed]


def test_pieces_of_a_long_journal_hold_every_row_once(path: Path) -> None:
    n = 2 * PIECE_ROWS + 17
    entries = [
        Entry(
            decisions=[decision(t, f"d{t}")],
            outcomes=[end(t, f"e{t}", policy) for policy in ("bandit", "sarsa")],
        )
        for t in range(n)
    ]
    write(path, *entries)
    jobs = [row.job for _, row in read_all(path)]
    assert jobs == [name for t in range(n) for name in (f"d{t}", f"e{t}")]


def test_what_retention_removed_before_is_counted(path: Path) -> None:
    write(path, *(Entry(decisions=[decision(float(t), f"d{t}")]) for t in range(10)))
    with Journal(path) as journal:
        assert journal.prune(6.0, oldest_snapshot_seq=10) == 6
    piece = read_piece(path, 2)
    assert piece.lost == 4
    assert [row.job for _, row in piece.rows] == ["d6", "d7", "d8", "d9"]
    assert read_piece(path, 6).lost == 0
