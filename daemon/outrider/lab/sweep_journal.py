"""The journal of a running sweep: a line for each finished cell, which a kill -9 leaves behind."""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

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
            ConfigurationError: another sweep writes here, or there are results already and this
                is not to resume.
            LedgerError: what is there cannot be read.
        """
        for there in (self.path, self.out):
            if there.exists() and not self._resume:
                raise ConfigurationError(
                    f"{there}: there already; --resume goes on with it, another --out leaves it"
                )
        self._file: BinaryIO = self.path.open("a+b")
        try:
            self._lock()
            known = read_rows(self.out) if self.out.exists() else []
            known += self._lines()
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
        if os.fstat(self._file.fileno()).st_size == 0:
            self.path.unlink()
        self._file.close()

    def add(self, row: Row) -> None:
        """Keep the row of a cell that has just finished; it is on the disk on return."""
        self.rows[row["cell"]] = row
        self._file.write(msgspec.json.encode(row) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def compact(self, rows: Sequence[Row]) -> None:
        """Write the results, whole or not at all, and empty the journal."""
        write_rows(self.out, rows)
        self._file.truncate(0)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigurationError(f"{self.path}: another sweep is writing to it") from error

    def _lines(self) -> list[Row]:
        """The rows of the journal. A last line that was cut off by a kill is taken away."""
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._file.truncate(len(whole))
        return [read_row(line, f"{self.path}:{n}") for n, line in enumerate(whole.splitlines(), 1)]
