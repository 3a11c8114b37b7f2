"""What the states of Slurm's job records mean to Outrider.

=================================================  ==============================================
state                                              here
=================================================  ==============================================
``COMPLETED``, ``FAILED``                          completed: an exit code is the user's business
``CANCELLED``, ``CANCELLED by 1000``               removed (``removed``)
``TIMEOUT``, ``DEADLINE``, ``OUT_OF_MEMORY``       removed (``killed``)
``REQUEUED``, ``REQUEUE_HOLD``, ``REQUEUE_FED``,   evicted (``unknown``), queued again
``SPECIAL_EXIT``; ``PENDING`` of jobcomp
``PREEMPTED``                                      evicted (``preempted``), see `LOST_RUNS`
``NODE_FAIL``                                      evicted (``unknown``), see `LOST_RUNS`
``BOOT_FAIL``, ``LAUNCH_FAILED``                   evicted (``failed_start``), see `LOST_RUNS`
``PENDING``, ``RUNNING`` and others (`UNENDED`)    not ended: submitted, and started if it was
``REVOKED``                                        ignored: another cluster of a federation ran it
=================================================  ==============================================

Source: ``JOB STATE CODES`` in squeue(1) and sacct(1), and what Slurm 22.05 wrote when jobs were
requeued, preempted and lost with their nodes.
"""

from typing import Final

from outrider_adapters.readers.end_records import KILLED, REMOVED

COMPLETED: Final = frozenset({"COMPLETED", "FAILED"})

REMOVED_FOR: Final = {
    "CANCELLED": REMOVED,
    "TIMEOUT": KILLED,
    "DEADLINE": KILLED,
    "OUT_OF_MEMORY": KILLED,
}
"""States in which a job leaves before it is done, and the reason."""

REQUEUED: Final = "REQUEUED"
REQUEUED_FOR: Final = dict.fromkeys(
    (REQUEUED, "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"), "unknown"
)
"""States of a run that was thrown away while its job was queued again, and the reason."""

LOST_RUNS: Final = {
    "PREEMPTED": "preempted",
    "NODE_FAIL": "unknown",
    "BOOT_FAIL": "failed_start",
    "LAUNCH_FAILED": "failed_start",
}
"""States of a run that was thrown away, and the reason. The record is the same whether Slurm
queued the job again (``PreemptMode=REQUEUE``, ``JobRequeue=1``) or not: only a later record of
the job tells."""

UNENDED: Final = frozenset(
    {
        "PENDING",
        "RUNNING",
        "SUSPENDED",
        "CONFIGURING",
        "COMPLETING",
        "RESIZING",  # the record of a stretch before the job gave up, or got, nodes
        "SIGNALING",
        "STAGE_OUT",
        "STOPPED",
        "RESV_DEL_HOLD",
        "POWER_UP_NODE",
    }
)

REVOKED: Final = "REVOKED"

EVICTED_FOR: Final = REQUEUED_FOR | LOST_RUNS

KNOWN: Final = COMPLETED | UNENDED | {REVOKED, *REMOVED_FOR, *EVICTED_FOR}
