"""Events of a job, derived from two successive looks at its row.

A row has the times of the present or last run. A run that began and was lost between two looks is
visible only in the count of restarts, and yields no event. The accounting records every run.
"""

from typing import Final

import msgspec

from outrider.api import JobSpec, NamedEvent, events
from outrider_adapters.polling.adapter import in_order
from outrider_adapters.readers.slurm.record_events import (
    COMPLETED,
    EVICTED_FOR,
    LOST_RUNS,
    REMOVED_FOR,
    REVOKED,
    first_host,
)
from outrider_adapters.slurm.acting.controller import DEFERRED
from outrider_adapters.slurm.queue_rows import QueueRow

WAITING, HELD, RUNNING, SUSPENDED, ENDED = range(5)
_WAITING: Final = frozenset(
    {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
)
_ENDED: Final = COMPLETED | frozenset({*REMOVED_FOR, *LOST_RUNS, REVOKED})


class SeenJob(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """State of a job at the last look.

    Attributes:
        status: one of `WAITING`, `HELD`, `RUNNING`, `SUSPENDED`, `ENDED`.
        submit_s: when it was submitted or requeued.
        start_s: start of its run; 0 while it has none.
        restarts: how often it was requeued.
        boots: its node is being powered up for it, and its run has not begun.
    """

    status: int
    submit_s: float
    start_s: float
    restarts: int
    boots: bool = False

    @property
    def runs(self) -> bool:
        """True if it has a machine."""
        return self.status in (RUNNING, SUSPENDED)


def seen(row: QueueRow, now_s: float) -> SeenJob:
    """Return the state of a job to remember, from its row."""
    status = RUNNING
    if row.state in _WAITING:
        status = HELD if is_blocked(row, now_s) else WAITING
    elif row.state in _ENDED:
        status = ENDED
    elif row.state == "SUSPENDED":
        status = SUSPENDED
    has_run = status not in (WAITING, HELD) and bool(row.hosts)
    return SeenJob(status, row.submit_s, (row.start_s or 0.0) if has_run else 0.0, row.restarts)


def is_waiting(row: QueueRow) -> bool:
    """Return whether a job waits for its first or next run."""
    return row.state in _WAITING


def is_another(before: SeenJob, row: QueueRow) -> bool:
    """Return whether a row is about another job, to which Slurm assigned a reused number."""
    return row.submit_s != before.submit_s and row.restarts <= before.restarts


def is_between_runs(row: QueueRow, before: SeenJob | None) -> bool:
    """Return whether a job is being cleared from its nodes to be queued again.

    Its row then has the count of its next run but no times; the next look has both.
    """
    restarts = 0 if before is None else before.restarts
    return row.state == "COMPLETING" and row.restarts > restarts


def steps(
    job: str, before: SeenJob | None, row: QueueRow, spec: JobSpec, now_s: float
) -> list[NamedEvent]:
    """Return the events of a job since it was last seen, in order.

    Args:
        job: its name.
        before: as it was then; None: it is new.
        row: of now.
        spec: what it asks for.
        now_s: time of the look; used for events to which Slurm gives no time.
    """
    found: list[NamedEvent] = []
    now = seen(row, now_s)
    if before is None:
        if row.restarts:  # its first submission is no longer known
            spec = msgspec.structs.replace(spec, seen_submit=False, recalled=True)
        found.append((row.submit_s, events.SUBMITTED, job, spec))
        before = SeenJob(WAITING, row.submit_s, 0.0, row.restarts)
        now_s = row.submit_s if now.status == HELD else now_s
    if now.restarts > before.restarts and before.runs:
        # Slurm reports the time of the requeue as the time of submission
        reason = "failed_start" if before.boots else "unknown"
        found.append((max(row.submit_s, before.start_s), events.EVICTED, job, reason))
    waited = not before.runs or now.restarts > before.restarts
    started = waited and now.start_s > 0.0
    if before.status == HELD and (started or now.status not in (HELD, ENDED)):
        found.append((_released_s(row, now, now_s), events.RELEASED, job, None))
    if started:
        place = (first_host(row.hosts), row.cpus)
        found.append((now.start_s, events.STARTED, job, place))
    if now.status == HELD and (before.status != HELD or before.runs):
        found.append((now_s, events.HELD, job, row.reason or None))
    elif now.status == SUSPENDED and before.status != SUSPENDED:
        found.append((now_s, events.SUSPENDED, job, None))
    elif now.status == RUNNING and before.status == SUSPENDED and not started:
        found.append((now_s, events.RESUMED, job, None))
    elif now.status == ENDED:
        found += _ended(job, row, started or before.runs, now_s)
    return in_order(found)


def _released_s(row: QueueRow, now: SeenJob, now_s: float) -> float:
    """Return when a hold ended: when the job became eligible, at the latest when it started."""
    latest_s = now.start_s or now_s
    return min(row.eligible_s or latest_s, latest_s)


def _ended(job: str, row: QueueRow, ran: bool, now_s: float) -> list[NamedEvent]:
    """Return the last events of a job; states map as in the reader of ``sacct``."""
    end_s = row.end_s or now_s
    if row.state in COMPLETED and (ran or row.state != "FAILED"):
        return [(end_s, events.COMPLETED, job, None)]
    if row.state in COMPLETED:
        return [(end_s, events.REMOVED, job, "failed_start")]
    if row.state in LOST_RUNS:
        reason = EVICTED_FOR[row.state]
        lost: list[NamedEvent] = [(end_s, events.EVICTED, job, reason)] if ran else []
        return [*lost, (end_s, events.REMOVED, job, reason)]
    return [(end_s, events.REMOVED, job, REMOVED_FOR.get(row.state, "removed"))]


# -- keeping back ----------------------------------------------------------------------------------
# Waiting jobs that Slurm blocks regardless of free resources.
#
# A job that is not eligible (held, waiting for another job or for its begin time), or that runs
# against a limit, is *held* for Outrider: it cannot start now, and no policy is asked about it.
# A job that Outrider itself keeps in the queue waits: its policy continues to decide about it.

FOR_NOW: Final = frozenset(
    {
        "Dependency", "BeginTime", "JobArrayTaskLimit", "JobHeldUser", "JobHeldAdmin", "Licenses",
        "PartitionDown", "PartitionInactive", "DeadLine", "BurstBufferResources",
        "BurstBufferStageIn", "JobLaunchFailure", "JobHoldMaxRequeue", "ReservationDeleted",
    }
)  # fmt: skip
"""Reasons that pass, or that a user or an admin can remove."""
NEVER: Final = frozenset(
    {
        "DependencyNeverSatisfied", "PartitionTimeLimit", "PartitionNodeLimit", "BadConstraints",
        "InvalidAccount", "InvalidQOS", "QOSNotAllowed", "AccountNotAllowed", "PartitionConfig",
    }
)  # fmt: skip
"""Reasons with which a job never starts unless it is changed."""
_NOT_PERMITTED: Final = (
    "Job's account not permitted", "Job's QOS not permitted", "Job's group not permitted",
)  # fmt: skip
"""Beginnings of reasons that Slurm writes as a sentence."""
_IN_LINE: Final = frozenset({"", "Priority", "Resources", DEFERRED})
HOLDS: Final = frozenset({"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
"""States of jobs that were queued again, and held."""
_LIMITS: Final = ("QOS", "Assoc", "MaxQOS")


def is_limit(reason: str) -> bool:
    """Return whether a reason is a limit of a quality of service or of an association."""
    return reason.startswith(_LIMITS) and reason not in NEVER


def never_starts(reason: str) -> bool:
    """Return whether a job with this reason never starts unless it is changed."""
    return reason.partition(",")[0].strip() in NEVER or reason.startswith(_NOT_PERMITTED)


def is_blocked(row: QueueRow, now_s: float) -> bool:
    """Return whether Slurm will not start a waiting job now, regardless of free resources."""
    if row.state in HOLDS or (row.eligible_s is not None and row.eligible_s > now_s):
        return True
    reason = row.reason.partition(",")[0].strip()
    if reason in _IN_LINE:
        return False  # an array has no eligible time until the scheduler has looked at it
    return (
        row.eligible_s is None or reason in FOR_NOW or never_starts(row.reason) or is_limit(reason)
    )
