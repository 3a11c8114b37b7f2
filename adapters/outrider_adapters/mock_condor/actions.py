"""The effects of ``condor_hold``, ``condor_rm`` and the like on one job."""

from collections.abc import Callable
from typing import Final

from outrider_adapters.htcondor.bindings import JobAction, JobStatus
from outrider_adapters.mock_condor.claims import QueuedJob, Slot
from outrider_adapters.mock_condor.event_log import EventLog
from outrider_adapters.mock_condor.queue import JobQueue
from outrider_adapters.mock_condor.runs import (
    EVICTED_CODE,
    LEFT_QUEUE_CODE,
    VACATED_FAST_CODE,
    Runs,
)

SUCCESS: Final = "TotalSuccess"
BAD_STATUS: Final = "TotalBadStatus"
ALREADY_DONE: Final = "TotalAlreadyDone"

_BY_USER: Final = 1  # HoldReasonCode


class Actions:
    """Carries out actions on queued and running jobs.

    Args:
        queue, runs, log: of the pool.
        on_change: called with every slot whose ad changed, and the pool's time.
    """

    def __init__(
        self, queue: JobQueue, runs: Runs, log: EventLog, on_change: Callable[[Slot, float], None]
    ) -> None:
        self._queue = queue
        self._runs = runs
        self._log = log
        self._on_change = on_change
        self._handlers: dict[JobAction, Callable[[QueuedJob, str, float], str]] = {
            JobAction.Hold: self._hold,
            JobAction.Release: self._release,
            JobAction.Remove: self.remove,
            JobAction.RemoveX: self.remove,
            JobAction.Vacate: lambda job, _, now_s: self._vacate(job, EVICTED_CODE, now_s),
            JobAction.VacateFast: lambda job, _, now_s: self._vacate(job, VACATED_FAST_CODE, now_s),
            JobAction.Suspend: self._suspend,
            JobAction.Continue: self._continue,
        }

    def act(self, action: JobAction, job: QueuedJob, reason: str, now_s: float) -> str:
        """Carry out an action; returns the counter of the result ad that it adds to."""
        return self._handlers[action](job, reason, now_s)

    def remove(self, job: QueuedJob, reason: str, now_s: float) -> str:
        """Remove a job from the queue, and end its run if it has one."""
        self.end_run(job, LEFT_QUEUE_CODE, now_s)
        job.ad["RemoveReason"] = reason
        self._log.aborted(now_s, job.ad)
        self._queue.leave(job, JobStatus.REMOVED, now_s)
        return SUCCESS

    def end_run(self, job: QueuedJob, code: int, now_s: float) -> None:
        """End the job's run, if it has one; the job is idle afterwards."""
        if job.slot is not None:
            self._on_change(self._runs.evict(job, code, now_s), now_s)

    def _hold(self, job: QueuedJob, reason: str, now_s: float) -> str:
        if job.status == JobStatus.HELD:
            return ALREADY_DONE
        self.end_run(job, LEFT_QUEUE_CODE, now_s)
        job.ad["HoldReason"] = reason
        job.ad["HoldReasonCode"], job.ad["HoldReasonSubCode"] = _BY_USER, 0
        job.ad["NumHolds"] = job.ad.get("NumHolds", 0) + 1
        self._queue.change(job, JobStatus.HELD, now_s)
        self._log.held(now_s, job.ad)
        return SUCCESS

    def _release(self, job: QueuedJob, reason: str, now_s: float) -> str:
        if job.status != JobStatus.HELD:
            return BAD_STATUS
        job.ad["LastHoldReason"] = job.ad["HoldReason"]
        job.ad["LastHoldReasonCode"] = job.ad["HoldReasonCode"]
        for name in ("HoldReason", "HoldReasonCode", "HoldReasonSubCode"):
            del job.ad[name]
        job.ad["ReleaseReason"] = reason
        self._queue.change(job, JobStatus.IDLE, now_s)
        self._log.released(now_s, job.ad)
        return SUCCESS

    def _vacate(self, job: QueuedJob, code: int, now_s: float) -> str:
        if job.slot is None:
            return BAD_STATUS
        self.end_run(job, code, now_s)
        return SUCCESS

    def _suspend(self, job: QueuedJob, reason: str, now_s: float) -> str:
        if job.status != JobStatus.RUNNING or job.slot is None:
            return BAD_STATUS
        self._runs.suspend(job, now_s)
        self._on_change(job.slot, now_s)
        return SUCCESS

    def _continue(self, job: QueuedJob, reason: str, now_s: float) -> str:
        if job.status != JobStatus.SUSPENDED or job.slot is None:
            return BAD_STATUS
        self._runs.resume(job, now_s)
        self._on_change(job.slot, now_s)
        return SUCCESS
