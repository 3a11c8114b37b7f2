"""How a journal is asked, whoever opened it and whatever is asked."""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Final

from outrider.ledger.connection import naming_errors
from outrider.ledger.records import Row

PAGE_ROWS: Final = 4096
"""Rows read at a time: a long read must not hold a transaction open, or the log would grow."""


class JournalQueries:
    """Asks a journal by SQL.

    Every method raises `LedgerError`, which names the file, if rows cannot be read.

    Args:
        path: of the file, for messages.
        connection: to it.
    """

    def __init__(self, path: Path, connection: Connection) -> None:
        self.path = path
        self._connection = connection

    def _has(self, name: str) -> bool:
        """Whether there is a table or an index: a journal of an older version is read as it is."""
        return bool(self._fetch("SELECT 1 FROM sqlite_master WHERE name = :name", {"name": name}))

    def _pages(
        self,
        table: str,
        columns: str,
        after: int,
        limit: int | None = None,
        where: str = "1",
        values: dict[str, Any] | None = None,
    ) -> Iterator[Row]:
        left = limit
        query = (
            f"SELECT {columns} FROM {table} WHERE seq > :after AND {where} "
            "ORDER BY seq LIMIT :limit"
        )
        while left is None or left > 0:
            wanted = PAGE_ROWS if left is None else min(PAGE_ROWS, left)
            rows = self._fetch(query, {**(values or {}), "after": after, "limit": wanted})
            yield from rows
            if len(rows) < wanted:
                return
            after = rows[-1][0]
            left = None if left is None else left - wanted

    def _fetch(self, query: str, values: dict[str, Any] | None = None) -> list[Row]:
        with naming_errors(self.path, "read the journal"):
            return self._connection.execute(query, values or {}).fetchall()
