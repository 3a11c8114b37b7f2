"""Outcomes: how a run ended. Policies learn from these and from nothing else."""

from collections.abc import Hashable
from typing import Final

import msgspec

COMPLETED_RUN: Final = "completed"
EVICTED_RUN: Final = "evicted"
REMOVED_RUN: Final = "removed"


class Outcome(msgspec.Struct):
    """The end of a run, or of a job that left the queue without one.

    Attributes:
        job: the job's number.
        key: what the policy's `group_key` said of the job when the run started.
        machine: number of the machine it ran on, `NOWHERE` if it left the queue unstarted.
        cluster: number of that machine's cluster, or `NOWHERE`.
        start_s, end_s: the run, in seconds of event time.
        run_s: seconds of work in it (without suspended time).
        ending: ``completed``, ``evicted`` (the job is queued again) or ``removed`` (it is gone).
        reason: why an eviction or a removal, one of `EVICTION_REASONS`; empty when completed.
    """

    job: int
    key: Hashable
    machine: int
    cluster: int
    start_s: float
    end_s: float
    run_s: float
    ending: str
    reason: str = ""
