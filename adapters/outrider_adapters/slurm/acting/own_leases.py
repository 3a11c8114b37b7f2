"""Rows of ``squeue`` without the start times that Outrider wrote into them."""

from collections.abc import Callable
from typing import Final

from outrider.api import Undo
from outrider_adapters.noted_changes import before_of, is_own
from outrider_adapters.slurm.queue_rows import QueueRow

BEGIN_TIME: Final = "BeginTime"
DEFERRED: Final = "BeginTime (Outrider's)"
"""In place of `BEGIN_TIME` where the time is ours."""


def as_its_user_left_it(row: QueueRow, noted: Callable[[str], Undo | None]) -> QueueRow:
    """A row without the start time that Outrider wrote over its eligible time.

    A job that Outrider keeps waits, for its policy as for its user: since when, and how long, is
    counted from the eligible time before. Tasks of an array may share a row, which then shows the
    time of one of them.

    Args:
        row: of ``squeue``.
        noted: what is noted of a job, by its id.
    """
    entries = (noted(job) for job in row.jobs)
    known = next((one for one in entries if is_own(one, row.eligible_s)), None)
    if known is None:
        return row
    code, comma, rest = row.reason.partition(",")
    reason = DEFERRED + comma + rest if code == BEGIN_TIME else row.reason
    return row._replace(eligible_s=before_of(known).eligible_s, reason=reason)
