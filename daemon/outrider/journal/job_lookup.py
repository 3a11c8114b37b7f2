"""Search for jobs in a journal by the short form of their names, by index."""

# ruff: noqa: S608 - names of tables are constants of ours; values are bound.
# ruff: noqa: S608 - constants of ours; values are bound.

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from outrider.journal.records import Row, decode_extra, encode_json
from outrider.journal.schema import JOB_ENDS
from outrider.model.events import KIND_NUMBERS
from outrider.model.jobs import AFTER_SHORT_FORM, stands_for, system_of

_MAX_SYSTEMS: Final = 100
_LAST: Final = "\U0010ffff"
_AFTER_DIGITS: Final = ":"
_OF_JOB: Final = """seq IN (
    SELECT seq FROM decisions WHERE job = :job
    UNION SELECT seq FROM decisions WHERE jobs IS NOT NULL AND instr(jobs, :quoted)
      AND EXISTS (SELECT 1 FROM json_each(jobs) WHERE value = :job))"""
Fetch: TypeAlias = Callable[[str, dict[str, Any]], list[Row]]


def find_jobs(fetch: Fetch, table: str, short: str, limit: int) -> list[str]:
    """Return the names of the jobs that a short form can mean, at most `limit` of them.

    A name begins with that of its system, or with the id if the system comes after it. So the query
    takes a few index lookups for each system, however many decisions there are.

    Args:
        fetch: runs a query on the journal.
        table: with an index by job: ``decisions``, ``runs``,
            `outrider.journal.job_lookup.ENDED_JOBS`.
        short: the short form.
        limit: of the number of names.
    """
    return names_meant(
        short,
        limit,
        lambda after: fetch(f"SELECT min(job) FROM {table} WHERE job > :after", {"after": after})[
            0
        ][0],
        lambda low, high, most: _between(fetch, table, low, high, most),
    )


def names_meant(
    short: str,
    limit: int,
    first_after: Callable[[str], str | None],
    between: Callable[[str, str, int], list[str]],
) -> list[str]:
    """Return the names that a short form can mean, from names in their order.

    Args:
        short: the short form.
        limit: of the number of names.
        first_after: returns the first name after a text; None if there is none.
        between: returns the names from one text to another, both included, at most so many.
    """
    found: dict[str, None] = {}
    for begin in ["", *_systems(first_after)]:
        for separator in AFTER_SHORT_FORM:
            low = f"{begin}{short}{separator}"
            names = between(low, low + _LAST, limit)
            found |= dict.fromkeys(name for name in names if stands_for(short, name))
        whole = begin + short
        found |= dict.fromkeys(between(whole, whole, 1))
    return list(found)[:limit]


def _systems(first_after: Callable[[str], str | None]) -> Iterator[str]:
    """Yield the parts before the ids in the names of jobs."""
    after = ""
    for _ in range(_MAX_SYSTEMS):
        name = first_after(after)
        if name is None:
            return
        system = system_of(name)
        if system:
            yield system
            after = system + _LAST
        else:
            after = _AFTER_DIGITS if name[0].isdigit() else name


def _between(fetch: Fetch, table: str, low: str, high: str, limit: int) -> list[str]:
    query = f"SELECT DISTINCT job FROM {table} WHERE job >= :low AND job <= :high LIMIT :limit"
    return [name for (name,) in fetch(query, {"low": low, "high": high, "limit": limit})]


def about(job: str | None) -> tuple[str, dict[str, Any]]:
    """Return the condition for decisions about a job, alone or among others, and its values."""
    if job is None:
        return "1", {}
    return _OF_JOB, {"job": job, "quoted": encode_json(job)}


# -- job ends --------------------------------------------------------------------------------------
# How jobs left, from the journal's inputs.

ENDED_JOBS: Final = f"(SELECT subject AS job FROM inputs WHERE {JOB_ENDS})"
"""Subquery that replaces a table of jobs."""
_LAST_END: Final = (
    f"SELECT time_s, kind, extra FROM inputs WHERE subject = :job AND {JOB_ENDS} "
    "ORDER BY seq DESC LIMIT 1"
)


class JobEnd(NamedTuple):
    """End of a job: when and how it left.

    Attributes:
        time_s: when.
        kind: ``completed`` or ``removed``.
        reason: why it was removed, one of `outrider.model.events.EVICTION_REASONS`; else empty.
    """

    time_s: float
    kind: str
    reason: str


def last_end(fetch: Fetch, job: str) -> JobEnd | None:
    """Return the last end of a job; None where no input reports one.

    Args:
        fetch: runs a query on a journal that has the index for it.
        job: its name.
    """
    for time_s, kind, text in fetch(_LAST_END, {"job": job}):
        reason = decode_extra(KIND_NUMBERS[kind], text) if text is not None else ""
        return JobEnd(time_s, kind, str(reason or ""))
    return None
