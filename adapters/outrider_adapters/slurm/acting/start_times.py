"""Start times of jobs, moved a lease ahead and renewed: until then Slurm keeps them in its queue.

A start time lapses by itself. It also writes over the job's eligible time, and over a ``--begin``
of its user: both are in the undo log before that is done. Nothing here asks Slurm: it says what is
to be changed.
"""

from collections.abc import Mapping
from typing import Final

from outrider.api import Undo, UndoLog
from outrider_adapters.slurm.acting.changes import GONE, Change, Plan
from outrider_adapters.slurm.acting.own_leases import (
    before_of,
    is_as_before,
    is_done,
    is_kept,
    is_own,
    lease_of,
    let_go_of,
)
from outrider_adapters.slurm.acting.waiting_jobs import WaitingJob

_NOT_ELIGIBLE: Final = "Slurm keeps it back itself: it has no eligible time"
_CHANGED: Final = "somebody else changed its start time since Outrider did"

Waiting = Mapping[str, WaitingJob | None]
"""Jobs by name, as they wait now; None: it does not."""


class StartTimes:
    """Says which start times jobs are to get, and what to note of them.

    Args:
        undo_log: where what stood before is noted.
        lease_s: how long a start time that is not renewed keeps a job in the queue.
    """

    def __init__(self, undo_log: UndoLog, lease_s: float) -> None:
        self._undo_log = undo_log
        self._lease_s = lease_s
        self._unread: set[str] = set()  # noted, and nobody said whether it was done

    def deferred(self, waiting: Waiting, now_s: int) -> Plan:
        """Keep jobs in the queue for a lease from now.

        A job whose user wants it to begin later than that is kept by that alone.

        Args:
            waiting: the jobs.
            now_s: by Slurm's clock, Unix seconds.
        """
        until_s = now_s + int(self._lease_s)
        plan = Plan.empty()
        for name, job in waiting.items():
            known = self._undo_log.entries.get(name)
            if job is None or job.eligible_s is None:
                plan.refused[name] = GONE if job is None else _NOT_ELIGIBLE
                continue
            at_s = job.eligible_s
            may_be_as_before = name in self._unread and is_as_before(known, at_s)
            is_free = may_be_as_before or not is_kept(known, now_s)
            if is_own(known, at_s) or (at_s <= until_s and is_free):
                plan.notes[name] = lease_of(until_s, at_s, known, now_s)
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
            if known is None or at_s is None or at_s <= now_s or not is_own(known, at_s):
                continue
            begin_s = int(before_of(known).begin_s or 0)
            if begin_s > now_s:
                plan.notes[name] = lease_of(begin_s, at_s, known, now_s)
                plan.values[name] = begin_s
            else:
                plan.notes[name] = let_go_of(known, now_s)
                # a time that has passed: Slurm takes the present one, and schedules
                plan.values[name] = now_s
        return plan

    def kept(self, now_s: int) -> list[str]:
        """The jobs that Outrider keeps in the queue, by what is noted."""
        noted = self._undo_log.entries
        return [name for name, undo in noted.items() if is_kept(undo, now_s)]

    def change(self, plan: Plan) -> Change:
        """How a plan of these is carried out."""
        self._unread.difference_update(plan.notes)
        unread = self._unread.update
        return Change(plan, "start_s", self._undo_log, _wrong, _may_have_gone, unread)


def _wrong(noted: Undo, job: WaitingJob) -> str:
    if is_done(noted, job.eligible_s):
        return ""
    return f"its start time is {job.eligible_s or 0:.0f} and not {noted.until_s:.0f}"


def _may_have_gone(noted: Undo) -> bool:
    return before_of(noted).let_go
