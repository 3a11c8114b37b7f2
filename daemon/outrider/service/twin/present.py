"""Load and waste of the last weeks, by which it is told whether a forecast still holds."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from outrider.ledger import Journal
from outrider.ledger.records import RunRecord
from outrider.model.events import TICK
from outrider.service.twin.twin_file import Present

WINDOW_S: Final = 14 * 86_400.0
_LAST_ROWS: Final = 4096
"""Among so many of the last rows it is told up to when the site was seen."""


class PresentLoad:
    """Reads the runs of a journal that ended in its last two weeks.

    It remembers which rows are older, so that each look reads little more than those weeks.

    Args:
        path: the journal.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._older = 0

    def look(self) -> Present | None:
        """Load and waste now; None where the journal tells of no run.

        Raises:
            LedgerError: the journal cannot be read.
        """
        with Journal(self._path, read_only=True) as journal:
            runs = journal.runs(self._older)
            first = next(runs, None)
            if first is None and self._older:  # a new journal is in the place of the old one
                runs, self._older = journal.runs(), 0
                first = next(runs, None)
            if first is None:
                return None
            return self._sum(chain([first], runs), _seen_until(journal))

    def _sum(self, runs: Iterator[tuple[int, RunRecord]], seen_s: float | None) -> Present:
        ended = list(runs)
        until_s = seen_s if seen_s is not None else max(run.end_s for _, run in ended)
        begin_s = until_s - WINDOW_S
        good_s = bad_s = 0.0
        for number, run in ended:
            if run.end_s <= begin_s:
                self._older = number
            elif run.reason:
                bad_s += run.cpus * run.run_s
            else:
                good_s += run.cpus * run.run_s
        work_s = good_s + bad_s
        return Present(until_s, work_s / WINDOW_S, bad_s / work_s if work_s else None)


def _seen_until(journal: Journal) -> float | None:
    """Up to when the site was seen, event time; None: the last rows do not tell."""
    last = journal.inputs_after(max(0, journal.last_seq() - _LAST_ROWS))
    return max((event[0] for _, _, event in last if event[1] == TICK), default=None)
