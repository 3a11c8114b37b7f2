"""The letters of accounting records, and what each is taken for.

======  ===================================  ==================================================
letter  PBS's meaning                        here
======  ===================================  ==================================================
``Q``   queued                               submitted
``S``   started                              started
``E``   ended                                the job's whole life (see `exits`)
``R``   rerun                                evicted; the job is queued again
``D``   deleted by request                   removed, or the reason why its run ends
``A``   aborted by the server                the same, with the reason ``killed``
``C``   checkpointed and held                held; ignored where only checkpointed
``z``   suspended (OpenPBS 20)               suspended
``r``   resumed (OpenPBS 20)                 resumed
``M``   moved to another server              removed: it is not in this server's queue any more
others  `IGNORED`                            ignored, counted by kind
======  ===================================  ==================================================

Sources: ``src/include/acct.h`` of OpenPBS and of Torque; "Accounting log" in the PBS Professional
administrator's guide, "Accounting records" in Torque's.
"""

from typing import Final

IGNORED: Final = {
    "T": "restart",  # from a checkpoint; it names no machine, the end record tells of the run
    "s": "nodes_pruned",  # a started job gave back the nodes it had asked for in reserve
    "u": "phase",  # a run gave back some of its nodes: usage until then
    "c": "phase",  # what it goes on with
    "e": "phase",  # usage of the last stretch
    "a": "alteration",
    "L": "licence",
    "U": "reservation",  # asked for
    "Y": "reservation",  # confirmed
    "B": "reservation",  # begun
    "F": "reservation",  # finished
    "K": "reservation",  # removed by server or scheduler
    "k": "reservation",  # removed by its owner
    "P": "provisioning",  # begun
    "p": "provisioning",  # ended
}
"""Letters that are no event of a job."""

ARRAY_PARENT: Final = "array_parent"
"""``123[].server`` stands for all jobs of an array and never runs itself."""

CHECKPOINT: Final = "checkpoint"
DELETION_OF_RUN: Final = "deletion_of_run"
"""A request that an end record followed, which is the removal."""

DELETION_REPEATED: Final = "deletion_repeated"
