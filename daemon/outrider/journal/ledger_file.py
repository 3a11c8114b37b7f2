"""Journal file of a replay: written once, fast, and either complete or absent."""

# ruff: noqa: S608 - columns are constants of ours; text is quoted as in SQL.

import hashlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

from outrider.journal.connection import naming_errors
from outrider.journal.records import (
    DECISION_COLUMNS,
    INSERT_DECISION,
    INSERT_OUTCOME,
    AlikeDecision,
    OutcomeRecord,
    Row,
    decision_rows,
    encode_json,
    outcome_rows,
)
from outrider.journal.schema import migrate
from outrider.model.decisions import DecisionRow
from outrider.model.errors import LedgerError

BATCH_ROWS: Final = 20_000


class LedgerFile:
    """Decisions and outcomes of a run, in a file that a read-only `Journal` can open.

    Nothing protects against a crash half way: rows go to a temporary file, which gets the final
        name
    when the ``with`` block ends without an error and is removed otherwise::

        with LedgerFile(path) as ledger:
            ledger.add(DecisionRow(0.0, "1", "start", "m1", 1, "first", "fifo", "active"))

    Args:
        path: the file; an existing one is replaced at the end.

    Attributes:
        meta: properties of the run, by name, as JSON types; `Journal.meta` reads them.

    Raises:
        LedgerError: it cannot be written.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._partial = self.path.with_name(f"{self.path.name}.part")
        self.meta: dict[str, Any] = {}
        self._seq = 0
        self._flushed_seq = 0
        self._rows: dict[tuple[str, str, str], list[Row]] = {}
        self._alike_rows: list[Row] = []
        self._outcome_rows: list[Row] = []
        with naming_errors(self.path, "write the ledger"):
            self._partial.unlink(missing_ok=True)
            self._connection = sqlite3.connect(self._partial, isolation_level=None)
        try:
            with naming_errors(self.path, "write the ledger"):
                self._open()
        except LedgerError:
            self.discard()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()

    def add(self, decision: DecisionRow) -> None:
        """Add one decision; one that several jobs share counts once.

        Raises:
            LedgerError: the file cannot be written.
        """
        self._seq = seq = self._seq + 1
        d = decision
        if isinstance(d, AlikeDecision):
            self._alike_rows += decision_rows([d], seq - 1)
        else:
            source = (d.policy, d.mode, d.input)
            rows = self._rows.get(source)
            if rows is None:
                rows = self._rows[source] = []
            rows.append((
                seq, d.time_s, d.job, d.action, d.machine, d.cpus, d.reason, d.propensity,
                None if d.scores is None else encode_json(d.scores), d.input_age_s, d.gate,
            ))  # fmt: skip
        if seq - self._flushed_seq >= BATCH_ROWS:
            self._flush()

    def add_outcome(self, outcome: OutcomeRecord) -> None:
        """Add the end of a run.

        Raises:
            LedgerError: the file cannot be written.
        """
        self._outcome_rows += outcome_rows([outcome], self._seq)
        self._seq += 1
        if self._seq - self._flushed_seq >= BATCH_ROWS:
            self._flush()

    def finish(self) -> None:
        """Write the rest and give the file its name; called at the end of the ``with`` block.

        Raises:
            LedgerError: it could not be written; there is no file of that name from this run.
        """
        try:
            with naming_errors(self.path, "write the ledger"):
                self._flush()
                self._seal()
                self._partial.replace(self.path)
        except LedgerError:
            self.discard()
            raise

    def discard(self) -> None:
        """Drop everything; a file that existed before stays."""
        self._connection.close()
        with naming_errors(self.path, "remove the unfinished ledger"):
            self._partial.unlink(missing_ok=True)

    def _open(self) -> None:
        for setting in ("journal_mode = MEMORY", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
            self._connection.execute(f"PRAGMA {setting}")
        migrate(self._connection, self._partial)
        self._indexes = self._drop_indexes()
        self._connection.execute("BEGIN")

    def _seal(self) -> None:
        write = self._connection
        write.execute("UPDATE counter SET last_seq = ?", (self._seq,))
        for key, value in self.meta.items():
            write.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (key, encode_json(value)))
        for statement in self._indexes:
            write.execute(statement)
        write.execute("COMMIT")
        write.close()

    def _flush(self) -> None:
        with naming_errors(self.path, "write the ledger"):
            for source, rows in self._rows.items():
                self._connection.executemany(_insert_from(source), rows)
            self._connection.executemany(INSERT_DECISION, self._alike_rows)
            self._connection.executemany(INSERT_OUTCOME, self._outcome_rows)
        self._rows.clear()
        self._alike_rows.clear()
        self._outcome_rows.clear()
        self._flushed_seq = self._seq

    def _drop_indexes(self) -> list[str]:
        """Drop the indexes: building them once at the end costs half as much as updating them."""
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        indexes = self._connection.execute(query).fetchall()
        for name, _ in indexes:
            self._connection.execute(f"DROP INDEX {name}")
        return [statement for _, statement in indexes]


def _insert_from(source: tuple[str, str, str]) -> str:
    """Return an INSERT with the values common to all rows of a run: a fifth faster."""
    policy, mode, input_kind = ("'" + word.replace("'", "''") + "'" for word in source)
    return (
        f"INSERT INTO decisions ({DECISION_COLUMNS}) "
        f"VALUES (?, ?, ?, NULL, ?, ?, ?, ?, {policy}, {mode}, ?, ?, {input_kind}, ?, ?)"
    )


# -- export ----------------------------------------------------------------------------------------
# The hash by which the decisions of two runs are compared.

BLOCK_LINES: Final = 2048
"""Lines hashed together: about 64 KiB, for full speed of SHA-256."""


class LedgerHash:
    r"""Hash ``ledger_sha256`` of decisions added in order.

    Over (time in ms, job, action, machine, cpus), one line for each job that was decided::

        {round(time_s * 1000)}\t{job}\t{action}\t{machine, or nothing}\t{cpus}\n

    in UTF-8. No scores, no floats, no clock: equal for equal decisions in any process. A row shared
    by several jobs counts a line for each of them, so sharing changes nothing.
    """

    __slots__ = ("_digest", "_lines")

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._lines: list[str] = []

    def add(self, time_s: float, job: str, action: str, machine: str | None, cpus: int) -> None:
        """Add one decision about one job."""
        lines = self._lines
        lines.append(f"{round(time_s * 1000)}\t{job}\t{action}\t{machine or ''}\t{cpus}\n")
        if len(lines) >= BLOCK_LINES:
            self._flush()

    def add_decision(self, decision: DecisionRow) -> None:
        """Add one row: a line for its job, or one for each of the jobs that share it."""
        jobs = decision.jobs if isinstance(decision, AlikeDecision) else (decision.job,)
        for job in jobs:
            self.add(decision.time_s, job, decision.action, decision.machine, decision.cpus)

    def hexdigest(self) -> str:
        """Return the hash of the decisions so far; more may be added afterwards."""
        self._flush()
        return self._digest.hexdigest()

    def _flush(self) -> None:
        self._digest.update("".join(self._lines).encode())
        self._lines.clear()


def ledger_sha256(decisions: Iterable[tuple[int, DecisionRow]]) -> str:
    """Return the hash of decisions in the form `Journal.decisions` returns them."""
    total = LedgerHash()
    for _, decision in decisions:
        total.add_decision(decision)
    return total.hexdigest()
