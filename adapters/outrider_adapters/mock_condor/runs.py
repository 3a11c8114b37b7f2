"""Runs of jobs, and their effects on job ad, slot ad, user's usage and event log."""

import heapq
import math
from typing import Final

from outrider_adapters.htcondor.pool_calls import JobStatus
from outrider_adapters.mock_condor.accountant import Accountant
from outrider_adapters.mock_condor.claims import BUSY, CLAIMED, SUSPENDED, QueuedJob, Slot
from outrider_adapters.mock_condor.event_log import EventLog
from outrider_adapters.mock_condor.queue import JobQueue

EVICTED_CODE: Final = 1005
"""``VacateReasonCode`` of an owner's return, a drain, a preemption and condor_vacate_job."""
VACATED_FAST_CODE: Final = 1004
LEFT_QUEUE_CODE: Final = 0
"""``VacateReasonCode`` if the job was held or removed."""


class Runs:
    """Runs of jobs: starts and ends them. Ads change as observed in a real pool."""

    def __init__(self, queue: JobQueue, accountant: Accountant, log: EventLog) -> None:
        self._queue = queue
        self._accountant = accountant
        self._log = log
        self._ends: list[tuple[float, tuple[int, int]]] = []

    def start(self, job: QueuedJob, slot: Slot, now_s: float) -> None:
        """Start a job on a slot."""
        ad = job.ad
        runs = ad.get("JobRunCount", 0) + 1
        if "JobCurrentStartDate" in ad:
            ad["JobLastStartDate"] = ad["JobCurrentStartDate"]
        ad.update(
            {
                "RemoteHost": slot.name,
                "RemoteSlotID": slot.ad["SlotID"],
                "StartdIpAddr": slot.ad["MyAddress"],
                "JobStartDate": ad.get("JobStartDate", int(now_s)),
                "JobCurrentStartDate": int(now_s),
                "JobCurrentStartExecutingDate": int(now_s),
                "LastMatchTime": int(now_s),
                "JobRunCount": runs,
                "NumShadowStarts": runs,
                "NumJobStarts": runs,
                "NumJobMatches": runs,
                "CurrentHosts": 1,
            }
        )
        self._queue.change(job, JobStatus.RUNNING, now_s)
        slot.claim(job, now_s)
        job.slot = slot
        self._accountant.claim_slot(job.submitter, slot.weight, now_s)
        self._log.executing(now_s, ad, slot.ad)
        self._will_end(job, now_s + job.run_s)

    def next_end_s(self) -> float:
        """Return when the next run ends; `math.inf` if none does."""
        while self._ends:
            end_s, id_ = self._ends[0]
            job = self._queue.jobs.get(id_)
            if job is not None and job.ends_s == end_s:
                return end_s
            heapq.heappop(self._ends)  # that run has ended early
        return math.inf

    def finish_next(self, now_s: float) -> Slot:
        """Complete the job whose run ends next; returns its slot."""
        _, id_ = heapq.heappop(self._ends)
        job = self._queue.jobs[id_]
        slot = self._close(job, now_s)
        job.ad["CompletionDate"] = int(now_s)
        job.ad["ExitCode"] = 0
        job.ad["NumJobCompletions"] = 1
        self._log.terminated(now_s, job.ad)
        self._leave_slot(job, now_s)
        self._queue.leave(job, JobStatus.COMPLETED, now_s)
        return slot

    def evict(self, job: QueuedJob, code: int, now_s: float) -> Slot:
        """Evict a job, which is then idle again; returns the slot.

        The log record is written before the ad has the run's times, as in a real pool.
        """
        job.ad["LastVacateTime"] = int(now_s)
        job.ad["VacateReason"] = ""
        job.ad["VacateReasonCode"], job.ad["VacateReasonSubCode"] = code, 0
        self._log.evicted(now_s, job.ad)
        slot = self._close(job, now_s)
        signal = 9 if code == VACATED_FAST_CODE else 15
        job.ad["ExitBySignal"], job.ad["ExitSignal"] = True, signal
        job.ad["ExitReason"] = f"died on signal {signal}"
        self._leave_slot(job, now_s)
        self._queue.change(job, JobStatus.IDLE, now_s)
        return slot

    def suspend(self, job: QueuedJob, now_s: float) -> None:
        """Suspend a job's run."""
        job.left_s, job.ends_s = job.ends_s - now_s, math.inf
        job.ad["TotalSuspensions"] = job.ad["TotalSuspensions"] + 1
        job.ad["LastSuspensionTime"] = int(now_s)
        self._queue.change(job, JobStatus.SUSPENDED, now_s)
        job.running_slot.enter(CLAIMED, SUSPENDED, now_s)
        self._log.suspended(now_s, job.ad)

    def resume(self, job: QueuedJob, now_s: float) -> None:
        """Resume a suspended run."""
        suspended_s = int(now_s) - job.ad["LastSuspensionTime"]
        job.ad["CumulativeSuspensionTime"] = job.ad["CumulativeSuspensionTime"] + suspended_s
        self._queue.change(job, JobStatus.RUNNING, now_s)
        job.running_slot.enter(CLAIMED, BUSY, now_s)
        self._log.unsuspended(now_s, job.ad)
        self._will_end(job, now_s + job.left_s)

    def charge(self, job: QueuedJob, submitter: str, now_s: float) -> None:
        """Charge a job, and its slot if any, to another submitter from now on."""
        if job.slot is not None:
            self._accountant.release_slot(job.submitter, job.slot.weight, now_s)
            self._accountant.claim_slot(submitter, job.slot.weight, now_s)
        self._queue.charge(job, submitter)

    def _will_end(self, job: QueuedJob, end_s: float) -> None:
        job.ends_s = end_s
        if end_s < math.inf:
            heapq.heappush(self._ends, (end_s, job.id))

    def _close(self, job: QueuedJob, now_s: float) -> Slot:
        """Add the run's times to the totals in the job's ad; returns the slot."""
        slot = job.running_slot
        ran_s = float(int(now_s) - job.ad["JobCurrentStartDate"])
        job.ad["LastRemoteWallClockTime"] = ran_s
        job.ad["RemoteWallClockTime"] = job.ad["RemoteWallClockTime"] + ran_s
        job.ad["CumulativeSlotTime"] = job.ad["CumulativeSlotTime"] + ran_s * slot.weight
        return slot

    def _leave_slot(self, job: QueuedJob, now_s: float) -> None:
        slot = job.running_slot
        job.ad["LastRemoteHost"] = slot.name
        job.ad["CurrentHosts"] = 0
        for name in ("RemoteHost", "RemoteSlotID", "StartdIpAddr"):
            del job.ad[name]
        job.slot, job.ends_s = None, math.inf
        slot.release(now_s)
        self._accountant.release_slot(job.submitter, slot.weight, now_s)
