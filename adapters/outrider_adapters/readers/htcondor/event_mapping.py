"""Meaning of the numbers of HTCondor's job events.

Numbers and names are those of ``ULogEventNumber``. A number without an event here is ignored
under its name; one that HTCondor has not assigned yet, under ``event_NNN``.
"""

from types import MappingProxyType
from typing import Final

from outrider.api import events
from outrider.model.printable import one_line

SUBMIT: Final = 0
EXECUTE: Final = 1
EXECUTABLE_ERROR: Final = 2
EVICTED: Final = 4
TERMINATED: Final = 5
SHADOW_EXCEPTION: Final = 7
ABORTED: Final = 9
SUSPENDED: Final = 10
UNSUSPENDED: Final = 11
HELD: Final = 12
RELEASED: Final = 13
DISCONNECTED: Final = 22
RECONNECTED: Final = 23
RECONNECT_FAILED: Final = 24
JOB_AD_INFORMATION: Final = 28
DATAFLOW_JOB_SKIPPED: Final = 46
JOB_EVENTS: Final = frozenset(
    {
        SUBMIT,
        EXECUTE,
        EXECUTABLE_ERROR,  # the run could not begin
        EVICTED,
        TERMINATED,
        SHADOW_EXCEPTION,  # the run is lost; the job is requeued, unless a hold follows
        ABORTED,
        SUSPENDED,
        UNSUSPENDED,
        HELD,
        RELEASED,
        DISCONNECTED,  # the run may continue: 023 or 024 shows it
        RECONNECTED,  # it continued
        RECONNECT_FAILED,  # the run is lost; "rescheduling job"
        DATAFLOW_JOB_SKIPPED,  # its output is newer than its input: done without a run
    }
)
"""Numbers that change the state of a job. The rest is about sizes, grids, DAGs and files."""
SIMPLE_KINDS: Final = {
    TERMINATED: events.COMPLETED,
    DATAFLOW_JOB_SKIPPED: events.COMPLETED,
    SUSPENDED: events.SUSPENDED,
    UNSUSPENDED: events.RESUMED,
    RELEASED: events.RELEASED,
    DISCONNECTED: events.DISCONNECTED,
    RECONNECTED: events.RECONNECTED,
}
"""Records that need no other record."""
LEAVING_REASONS: Final = {ABORTED: "removed", HELD: "held"}
"""Records that take a job out of the queue, with the reason of a run's end."""
ENDINGS: Final = frozenset({TERMINATED, ABORTED, DATAFLOW_JOB_SKIPPED})
"""Records after which a job is gone for good."""
IGNORED_NAMES: Final = {
    3: "checkpointed",
    6: "image_size",
    8: "generic",
    14: "node_execute",  # one of a parallel job's nodes; the job's own start is a 001
    15: "node_terminated",
    16: "post_script_terminated",
    17: "globus_submit",
    18: "globus_submit_failed",
    19: "globus_resource_up",
    20: "globus_resource_down",
    21: "remote_error",  # the outcome of the run follows as 004, 007 or 012
    24: "reconnect_failed",  # an event, except if a 004 of the same second repeats it
    25: "grid_resource_up",
    26: "grid_resource_down",
    27: "grid_submit",
    28: "job_ad_information",  # read for what it adds to the record before it
    29: "status_unknown",
    30: "status_known",
    31: "stage_in",
    32: "stage_out",
    33: "attribute_update",
    34: "preskip",
    35: "cluster_submit",
    36: "cluster_remove",
    37: "factory_paused",
    38: "factory_resumed",
    39: "none",
    40: "file_transfer",
    41: "reserve_space",
    42: "release_space",
    43: "file_complete",
    44: "file_used",
    45: "file_removed",
    47: "common_files",
}
FAILED_EXEC: Final = "Failed to execute"
FAILED_EXEC_CODE: Final = 6  # HoldReasonCode and VacateReasonCode: FailedToCreateProcess
_MAX_REASON: Final = 300
_NO_REASON: Final = "Reason unspecified"


def hold_reason(words: str) -> str:
    """Return why a job is held, in one line of at most 300 characters; empty if unknown.

    Users may write this text: control characters for terminals are left out.
    """
    line = one_line(words, _MAX_REASON)
    return "" if line == _NO_REASON else line


def ignored_name(number: int) -> str:
    """Return the kind under which a number without an event is counted."""
    return IGNORED_NAMES.get(number) or f"event_{number:03d}"


def loss_reason(failed_exec: bool) -> str:
    """Return why a run was lost, as far as its own record shows."""
    return "failed_start" if failed_exec else "unknown"


# -- state words -----------------------------------------------------------------------------------
# HTCondor's words for the states of jobs (JobStatus 1, 2, 7 and 5).

STATE_WORDS: Final = MappingProxyType(
    {"queued": "Idle", "running": "Running", "suspended": "Suspended", "held": "Held"}
)
