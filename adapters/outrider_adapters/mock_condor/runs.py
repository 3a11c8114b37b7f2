"""What a run does to a job's ad, to the slot's, to the user's account and to the event log."""

import heapq
import math
from typing import Final

from outrider_adapters.mock_condor.accountant import Accountant
from outrider_adapters.mock_condor.bindings import JobStatus
from outrider_adapters.mock_condor.event_log import EventLog
from outrider_adapters.mock_condor.queue import JobQueue, QueuedJob
from outrider_adapters.mock_condor.startd import BUSY, CLAIMED, SUSPENDED, Slot

EVICTED_CODE: Final = 1005
"""``VacateReasonCode`` of an owner's return, a drain, a preemption and condor_vacate_job alike."""
VACATED_FAST_CODE: Final = 1004
LEFT_QUEUE_CODE: Final = 0
"""Of a run that ended because its job was held or removed."""


class Runs:
    """Begins and ends runs. Ads change as those of a real pool were seen to."""

    def __init__(self, queue: JobQueue, accountant: Accountant, log: EventLog) -> None:
        self._queue = queue
        self._accountant = accountant
        self._log = log
        self._ends: list[tuple[float, tuple[int, int]]] = []

    def start(self, job: QueuedJob, slot: Slot, now_s: float) -> None:
        """A job begins on a slot."""
        ad = job.ad
        runs = ad.get("JobRunCount", 0) + 1
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
        self._accountant.took(job.submitter, slot.weight, now_s)
        self._log.executing(now_s, ad, slot.ad)
        self._will_end(job, now_s + job.run_s)

    def next_end_s(self) -> float:
        """When the next run ends; `math.inf` if none does."""
        while self._ends:
            end_s, id_ = self._ends[0]
            job = self._queue.jobs.get(id_)
            if job is not None and job.ends_s == end_s:
                return end_s
            heapq.heappop(self._ends)  # that run was cut short
        return math.inf

    def finish_next(self, now_s: float) -> Slot:
        """The run that ends next is over, its job completed; returns its slot."""
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
        """A run is lost and its job idle again; returns the slot.

        The record in the log is written before the ad has the run's times, as in a real pool.
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
        """A run stands still."""
        job.left_s, job.ends_s = job.ends_s - now_s, math.inf
        job.ad["TotalSuspensions"] = job.ad["TotalSuspensions"] + 1
        job.ad["LastSuspensionTime"] = int(now_s)
        self._queue.change(job, JobStatus.SUSPENDED, now_s)
        job.place.enter(CLAIMED, SUSPENDED, now_s)
        self._log.suspended(now_s, job.ad)

    def resume(self, job: QueuedJob, now_s: float) -> None:
        """A run that stood still goes on."""
        stood_s = int(now_s) - job.ad["LastSuspensionTime"]
        job.ad["CumulativeSuspensionTime"] = job.ad["CumulativeSuspensionTime"] + stood_s
        self._queue.change(job, JobStatus.RUNNING, now_s)
        job.place.enter(CLAIMED, BUSY, now_s)
        self._log.unsuspended(now_s, job.ad)
        self._will_end(job, now_s + job.left_s)

    def charge(self, job: QueuedJob, submitter: str, now_s: float) -> None:
        """Charge a job, and the slot it may have, to another submitter from now on."""
        if job.slot is not None:
            self._accountant.gave_back(job.submitter, job.slot.weight, now_s)
            self._accountant.took(submitter, job.slot.weight, now_s)
        self._queue.charge(job, submitter)

    def _will_end(self, job: QueuedJob, end_s: float) -> None:
        job.ends_s = end_s
        if end_s < math.inf:
            heapq.heappush(self._ends, (end_s, job.id))

    def _close(self, job: QueuedJob, now_s: float) -> Slot:
        """Add the run to the sums of the job's ad."""
        slot = job.place
        ran_s = float(int(now_s) - job.ad["JobCurrentStartDate"])
        job.ad["LastRemoteWallClockTime"] = ran_s
        job.ad["RemoteWallClockTime"] = job.ad["RemoteWallClockTime"] + ran_s
        job.ad["CumulativeSlotTime"] = job.ad["CumulativeSlotTime"] + ran_s * slot.weight
        return slot

    def _leave_slot(self, job: QueuedJob, now_s: float) -> None:
        slot = job.place
        job.ad["LastRemoteHost"] = slot.name
        job.ad["CurrentHosts"] = 0
        for name in ("RemoteHost", "RemoteSlotID", "StartdIpAddr"):
            del job.ad[name]
        job.slot, job.ends_s = None, math.inf
        slot.release(now_s)
        self._accountant.gave_back(job.submitter, slot.weight, now_s)
