"""How jobs left, as the journal's inputs tell it."""

# ruff: noqa: S608 - words of our own; values are bound.

from typing import Final, NamedTuple

from outrider.journal.extras import decode_extra
from outrider.journal.job_lookup import Fetch
from outrider.journal.schema import JOB_ENDS
from outrider.model.events import KIND_NUMBERS

ENDED_JOBS: Final = f"(SELECT subject AS job FROM inputs WHERE {JOB_ENDS})"
"""In the place of a table of jobs."""

_LAST_END: Final = (
    f"SELECT time_s, kind, extra FROM inputs WHERE subject = :job AND {JOB_ENDS} "
    "ORDER BY seq DESC LIMIT 1"
)


class JobEnd(NamedTuple):
    """How a job left.

    Attributes:
        time_s: when.
        kind: ``completed`` or ``removed``.
        reason: why it was removed, one of `outrider.model.events.EVICTION_REASONS`; else empty.
    """

    time_s: float
    kind: str
    reason: str


def last_end(fetch: Fetch, job: str) -> JobEnd | None:
    """The last end of a job; None where no input tells of one.

    Args:
        fetch: runs a query on a journal that has the index for it.
        job: its name.
    """
    for time_s, kind, text in fetch(_LAST_END, {"job": job}):
        reason = decode_extra(KIND_NUMBERS[kind], text) if text is not None else ""
        return JobEnd(time_s, kind, str(reason or ""))
    return None
