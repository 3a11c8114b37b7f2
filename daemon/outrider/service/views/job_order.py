"""Orders of the list of jobs, and cursors that stay right while jobs come and go."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from outrider.model.jobs import Job
from outrider.service.views.job_waits import waits_s

JobSort: TypeAlias = Literal[
    "known", "-known", "waiting_s", "-waiting_s", "run_s", "-run_s",
    "lost_s", "-lost_s", "cpus", "-cpus",
]  # fmt: skip
"""What the list is sorted by; with a minus, the greatest first."""
JOB_SORTS: Final[tuple[str, ...]] = get_args(JobSort)
KNOWN: Final = "known"


def _run_s(jobs: Sequence[Job], at_s: float) -> Iterator[float]:
    """As `Job.run_s`, but below 0 for a run that began later: it comes behind all others."""
    for job in jobs:
        if job.machine < 0:
            yield math.nan
        else:
            yield job.run_s(at_s) if at_s >= job.start_s else at_s - job.start_s


_VALUES: Final[Mapping[str, Callable[[Sequence[Job], float], Iterable[float]]]] = {
    KNOWN: lambda jobs, _: map(attrgetter("number"), jobs),
    "waiting_s": waits_s,
    "run_s": _run_s,
    "lost_s": lambda jobs, _: map(attrgetter("lost_s"), jobs),
    "cpus": lambda jobs, _: map(attrgetter("spec.cpus"), jobs),
}
"""What jobs are sorted by at a moment; NaN where it is not known."""


class CursorError(ValueError):
    """A cursor that is none, or one of another order; the message says what is right."""


class _Place(NamedTuple):
    """A place in an order: behind a job, which need not be there any more.

    `at_s` is the moment whose values are compared, `rank` infinite where the value is not known.
    """

    at_s: float
    rank: float
    number: int


class JobOrder:
    """One order of jobs: what is not known comes last whichever way, equals as they became known.

    A job that keeps its place stands on exactly one page, however many come or go between two. To
    wait and to run change nobody's place: all pages compare what was at the moment of the first.

    Args:
        sort: one of `JOB_SORTS`.
    """

    def __init__(self, sort: str) -> None:
        self._sort = sort
        self._by = sort.removeprefix("-")
        self._sign = -1.0 if sort.startswith("-") else 1.0

    def behind(
        self, cursor: str | None, jobs: Sequence[Job], now_s: float
    ) -> Iterator[tuple[str, Job]]:
        """The jobs behind a cursor, in this order, each with a cursor of its own.

        Args:
            cursor: that of a job, given earlier; None: from the first.
            jobs: in any order.
            now_s: the moment whose values are compared from the first page on.

        Raises:
            CursorError: the cursor is none of this order's.
        """
        start = _Place(now_s, -math.inf, -1) if cursor is None else self._place(cursor)
        at_s = start.at_s
        values = np.fromiter(_VALUES[self._by](jobs, at_s), float, len(jobs))
        ranks = np.where(np.isnan(values), math.inf, self._sign * values)
        numbers = np.fromiter(map(attrgetter("number"), jobs), np.int64, len(jobs))
        follows = (ranks > start.rank) | ((ranks == start.rank) & (numbers > start.number))
        at = np.flatnonzero(follows)
        at = at[np.lexsort((numbers[at], ranks[at]))]
        return (
            (self._text(_Place(at_s, float(ranks[n]), jobs[n].number)), jobs[n])
            for n in at.tolist()
        )

    def _text(self, place: _Place) -> str:
        if self._by == KNOWN:
            return str(place.number)
        return f"{self._sort}:{place.at_s!r}:{place.rank!r}:{place.number}"

    def _place(self, text: str) -> _Place:
        sort, *words = text.split(":")
        try:
            if self._by == KNOWN and not words:
                number = int(text)
                return _Place(0.0, self._sign * number, number)
            if sort == self._sort and self._by != KNOWN:
                at_s, rank, number = float(words[0]), float(words[1]), int(words[2])
                if len(words) == 3 and math.isfinite(at_s) and not math.isnan(rank):
                    return _Place(at_s, rank, number)
        except (ValueError, IndexError):
            pass
        raise CursorError(
            f'"after" = {text!r}: right would be what `next` of the page before said, which was '
            f'sorted by "{self._sort}", too'
        )
