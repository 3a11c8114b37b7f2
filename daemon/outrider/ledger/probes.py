"""Whether a journal is as its schema says, tried before anything rests on it."""

# ruff: noqa: S608 - names of tables and columns are constants of ours.

from sqlite3 import Connection
from typing import Final

from outrider.ledger.records import (
    COMMAND_COLUMNS,
    DECISION_COLUMNS,
    INPUT_COLUMNS,
    OUTCOME_COLUMNS,
    RUN_COLUMNS,
    SET_ASIDE_COLUMNS,
)

_NUMBERED: Final = ("inputs", "decisions", "outcomes", "set_aside")
_COLUMNS: Final = {
    "inputs": INPUT_COLUMNS,
    "decisions": DECISION_COLUMNS,
    "outcomes": OUTCOME_COLUMNS,
    "set_aside": SET_ASIDE_COLUMNS,
    "runs": f"id, {RUN_COLUMNS}, crc",
    "commands": f"id, {COMMAND_COLUMNS}, crc",
    "cursors": "adapter, cursor, seq, crc",
    "meta": "key, value, crc",
    "checksums": "last_seq, first_seq, crc",
    "counter": "only, last_seq, pruned_inputs_seq, pruned_seq, open_first_seq, open_crc",
}

_AN_EMPTY_DECISION: Final = (
    "SELECT last_seq + 1, 0, '', '[]', '', NULL, 0, '', '', '', NULL, NULL, '', NULL, NULL "
    "FROM counter"
)
_PROBES: Final = (
    "INSERT INTO inputs SELECT last_seq + 1, '', 0, '', '', NULL FROM counter",
    f"INSERT INTO decisions ({DECISION_COLUMNS}) {_AN_EMPTY_DECISION}",
    "INSERT INTO outcomes SELECT last_seq + 1, 0, '', NULL, '', '', 0, '', NULL, 0 FROM counter",
    "INSERT INTO set_aside SELECT last_seq + 1, '', 0, '', '', NULL, '', '' FROM counter",
    "INSERT INTO checksums SELECT last_seq + 1, 0, 0 FROM counter",
    "INSERT INTO runs VALUES (NULL, '', '', '', '', 0, NULL, 0, 0, 0, '', 0)",
    "INSERT INTO commands VALUES (NULL, 0, 0, '', NULL, '', '', '', '', '', '', 0)",
    "UPDATE cursors SET seq = seq + 1",
    "UPDATE meta SET crc = 0",
    "UPDATE counter SET last_seq = last_seq + 1",
)
"""None of these stays."""


def probe_reading(connection: Connection) -> None:
    """Ask for every column, and for what each write needs, but for no rows."""
    for table, columns in _COLUMNS.items():
        connection.execute(f"SELECT {columns} FROM {table} WHERE 0").fetchall()
    counters = "SELECT last_seq + pruned_seq + pruned_inputs_seq + open_crc FROM counter"
    connection.execute(counters).fetchall()[0]
    connection.execute("SELECT max(seq) FROM decisions").fetchall()


def probe_writing(connection: Connection) -> None:
    """Write a row into every table, as the next entry would, and take it back."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _PROBES:
            connection.execute(statement)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def last_numbered(connection: Connection) -> int:
    """The greatest sequence number of any row that is there; 0 if there is none."""
    newest = " UNION ALL ".join(f"SELECT max(seq) AS seq FROM {table}" for table in _NUMBERED)
    query = f"SELECT coalesce(max(seq), 0) FROM ({newest})"
    return int(connection.execute(query).fetchall()[0][0])
