"""How an entry becomes rows of a journal."""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

from collections.abc import Iterable
from sqlite3 import Connection
from typing import Final

from outrider.journal.checksums import row_crc, sum_up
from outrider.journal.extras import encode_json
from outrider.journal.records import (
    COMMAND_COLUMNS,
    DECISION_COLUMNS,
    INPUT_COLUMNS,
    OUTCOME_COLUMNS,
    RUN_COLUMNS,
    SET_ASIDE_COLUMNS,
    CommandRecord,
    Entry,
    Row,
    RunRecord,
    decision_rows,
    input_rows,
    outcome_rows,
    set_aside_rows,
)

_INSERT_INPUT: Final = f"INSERT INTO inputs ({INPUT_COLUMNS}) VALUES ({', '.join('?' * 6)})"
INSERT_DECISION: Final = (
    f"INSERT INTO decisions ({DECISION_COLUMNS}) VALUES ({', '.join('?' * 15)})"
)
INSERT_OUTCOME: Final = f"INSERT INTO outcomes ({OUTCOME_COLUMNS}) VALUES ({', '.join('?' * 10)})"
_INSERT_SET_ASIDE: Final = (
    f"INSERT INTO set_aside ({SET_ASIDE_COLUMNS}) VALUES ({', '.join('?' * 8)})"
)
_PUT_CURSOR: Final = "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?, ?)"
_INSERT_RUN: Final = f"INSERT INTO runs ({RUN_COLUMNS}, crc) VALUES ({', '.join('?' * 11)})"
_INSERT_COMMAND: Final = (
    f"INSERT INTO commands ({COMMAND_COLUMNS}, crc) VALUES ({', '.join('?' * 11)})"
)
_PUT_META: Final = "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)"


def append_entries(write: Connection, entries: Iterable[Entry], last_seq: int) -> list[int]:
    """Write entries in order, within the transaction that is open.

    Args:
        write: the journal's connection.
        entries: what to record.
        last_seq: the last sequence number given out.

    Returns:
        For each entry the last sequence number given out when it was recorded.
    """
    seqs, seq = [], last_seq
    for entry in entries:
        if entry.inputs:
            write.executemany(_INSERT_INPUT, input_rows(entry, seq))
            seq += len(entry.inputs)
        if entry.decisions:
            write.executemany(INSERT_DECISION, decision_rows(entry.decisions, seq))
            seq += len(entry.decisions)
        if entry.outcomes:
            write.executemany(INSERT_OUTCOME, outcome_rows(entry.outcomes, seq))
            seq += len(entry.outcomes)
        if entry.set_aside:
            write.executemany(_INSERT_SET_ASIDE, set_aside_rows(entry.set_aside, seq))
            seq += len(entry.set_aside)
        for adapter, cursor in entry.cursors.items():
            position = (adapter, encode_json(cursor), seq)
            write.execute(_PUT_CURSOR, (*position, row_crc(position)))
        for key, value in entry.meta.items():
            fact = (key, encode_json(value))
            write.execute(_PUT_META, (*fact, row_crc(fact)))
        if entry.runs:
            write.executemany(_INSERT_RUN, map(_run_row, entry.runs))
        for command in entry.commands:
            write.execute(_INSERT_COMMAND, _command_row(command, seq))
        seqs.append(seq)
    sum_up(write, last_seq, seq)
    write.execute("UPDATE counter SET last_seq = ?", (seq,))
    return seqs


def _run_row(run: RunRecord) -> Row:
    # as the columns give them back: an integer in a column of real numbers would be another value
    values = (
        run.job, run.vo, run.job_class, run.machine, run.cpus,
        None if run.submit_s is None else float(run.submit_s),
        float(run.start_s), float(run.end_s), float(run.run_s), run.reason,
    )  # fmt: skip
    return (*values, row_crc(values))


def _command_row(command: CommandRecord, seq: int) -> Row:
    values = (
        seq, float(command.at_s), command.command, command.uid, command.user, command.from_mode,
        command.to_mode, command.outcome, command.why, command.detail,
    )  # fmt: skip
    return (*values, row_crc(values))
