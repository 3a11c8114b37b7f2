"""Runs that are done, kept beside a report: what was stopped after hours goes on with them."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from outrider import __version__
from outrider.lab.cells import Cell, run_cell
from outrider.lab.line_file import LineFile
from outrider.lab.workers import Finished, side_by_side
from outrider.model.errors import ConfigurationError

RUNS_FILE: Final = "runs.jsonl"


class KeptRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the file: a cell in words, who ran it, and the report it brought."""

    cell: str
    version: str
    report: dict[str, Any]


class KeptRuns:
    """Reports of cells that did not fail, by the cell in words.

    Args:
        folder: of the report; the runs are kept there in `RUNS_FILE`. None: nothing is kept.
        resume: go on with those that are there; otherwise there must be none.
    """

    def __init__(self, folder: Path | None, resume: bool) -> None:
        self._path = None if folder is None else folder / RUNS_FILE
        self._resume = resume
        self._file: LineFile | None = None
        self._reports: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        """Read what is there.

        Raises:
            ConfigurationError: another process writes there; runs are there and this is not to
                resume; or they cannot be read, or are of another version.
        """
        if self._path is None:
            return self
        if self._path.exists() and not self._resume:
            raise ConfigurationError(
                f"{self._path}: runs of a report that was stopped; --resume goes on with them, "
                "another --report leaves them"
            )
        self._file = LineFile(self._path)
        try:
            for n, line in enumerate(self._file.lines, 1):
                run = _read(line, f"{self._path}:{n}")
                self._reports[run.cell] = run.report
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def ends(
        self, cells: Sequence[Cell], workers: int, group_of: Callable[[Cell], Hashable]
    ) -> Iterator[Finished]:
        """Run the cells that are not known; yield every one as `side_by_side` does."""
        left = []
        for number, cell in enumerate(cells):
            report = self._reports.get(str(cell))
            if report is None:
                left.append(number)
            else:
                yield Finished(number, report, None)
        for end in side_by_side([cells[n] for n in left], run_cell, workers, group_of):
            number = left[end.number]
            if end.error is None and self._file is not None:
                kept = KeptRun(str(cells[number]), __version__, end.result)
                self._file.add(msgspec.json.encode(kept))
            yield end._replace(number=number)

    def done(self) -> None:
        """The report is written: its runs need not be kept any more."""
        if self._file is not None:
            self._file.clear()


def _read(line: bytes, where: str) -> KeptRun:
    try:
        run = msgspec.json.decode(line, type=KeptRun)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ConfigurationError(
            f"{where}: {error}; right would be a run of a report that was stopped"
        ) from error
    if run.version != __version__:
        raise ConfigurationError(
            f"{where}: made by Outrider {run.version}, this is {__version__}, and the two cannot "
            "be compared; right would be another --report"
        )
    return run
