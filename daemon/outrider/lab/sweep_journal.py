"""The journal of a running sweep: a line for each finished cell, which a kill -9 leaves behind."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from outrider.lab.line_file import LineFile
from outrider.lab.sweep_results import Row, read_row, read_rows, write_rows
from outrider.model.errors import ConfigurationError


class Journal:
    """The rows of finished cells beside the results, a line each; it outlives a kill -9.

    Args:
        out: the file of the results, which may be there from an earlier sweep.
        resume: keep the rows that are there; otherwise there must be none.

    Attributes:
        rows: rows of cells that did not fail, by key.
    """

    def __init__(self, out: Path, resume: bool) -> None:
        self.out = out
        self.path = out.with_name(f"{out.name}.journal")
        self.rows: dict[str, Row] = {}
        self._resume = resume

    def __enter__(self) -> Self:
        """Lock the journal and read what is there.

        Raises:
            ConfigurationError: another process writes here, or there are results already and this
                is not to resume.
            LedgerError: what is there cannot be read.
        """
        for there in (self.path, self.out):
            if there.exists() and not self._resume:
                raise ConfigurationError(
                    f"{there}: there already; --resume goes on with it, another --out leaves it"
                )
        self._file = LineFile(self.path)
        try:
            known = read_rows(self.out) if self.out.exists() else []
            known += [read_row(x, f"{self.path}:{n}") for n, x in enumerate(self._file.lines, 1)]
        except BaseException:
            self._file.close()
            raise
        self.rows = {row["cell"]: row for row in known if row["error"] is None}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take an empty journal away."""
        self._file.close()

    def add(self, row: Row) -> None:
        """Keep the row of a cell that has just finished; it is on the disk on return."""
        self.rows[row["cell"]] = row
        self._file.add(msgspec.json.encode(row))

    def compact(self, rows: Sequence[Row]) -> None:
        """Write the results, whole or not at all, and empty the journal."""
        write_rows(self.out, rows)
        self._file.clear()
