"""Start times that are Outrider's own, told from those that users asked for."""

from collections.abc import Callable
from typing import Final

import msgspec

from outrider.api import Undo
from outrider_adapters.slurm.queue_rows import QueueRow

BEGIN_TIME: Final = "BeginTime"
DEFERRED: Final = "BeginTime (Outrider's)"
"""In place of `BEGIN_TIME` where the time is ours."""


_LET_GO_WITHIN_S: Final = 30.0
"""Slurm gives a job that may begin the time at which it was told so: so soon after it was asked."""


class Before(msgspec.Struct, frozen=True, gc=False):
    """What stood before a start time of ours.

    Attributes:
        eligible_s: the job's eligible time; 0: Slurm had given it none yet.
        begin_s: the same if it lay ahead: a begin time that its user asked for.
        earlier_s: the start time of ours that is about to be renewed; None: there was none.
        let_go: the job was told to begin at once.
    """

    eligible_s: float
    begin_s: float | None = None
    earlier_s: float | None = None
    let_go: bool = False


def lease_of(until_s: int, at_s: float, known: Undo | None, now_s: float) -> Undo:
    """What is noted before a job is given another start time.

    Args:
        until_s: the start time.
        at_s: its eligible time until now.
        known: what is noted of it already.
        now_s: Unix seconds now.
    """
    if known is not None and is_own(known, at_s):
        before = msgspec.structs.replace(before_of(known), earlier_s=at_s, let_go=False)
    else:
        before = Before(at_s, begin_s=at_s if at_s > now_s else None)
    return Undo(float(until_s), msgspec.to_builtins(before))


def let_go_of(known: Undo, now_s: float) -> Undo:
    """What is noted before a job that Outrider keeps is told to begin at once."""
    before = msgspec.structs.replace(before_of(known), earlier_s=known.until_s, let_go=True)
    return Undo(float(now_s), msgspec.to_builtins(before))


def is_own(known: Undo | None, at_s: float | None) -> bool:
    """Whether an eligible time is one that Outrider gave the job in place of its user's."""
    if known is None or at_s is None:
        return False
    before = before_of(known)
    return at_s != before.begin_s and (at_s == before.earlier_s or is_done(known, at_s))


def is_done(noted: Undo, at_s: float | None) -> bool:
    """Whether a job has the eligible time that was noted before it was asked for."""
    if at_s is None or not before_of(noted).let_go:
        return at_s == noted.until_s
    return noted.until_s <= at_s <= noted.until_s + _LET_GO_WITHIN_S


def is_as_before(known: Undo | None, at_s: float) -> bool:
    """Whether a job has the eligible time from before the first change that was noted."""
    if known is None:
        return False
    before = before_of(known)
    return before.earlier_s is None and at_s == before.eligible_s


def before_of(known: Undo) -> Before:
    """What stood before, as it was noted. Raises `msgspec.ValidationError`: we did not note it."""
    return msgspec.convert(known.before, Before)


def is_kept(known: Undo | None, at_s: float) -> bool:
    """Whether Outrider keeps a job in the queue at a time, by what is noted of it."""
    return known is not None and known.until_s > at_s and known.until_s != before_of(known).begin_s


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
