"""Retention: pruning of old rows of the journal, but none that a restart needs."""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

import sqlite3
from typing import Final

from outrider.engine.ingest.set_aside import LAST_S

PIECE: Final = 20_000
"""Sequence numbers per transaction; readers and the writer can work in between."""

# Rows dated wrongly, by a garbled record or a clock, must not keep all behind them for ever.
_KEPT_FROM: Final = """SELECT min(seq) FROM (
    SELECT min(seq) AS seq FROM inputs WHERE time_s BETWEEN :before AND :latest
    UNION ALL SELECT min(seq) FROM decisions WHERE time_s BETWEEN :before AND :latest
    UNION ALL SELECT min(seq) FROM outcomes WHERE time_s BETWEEN :before AND :latest)"""
_NOT_FED_AGAIN: Final = ("decisions", "outcomes", "set_aside")


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
        connection.execute("COMMIT")
        return gone
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
