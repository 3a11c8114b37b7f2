"""Meaning of ``Exit_status``: whether a job completed, was ended or continues, and why.

0 to 255 is the exit code of the job itself: it completed, and the code is its user's matter.
256 + n: its first process was killed by signal n, such as 271 by SIGTERM from qdel or an exceeded
limit. Codes below 0 are the batch system's own, and there the two families differ: -11 is an
exceeded walltime in Torque and a rerun in PBS Pro.

Sources: "Job exit status" in Torque's administrator guide (6.1), and ``src/include/job.h`` of
OpenPBS with "Job Exit Status Codes" in the PBS Professional guides.
"""

from types import MappingProxyType
from typing import Final, NamedTuple

SIGNALLED: Final = 256


class Fate(NamedTuple):
    """Outcome of a run by its exit status.

    Attributes:
        reason: one of the eviction reasons, or empty where the run completed its job.
        goes_on: the job is requeued.
    """

    reason: str
    goes_on: bool = False


COMPLETED: Final = Fate("")
KILLED: Final = Fate("killed")
UNKNOWN: Final = Fate("unknown")
FAILED_START: Final = Fate("failed_start")
_RETRIED: Final = Fate("failed_start", goes_on=True)
_RERUN: Final = Fate("unknown", goes_on=True)
_COMMON: Final = {
    -1: FAILED_START,  # before files were staged
    -2: FAILED_START,  # after
    -3: _RETRIED,
    -4: UNKNOWN,  # aborted as its node's daemon came up
    -5: _RERUN,  # the same, from its checkpoint, on the same node
    -6: _RERUN,  # the same, from its checkpoint, on any node
    -7: FAILED_START,  # could not be restarted from its checkpoint
    -8: FAILED_START,  # its command could not be executed
}
_TORQUE: Final = _COMMON | {
    -9: FAILED_START,  # its output files could not be made
    -10: KILLED,  # over its memory
    -11: KILLED,  # over its walltime
    -12: KILLED,  # over its CPU time
    -13: _RETRIED,  # no cgroup
    -14: _RETRIED,  # the prologue failed
}
_PBS_PRO: Final = _COMMON | {
    -10: FAILED_START,  # its user or group is not valid there
    -11: _RERUN,
    -12: _RERUN,  # checkpointed and ended
    -13: FAILED_START,  # password
    -14: _RERUN,  # a rerun that a sister node failed to take part in
    -15: _RERUN,  # from its checkpoint
    -16: _RETRIED,  # a hook refused the start
    -17: FAILED_START,  # a hook refused the start and had the job deleted
    -18: _RERUN,  # by a hook
    -19: KILLED,  # by a hook
    -20: _RERUN,  # the first node was lost
    -21: FAILED_START,  # security
    -22: FAILED_START,  # a hook failed
    -23: FAILED_START,  # Kerberos
    -24: KILLED,  # over its CPUs, at a moment
    -25: KILLED,  # over its CPUs, on average
    -26: KILLED,  # over its virtual memory
    -27: KILLED,  # over its memory
    -28: KILLED,  # over its CPU time
    -29: KILLED,  # over its walltime
    -30: FAILED_START,  # a node could not join
}


def requeue_reason(status: int, torque: bool) -> str:
    """Return why a requeued run ended (``R``): a failed start, or unknown."""
    failed = fate_of(status, torque).reason == FAILED_START.reason
    return FAILED_START.reason if failed else UNKNOWN.reason


def fate_of(status: int, torque: bool) -> Fate:
    """Return the outcome of a run that ended with this ``Exit_status``.

    A code that neither family documents is `UNKNOWN`: the job is gone for an unknown reason.

    >>> fate_of(1, torque=True), fate_of(271, torque=False).reason
    (Fate(reason='', goes_on=False), 'killed')
    """
    if status >= SIGNALLED:
        return KILLED
    if status >= 0:
        return COMPLETED
    return (_TORQUE if torque else _PBS_PRO).get(status, UNKNOWN)


# -- state words -----------------------------------------------------------------------------------
# PBS's codes for the states of jobs.
#
# A job that waits for a time (W) is blocked like one that is held (H): both are ``held`` here.

STATE_WORDS: Final = MappingProxyType(
    {"queued": "Q", "running": "R", "suspended": "S", "held": "H or W"}
)
