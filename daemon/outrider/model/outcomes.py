"""Outcomes: how a run ended. Policies learn only from these."""

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
        key: the policy's `group_key` of the job when the run started.
        machine: number of its machine, `NOWHERE` if the job left the queue without a start.
        cluster: number of that machine's cluster, or `NOWHERE`.
        start_s, end_s: the run, in seconds of event time.
        run_s: seconds of work in it (without suspended time).
        ending: ``completed``, ``evicted`` (the job is queued again) or ``removed`` (it is gone).
        reason: of an eviction or removal, one of `EVICTION_REASONS`; empty if completed.
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
