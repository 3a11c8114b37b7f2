"""Which waiting jobs Slurm itself keeps back, whatever is free.

A job that is not eligible (held, waiting for another job or for its begin time), or that runs
against a limit, is *held* for Outrider: nobody can start it now, and no policy is asked about it.
One that Outrider itself keeps waits: its policy goes on deciding about it.
"""

from typing import Final

from outrider_adapters.slurm.acting.own_leases import DEFERRED
from outrider_adapters.slurm.queue_rows import QueueRow

FOR_NOW: Final = frozenset(
    {
        "Dependency", "BeginTime", "JobArrayTaskLimit", "JobHeldUser", "JobHeldAdmin", "Licenses",
        "PartitionDown", "PartitionInactive", "DeadLine", "BurstBufferResources",
        "BurstBufferStageIn", "JobLaunchFailure", "JobHoldMaxRequeue", "ReservationDeleted",
    }
)  # fmt: skip
"""Reasons that pass, or that somebody can lift."""

NEVER: Final = frozenset(
    {
        "DependencyNeverSatisfied", "PartitionTimeLimit", "PartitionNodeLimit", "BadConstraints",
        "InvalidAccount", "InvalidQOS", "QOSNotAllowed", "AccountNotAllowed", "PartitionConfig",
    }
)  # fmt: skip
"""Reasons with which a job never starts as it stands."""

_IN_LINE: Final = frozenset({"", "Priority", "Resources", DEFERRED})
_HOLDS: Final = frozenset({"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
_LIMITS: Final = ("QOS", "Assoc", "MaxQOS")


def is_limit(reason: str) -> bool:
    """Whether a reason is a limit of a quality of service or of an association."""
    return reason.startswith(_LIMITS) and reason not in NEVER


def keeps_back(row: QueueRow, now_s: float) -> bool:
    """Whether Slurm will not start a waiting job now, whatever is free."""
    if row.state in _HOLDS or (row.eligible_s is not None and row.eligible_s > now_s):
        return True
    reason = row.reason.partition(",")[0].strip()
    if reason in _IN_LINE:
        return False  # an array has no eligible time until the scheduler has looked at it
    return row.eligible_s is None or reason in FOR_NOW or reason in NEVER or is_limit(reason)
