"""Retention: pruning of old rows of the journal, but none that a restart needs."""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

import sqlite3
from typing import Final

from outrider.engine.ingest.set_aside import LAST_S

PIECE: Final = 20_000
"""Sequence numbers per transaction; readers and the writer can work in between."""
_SMALL_PIECE: Final = PIECE // 10
"""The same where rows are deleted until there is room: not many more than need be."""

# Rows dated wrongly, by a garbled record or a clock, must not keep all behind them for ever.
_KEPT_FROM: Final = """SELECT min(seq) FROM (
    SELECT min(seq) AS seq FROM inputs WHERE time_s BETWEEN :before AND :latest
    UNION ALL SELECT min(seq) FROM decisions WHERE time_s BETWEEN :before AND :latest
    UNION ALL SELECT min(seq) FROM outcomes WHERE time_s BETWEEN :before AND :latest)"""
_NOT_FED_AGAIN: Final = ("decisions", "outcomes", "set_aside")
MOST_COMMANDS: Final = 100_000
"""Some 30 MB."""
_PAGES: Final = 2_000
"""Free pages given back to the file system at a time: 8 MB."""
_ROOM_RATIO: Final = 0.95
"""Part of the budget down to which rows are deleted, so that not every batch deletes some."""


def prune_journal(
    connection: sqlite3.Connection,
    before_time_s: float,
    oldest_snapshot_seq: int,
    latest_time_s: float = LAST_S,
) -> int:
    """Delete the rows before the first one that is not older than a time.

    Args:
        connection: open for writing.
        before_time_s: event time in seconds; rows from then on are kept.
        oldest_snapshot_seq: inputs after this sequence number are kept.
        latest_time_s: rows of a later time keep nothing: they are dated wrongly.

    Returns:
        Rows deleted.

    Raises:
        sqlite3.Error: pieces done before the failure stay done.
    """
    counters = "SELECT last_seq, pruned_inputs_seq, pruned_seq FROM counter"
    last_seq, pruned_inputs_seq, pruned_seq = connection.execute(counters).fetchone()
    times = {"before": before_time_s, "latest": latest_time_s}
    first_kept = connection.execute(_KEPT_FROM, times).fetchone()[0]
    until = last_seq if first_kept is None else first_kept - 1
    inputs_until = min(until, oldest_snapshot_seq)
    gone = 0
    for start in range(min(pruned_inputs_seq, pruned_seq), until, PIECE):
        end = min(start + PIECE, until)
        pruned_inputs_seq = max(pruned_inputs_seq, min(end, inputs_until))
        pruned_seq = max(pruned_seq, end)
        gone += _prune_piece(connection, pruned_inputs_seq, pruned_seq)
    return gone


def prune_runs(connection: sqlite3.Connection, before_time_s: float) -> int:
    """Delete the runs before the first one that did not end before a time; returns how many.

    Raises:
        sqlite3.Error: pieces done before the failure stay done.
    """
    query = "SELECT id FROM runs WHERE end_s >= ? ORDER BY id LIMIT 1"
    kept = connection.execute(query, (before_time_s,)).fetchone()
    if kept is None:
        kept = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM runs").fetchone()
    return _delete_runs(connection, kept[0], most=None)


def prune_commands(connection: sqlite3.Connection, before_time_s: float) -> int:
    """Delete the commands that were given before a time, and all but the last; returns how many.

    A script may command every second: no more than `MOST_COMMANDS` are kept.

    Raises:
        sqlite3.Error: none is deleted.
    """
    gone = connection.execute(
        "DELETE FROM commands WHERE at_s < ? OR id <= (SELECT max(id) FROM commands) - ?",
        (before_time_s, MOST_COMMANDS),
    )
    return gone.rowcount


def prune_to_size(
    connection: sqlite3.Connection, budget_bytes: int, oldest_snapshot_seq: int
) -> int:
    """Delete the oldest rows while those that there are take more than a budget.

    Args:
        connection: open for writing.
        budget_bytes: what they may take.
        oldest_snapshot_seq: inputs after this sequence number are kept.

    Returns:
        Rows deleted.

    Raises:
        sqlite3.Error: pieces done before the failure stay done.
    """
    if used_bytes(connection) <= budget_bytes:
        return 0
    counters = "SELECT last_seq, pruned_inputs_seq, pruned_seq FROM counter"
    last_seq, inputs_until, until = connection.execute(counters).fetchone()
    gone = 0
    while used_bytes(connection) > budget_bytes * _ROOM_RATIO:
        start = min(until, inputs_until if inputs_until < oldest_snapshot_seq else until)
        if start < last_seq:
            end = min(start + _SMALL_PIECE, last_seq)
            inputs_until = max(inputs_until, min(end, oldest_snapshot_seq))
            until = max(until, end)
            gone += _prune_piece(connection, inputs_until, until)
        elif runs := _delete_runs(connection, None, most=_SMALL_PIECE):
            gone += runs
        else:
            break
    give_back_pages(connection)
    return gone


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the pages that hold something."""
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def give_back_pages(connection: sqlite3.Connection) -> None:
    """Make the file smaller by its free pages. A journal of before schema 4 keeps them, for use."""
    free = int(connection.execute("PRAGMA freelist_count").fetchone()[0])
    for _ in range(0, free, _PAGES):
        # it gives a row without columns for each page, at the first of which `execute` would end
        connection.executescript(f"PRAGMA incremental_vacuum({_PAGES})")


def _delete_runs(connection: sqlite3.Connection, before_id: int | None, most: int | None) -> int:
    """Delete the first runs, in pieces; returns how many."""
    gone = 0
    while most is None or gone < most:
        done = connection.execute(
            "DELETE FROM runs WHERE id IN "
            "(SELECT id FROM runs WHERE :id IS NULL OR id < :id ORDER BY id LIMIT :most)",
            {"id": before_id, "most": PIECE if most is None else most},
        ).rowcount
        gone += done
        if done == 0:
            break
    return gone


def _prune_piece(connection: sqlite3.Connection, inputs_until: int, until: int) -> int:
    connection.execute("BEGIN IMMEDIATE")
    try:
        gone = 0
        ends = {"inputs": inputs_until} | dict.fromkeys(_NOT_FED_AGAIN, until)
        for table, end in ends.items():
            gone += connection.execute(f"DELETE FROM {table} WHERE seq <= ?", (end,)).rowcount
        connection.execute(
            "UPDATE counter SET pruned_inputs_seq = ?, pruned_seq = ?", (inputs_until, until)
        )
        connection.execute("DELETE FROM checksums WHERE last_seq <= ?", (inputs_until,))
        connection.execute("COMMIT")
        return gone
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
