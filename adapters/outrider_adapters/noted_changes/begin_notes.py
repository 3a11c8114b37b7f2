"""Begin times of jobs that are Outrider's own, told from those that users asked for."""

from typing import Final

import msgspec

from outrider.api import Undo

_LET_GO_WITHIN_S: Final = 30.0
"""A job that may begin is given the time at which it was told so: so soon after it was asked."""
_SAVED_WITHIN_S: Final = 30.0
"""What a batch system was told longer ago than this it has saved: Slurm takes five seconds."""


class Before(msgspec.Struct, frozen=True, gc=False):
    """What stood before a begin time of ours; all times are Unix seconds.

    Attributes:
        eligible_s: since when the job might begin; 0: the batch system had not said it yet.
        begin_s: the same if it lay ahead: a begin time that its user asked for.
        earlier_s: the begin time of ours that is about to be renewed; None: there was none.
        let_go: the job was told to begin at once.
        older_s: those before it that a batch system may show again if it is killed now.
    """

    eligible_s: float
    begin_s: float | None = None
    earlier_s: float | None = None
    let_go: bool = False
    older_s: list[float] = []  # no tuple: what is noted is equal once it was read back

    def had(self, at_s: float | None) -> bool:
        """Whether a begin time is an earlier one of ours."""
        return at_s is not None and (at_s == self.earlier_s or at_s in self.older_s)


def lease_of(until_s: int, at_s: float, known: Undo | None, now_s: float, late_s: float) -> Undo:
    """What is noted before a job is given another begin time.

    Args:
        until_s: the begin time.
        at_s: when it might begin until now.
        known: what is noted of it already.
        now_s: Unix seconds now.
        late_s: as of `is_own`.
    """
    if known is not None and is_own(known, at_s, late_s):
        before = before_of(known)
        had_s = [*before.older_s, *([] if before.earlier_s is None else [before.earlier_s])]
        older_s = [s for s in had_s if until_s - _SAVED_WITHIN_S < s != at_s]
        before = msgspec.structs.replace(before, earlier_s=at_s, older_s=older_s, let_go=False)
    else:
        before = Before(at_s, begin_s=at_s if at_s > now_s else None)
    return Undo(float(until_s), msgspec.to_builtins(before))


def let_go_of(known: Undo, now_s: float) -> Undo:
    """What is noted before a job that Outrider keeps is told to begin at once."""
    before = msgspec.structs.replace(before_of(known), earlier_s=known.until_s, let_go=True)
    return Undo(float(now_s), msgspec.to_builtins(before))


def is_own(known: Undo | None, at_s: float | None, late_s: float = 0.0) -> bool:
    """Whether a job might begin when Outrider said, in place of its user.

    Args:
        known: what is noted of it.
        at_s: when it may begin, or might.
        late_s: how much later than it was told a batch system says that it might.
    """
    if known is None or at_s is None:
        return False
    before = before_of(known)
    return at_s != before.begin_s and (before.had(at_s) or is_done(known, at_s, late_s))


def is_done(noted: Undo, at_s: float | None, late_s: float = 0.0) -> bool:
    """Whether a job may begin when it was noted that it is to; `late_s` as of `is_own`."""
    late_s = max(late_s, _LET_GO_WITHIN_S) if before_of(noted).let_go else late_s
    return at_s is not None and noted.until_s <= at_s <= noted.until_s + late_s


def is_as_before(known: Undo | None, at_s: float) -> bool:
    """Whether a job may begin when it might before the first change that was noted."""
    return known is not None and at_s == before_of(known).eligible_s


def before_of(known: Undo) -> Before:
    """What stood before, as it was noted. Raises `msgspec.ValidationError`: we did not note it."""
    return msgspec.convert(known.before, Before)


def is_kept(known: Undo | None, at_s: float) -> bool:
    """Whether Outrider keeps a job in the queue at a time, by what is noted of it."""
    return known is not None and known.until_s > at_s and known.until_s != before_of(known).begin_s
