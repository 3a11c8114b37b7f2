"""Outcomes: how a run ended. Policies learn only from these."""

from collections.abc import Hashable
from typing import Final

COMPLETED_RUN: Final = "completed"
EVICTED_RUN: Final = "evicted"
REMOVED_RUN: Final = "removed"


class Outcome:
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

    __slots__ = (
        "cluster",
        "end_s",
        "ending",
        "job",
        "key",
        "machine",
        "reason",
        "run_s",
        "start_s",
    )

    def __init__(
        self,
        job: int,
        key: Hashable,
        machine: int,
        cluster: int,
        start_s: float,
        end_s: float,
        run_s: float,
        ending: str,
        reason: str = "",
    ) -> None:
        self.job = job
        self.key = key
        self.machine = machine
        self.cluster = cluster
        self.start_s = start_s
        self.end_s = end_s
        self.run_s = run_s
        self.ending = ending
        self.reason = reason
