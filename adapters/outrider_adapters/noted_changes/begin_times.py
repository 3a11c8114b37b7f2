"""Begin times of jobs, moved a lease ahead and renewed: until then they stay in the queue.

A begin time lapses by itself. It also writes over one that the job's user asked for: that is in the
undo log before. Nothing here asks a batch system: it says what is to be changed.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from outrider.api import Undo, UndoLog
from outrider_adapters.noted_changes.begin_notes import (
    before_of,
    is_as_before,
    is_done,
    is_kept,
    is_own,
    lease_of,
    let_go_of,
)
from outrider_adapters.noted_changes.changes import GONE, Change, Plan

_NOT_ELIGIBLE: Final = "the batch system keeps it back itself: it has no eligible time"
_CHANGED: Final = "somebody else changed its start time since Outrider did"


class MayBegin(Protocol):
    """A job that waits."""

    @property
    def eligible_s(self) -> float | None:
        """When it may begin, Unix seconds; 0: at once, None: the batch system keeps it back."""
        ...


Waiting = Mapping[str, MayBegin | None]
"""Jobs by name, as they wait now; None: it does not."""


class BeginTimes:
    """Says which begin times jobs are to get, and what to note of them.

    Args:
        undo_log: where what stood before is noted.
        lease_s: how long a begin time that is not renewed keeps a job in the queue.
        late_s: as of `outrider_adapters.noted_changes.begin_notes.is_own`.
    """

    def __init__(self, undo_log: UndoLog, lease_s: float, late_s: float = 0.0) -> None:
        self._undo_log = undo_log
        self._lease_s = lease_s
        self._late_s = late_s

    def deferred(self, waiting: Waiting, now_s: int) -> Plan:
        """Keep jobs in the queue for a lease from now.

        A job whose user wants it to begin later than that is kept by that alone.

        Args:
            waiting: the jobs.
            now_s: Unix seconds now, by the batch system's clock.
        """
        until_s = now_s + int(self._lease_s)
        plan = Plan.empty()
        for name, job in waiting.items():
            known = self._undo_log.entries.get(name)
            if job is None or job.eligible_s is None:
                plan.refused[name] = GONE if job is None else _NOT_ELIGIBLE
                continue
            at_s = job.eligible_s
            # noted and never done, or the batch system has lost it
            is_free = is_as_before(known, at_s) or not is_kept(known, now_s)
            if is_own(known, at_s, self._late_s) or (at_s <= until_s and is_free):
                plan.notes[name] = lease_of(until_s, at_s, known, now_s, self._late_s)
                plan.values[name] = until_s
            elif at_s < until_s:
                plan.refused[name] = _CHANGED
        return plan

    def released(self, waiting: Waiting, now_s: int) -> Plan:
        """Let jobs begin, or let their users' own begin times hold again; as `deferred`."""
        plan = Plan.empty()
        for name, job in waiting.items():
            known = self._undo_log.entries.get(name)
            at_s = job.eligible_s if job is not None else None
            if known is None or at_s is None or at_s <= now_s:
                continue
            if not is_own(known, at_s, self._late_s):
                continue
            begin_s = int(before_of(known).begin_s or 0)
            if begin_s > now_s:
                plan.notes[name] = lease_of(begin_s, at_s, known, now_s, self._late_s)
                plan.values[name] = begin_s
            else:
                plan.notes[name] = let_go_of(known, now_s)
                plan.values[name] = now_s  # a time that has passed is taken for the present one
        return plan

    def kept(self, now_s: int) -> list[str]:
        """The jobs that Outrider keeps in the queue, by what is noted."""
        noted = self._undo_log.entries
        return [name for name, undo in noted.items() if is_kept(undo, now_s)]

    def change(self, plan: Plan) -> Change[Any]:
        """How a plan of these is carried out: each job is given `begin_s`."""
        return Change(
            plan, "begin_s", self._undo_log, self._wrong, _may_have_gone, self._is_forgotten
        )

    def _wrong(self, noted: Undo, job: MayBegin) -> str:
        if is_done(noted, job.eligible_s, self._late_s):
            return ""
        return f"its start time is {job.eligible_s or 0:.0f} and not {noted.until_s:.0f}"

    def _is_forgotten(self, noted: Undo, job: MayBegin) -> bool:
        """Whether a job is kept by our time of before, which this one was to renew or to end."""
        before = before_of(noted)
        asked_s = noted.until_s - (0 if before.let_go else int(self._lease_s))
        # one that is over keeps nobody: who refuses without a word is not asked for ever
        return before.had(job.eligible_s) and (job.eligible_s or 0.0) > asked_s


def _may_have_gone(noted: Undo) -> bool:
    return before_of(noted).let_go
