"""Filters, orders and waits of the list of jobs."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import compress
from operator import attrgetter
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from outrider.engine.state.site import Site
from outrider.model.jobs import HELD_STATE, JOB_STATE_NAMES, QUEUED, Job
from outrider.model.reasons import reason_text
from outrider.service.core.core import Core
from outrider.service.shapes.values import UserName, VoName

# -- job filters -----------------------------------------------------------------------------------
# Which jobs a list is asked for, by what the client that asks is shown.


class Names(Protocol):
    """Interface of `Viewer`: how a client is shown users."""

    def sees(self, user: str) -> bool:
        """Return whether the client may read texts about a user's jobs."""
        ...

    def user(self, user: UserName) -> str:
        """Return the shown name of a user."""
        ...

    def vo(self, vo: VoName) -> str:
        """Return the shown name of a VO, which may contain a user's name."""
        ...


class JobFilters(Struct, frozen=True, kw_only=True):
    """Filters of a list of jobs; None: not filtered.

    Attributes:
        state: they are in it.
        user, vo: theirs, as the client is shown it: a name that is hidden finds none.
        group: they are on a machine of it, or may use one by what was declared of the job.
        reason: stands in what `reasons_of` says, be its letters large or small.
        waiting_over_s: they wait, and for longer.
    """

    state: str | None = None
    user: str | None = None
    vo: str | None = None
    group: str | None = None
    reason: str | None = None
    waiting_over_s: float | None = None

    def chosen(self, core: Core, jobs: list[Job], names: Names) -> list[Job]:
        """Return the jobs that pass the filters, in their order."""
        if self.state is not None:
            state = JOB_STATE_NAMES.index(self.state)
            jobs = [job for job in jobs if job.state == state]
        if self.waiting_over_s is not None:
            jobs = _waiting_over(self.waiting_over_s, jobs, core.site.now)
        if self.user is not None:
            user = cache(lambda *key: names.user(UserName(*key)))  # a pseudonym takes a hash
            jobs = [job for job in jobs if user(job.spec.user, job.spec.reporter) == self.user]
        if self.vo is not None:
            vo = cache(lambda vo, *key: names.vo(VoName(vo, UserName(*key))))
            jobs = [
                job for job in jobs if vo(job.spec.vo, job.spec.user, job.spec.reporter) == self.vo
            ]
        if self.group is not None:
            jobs = _in_group(self.group, jobs, core.site)
        if self.reason is not None:
            jobs = _because(self.reason, core, jobs, names.sees)
        return jobs


def reasons_of(core: Core, jobs: Iterable[Job], sees: Callable[[str], bool]) -> list[str | None]:
    """Return why each job does not run; None: it runs, or no reason is known.

    For a held job it is the batch system's text, only for clients that may read texts about its
    user (`sees`): such a text may contain names. For a queued job it is the reason of the first
    policy that decided.
    """
    queues = [runner.queue.waiting.get for runner in core.runners]
    reasons: list[str | None] = []
    for job in jobs:
        state, reason = job.state, ""
        if state == QUEUED:
            number = job.number
            for pending_of in queues:
                pending = pending_of(number)
                if pending is not None and pending.reason:
                    reason = pending.reason
                    break
        elif state == HELD_STATE and sees(job.spec.user):
            reason = job.held_because
        reasons.append(reason or None)
    return reasons


def _waiting_over(seconds: float, jobs: Sequence[Job], now_s: float) -> list[Job]:
    return list(compress(jobs, (waits_s(jobs, now_s) > seconds).tolist()))  # NaN is not over


def _in_group(name: str, jobs: Iterable[Job], site: Site) -> list[Job]:
    if name not in site.cluster_names:
        return []
    group = site.cluster_names.index(name)
    members = frozenset(site.members[group])

    @cache
    def may_use(eligible: str) -> bool:
        """Return whether jobs of this class may use the group; computed once per class."""
        return not eligible or not members.isdisjoint(site.classes.get(eligible, ()))

    return [
        job
        for job in jobs
        if (
            site.machine_cluster[job.machine] == group
            if job.machine >= 0
            else may_use(job.spec.eligible)
        )
    ]


def _because(text: str, core: Core, jobs: list[Job], sees: Callable[[str], bool]) -> list[Job]:
    reasons, wanted = reasons_of(core, jobs, cache(sees)), text.casefold()
    fitting = {
        reason
        for reason in set(reasons)
        if reason is not None
        and (wanted in reason.casefold() or wanted in reason_text(reason).casefold())
    }
    return [job for job, reason in zip(jobs, reasons, strict=True) if reason in fitting]


# -- job waits -------------------------------------------------------------------------------------
# How long many jobs have waited, worked out together: of 100,000, a call for each would count.

_SUBMIT_S: Final = attrgetter("submit_s")
_ELIGIBLE_S: Final = attrgetter("spec.eligible_s")


def waits_s(jobs: Sequence[Job], at_s: float) -> NDArray[np.float64]:
    """Return `Job.wait_s` of each queued job; NaN for others and where it is unknown."""
    since_s = np.array(list(map(_SUBMIT_S, jobs)), float)  # None becomes NaN
    eligible_s = list(map(_ELIGIBLE_S, jobs))
    if eligible_s.count(None) < len(jobs):
        later_s = np.fmax(since_s, np.array(eligible_s, float))
        since_s = np.where(np.isnan(since_s), np.nan, later_s)  # unknown, whatever came after
    queued = np.fromiter(map(attrgetter("state"), jobs), np.int8, len(jobs)) == QUEUED
    return np.where(queued, np.maximum(0.0, at_s - since_s), np.nan)


# -- job order -------------------------------------------------------------------------------------
# Orders of the list of jobs, and cursors that stay right while jobs come and go.

JobSort: TypeAlias = Literal[
    "known", "-known", "waiting_s", "-waiting_s", "run_s", "-run_s",
    "lost_s", "-lost_s", "cpus", "-cpus",
]  # fmt: skip
"""Sort keys of the list; with a minus, the greatest first."""
JOB_SORTS: Final[tuple[str, ...]] = get_args(JobSort)
KNOWN: Final = "known"


def _run_s(jobs: Sequence[Job], at_s: float) -> Iterator[float]:
    """Yield `Job.run_s`; below 0 for a run that began later, so that it sorts last."""
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
"""Values that jobs are sorted by at a moment; NaN where unknown."""


class CursorError(ValueError):
    """Invalid cursor, or one of another order; the message names what is expected."""


class _Place(NamedTuple):
    """A place in an order: after a job, which may have left since.

    `at_s` is the moment whose values are compared, `rank` infinite where the value is not known.
    """

    at_s: float
    rank: float
    number: int


class JobOrder:
    """One order of jobs: unknown values come last, equal ones in the order of arrival.

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
        """Return the jobs after a cursor, in this order, each with its own cursor.

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
            f'"after" = {text!r}: expected what `next` of the page before said, which was '
            f'sorted by "{self._sort}", too'
        )
