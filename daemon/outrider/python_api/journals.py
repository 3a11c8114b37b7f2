"""`outrider.open_journal`: what a ledger or a daemon's journal holds."""

from pathlib import Path
from typing import Any, Self

from outrider.journal import Journal, rows_of
from outrider.python_api.records import Records


class JournalTables:
    """The tables of a ledger or journal, open to read; a context manager, which closes it.

    Columns are those of docs/reference/ledger-tables.md. Rows are read as they are asked for; a
    daemon may be writing meanwhile.

    Args:
        path: of the file.

    Raises:
        LedgerError: it cannot be opened, or is no journal of Outrider's.
    """

    def __init__(self, path: Path | str) -> None:
        self._journal = Journal(path, read_only=True)
        self.path = Path(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def decisions(self) -> Records:
        """What policies decided, with scores."""
        return self.rows("decisions")

    @property
    def outcomes(self) -> Records:
        """How runs ended, with the rewards of the policies that learned from them."""
        return self.rows("outcomes")

    @property
    def runs(self) -> Records:
        """Runs that ended; of daemons' journals only."""
        return self.rows("runs")

    @property
    def commands(self) -> Records:
        """What was commanded; of daemons' journals only."""
        return self.rows("commands")

    def rows(self, table: str, job: str | None = None) -> Records:
        """Rows of a table, all or of one job. Raises `LedgerError` for an unknown table."""
        rows = rows_of(self._journal, table, job)
        return Records(rows.table, rows.as_they_are)

    def meta(self, key: str, default: Any = None) -> Any:
        """A property of a replay's ledger, as ``policy``, ``seed`` or ``settings``."""
        return self._journal.meta(key, default)

    def close(self) -> None:
        """Close the file; rows cannot be read any more."""
        self._journal.close()


def open_journal(path: Path | str) -> JournalTables:
    """Open a ledger of ``outrider replay --ledger``, or a daemon's journal, to read.

    Args:
        path: of the file; a daemon may be writing it meanwhile.

    Returns:
        Its tables: `decisions`, `outcomes`, `runs` and `commands`, a context manager.

    Raises:
        LedgerError: it cannot be opened, or is no journal of Outrider's.
    """
    return JournalTables(path)
