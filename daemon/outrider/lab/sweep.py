"""Running a sweep: what is known is kept, what failed is tried again, what still fails is told."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from outrider import __version__
from outrider.lab.cells import Cell, run_cell
from outrider.lab.sweep_cluster import SideBySide
from outrider.lab.sweep_file import SweptCell
from outrider.lab.sweep_journal import Journal
from outrider.lab.sweep_results import Row, flat
from outrider.model.errors import ConfigurationError


class Swept(NamedTuple):
    """How a sweep ended: rows in the order of the cells, and how many were there before."""

    rows: list[Row]
    kept: int

    @property
    def failed(self) -> list[Row]:
        """Rows of cells that failed to the last."""
        return [row for row in self.rows if row["error"] is not None]


def measure(cell: Cell) -> Row:
    """Run a cell where this is called, and name the version that did."""
    return {"version": __version__} | dict(flat(run_cell(cell)))


def run_sweep(
    cells: Sequence[SweptCell],
    side_by_side: SideBySide,
    journal: Journal,
    retries: int,
    progress: Callable[[float], None],
    warn: Callable[[str], None],
) -> Swept:
    """Run the cells that the journal does not know, and write the results.

    Args:
        cells: of the sweep.
        side_by_side: does `measure` on every `Cell` it is given.
        journal: open.
        retries: how often a failed cell is tried again, after all others.
        progress: called with the ratio of cells that are done.
        warn: told of every failure, in words.

    Raises:
        ConfigurationError: rows that are there belong to other cells, or were made by another
            version.
    """
    _refuse_strangers(cells, journal)
    left = [cell for cell in cells if cell.key not in journal.rows]
    kept = len(cells) - len(left)
    failures: dict[str, Row] = {}
    for attempt in range(1, retries + 2):
        trying, left = left, []
        for finished in side_by_side([swept.cell for swept in trying]) if trying else ():
            swept = trying[finished.number]
            error = finished.error or _of_another_version(finished.result)
            if error is None:
                journal.add(_head(swept, None, attempt) | _measured(finished.result))
                failures.pop(swept.key, None)
            else:
                warn(f"{swept.cell}: failed, attempt {attempt}: {error}")
                failures[swept.key] = _head(swept, error, attempt) | _settings(swept)
                left.append(swept)
            progress(len(journal.rows) / len(cells))
    rows = [failures.get(c.key) or journal.rows[c.key] for c in cells]
    journal.compact(rows)
    return Swept(rows, kept)


def _head(swept: SweptCell, error: str | None, attempts: int) -> Row:
    return {
        "cell": swept.key,
        "trace": swept.trace,
        "policy": swept.cell.policy,
        "preset": swept.cell.preset,
        "seed": swept.cell.seed,
        "error": error,
        "attempts": attempts,
        "version": __version__,
    }


def _measured(result: Row) -> Row:
    """What a run brought, without the trace's path on the machine where it ran."""
    return {name: value for name, value in result.items() if name != "trace"}


def _settings(swept: SweptCell) -> Row:
    """The settings as given: those that took effect are not known of a run that failed."""
    return dict(flat({"settings": dict(swept.cell.settings)}))


def _of_another_version(result: Any) -> str | None:
    if result["version"] == __version__:
        return None
    return f"its worker has Outrider {result['version']}; this is {__version__}"


def _refuse_strangers(cells: Sequence[SweptCell], journal: Journal) -> None:
    """Rows that are no part of this sweep would be lost with it, or compared with its own."""
    known = {cell.key for cell in cells}
    for key, row in journal.rows.items():
        about = f"{row['policy']}, seed {row['seed']}, on {row['trace']}"
        if key not in known:
            raise ConfigurationError(
                f"{journal.out}: has a row of {about}, with settings that are not in this sweep or "
                "from a trace that has changed since; right would be another --out"
            )
        if row["version"] != __version__:
            raise ConfigurationError(
                f"{journal.out}: the row of {about} was made by Outrider {row['version']}, this is "
                f"{__version__}, and the two cannot be compared; right would be another --out"
            )
