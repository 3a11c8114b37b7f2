"""The job queue: all jobs that have not left, and the ads of those that have."""

from collections import defaultdict, deque
from collections.abc import Iterable

from outrider_adapters.htcondor.bindings import ClassAd, JobStatus
from outrider_adapters.mock_condor.claims import JobId, QueuedJob


class JobQueue:
    """Jobs by id, those idle by submitter, and the ads of those that left, oldest first.

    Args:
        most_history: number of ads of past jobs to keep, the newest.
    """

    def __init__(self, most_history: int) -> None:
        self.jobs: dict[JobId, QueuedJob] = {}
        self.history: deque[ClassAd] = deque(maxlen=most_history)
        self._idle: dict[str, dict[JobId, QueuedJob]] = defaultdict(dict)
        self._last_cluster = 0

    def next_cluster(self) -> int:
        """A new ClusterId."""
        self._last_cluster += 1
        return self._last_cluster

    def enter(self, job: QueuedJob) -> None:
        """Add a submitted job."""
        self.jobs[job.id] = job
        self._index(job)

    def change(self, job: QueuedJob, status: int, now_s: float) -> None:
        """Set a job's ``JobStatus``."""
        job.ad["LastJobStatus"] = job.status
        job.ad["JobStatus"] = int(status)
        job.ad["EnteredCurrentStatus"] = int(now_s)
        self._index(job)

    def charge(self, job: QueuedJob, submitter: str) -> None:
        """Charge a job to another submitter from now on."""
        self._idle[job.submitter].pop(job.id, None)
        job.submitter = submitter
        self._index(job)

    def leave(self, job: QueuedJob, status: int, now_s: float) -> None:
        """Move a completed or removed job's ad to the history."""
        self.change(job, status, now_s)
        del self.jobs[job.id]
        self.history.append(job.ad)

    def idle_count(self) -> int:
        """Number of idle jobs."""
        return sum(map(len, self._idle.values()))

    def submitters_with_idle_jobs(self) -> list[str]:
        """Submitters that have idle jobs, sorted by name."""
        return sorted(submitter for submitter, jobs in self._idle.items() if jobs)

    def idle_jobs(self, submitter: str) -> list[QueuedJob]:
        """The idle jobs of a submitter, in the order of `QueuedJob.sort_key`."""
        return sorted(self._idle[submitter].values(), key=QueuedJob.sort_key)

    def count(self, jobs: Iterable[QueuedJob] | None = None) -> dict[str, int]:
        """Number of jobs by the states that a schedd's ad counts."""
        counts = {"Idle": 0, "Running": 0, "Held": 0}
        names = {
            JobStatus.IDLE: "Idle",
            JobStatus.RUNNING: "Running",
            JobStatus.SUSPENDED: "Running",
            JobStatus.HELD: "Held",
        }
        for job in self.jobs.values() if jobs is None else jobs:
            counts[names[job.status]] += 1
        return counts

    def _index(self, job: QueuedJob) -> None:
        if job.status == JobStatus.IDLE:
            self._idle[job.submitter][job.id] = job
        else:
            self._idle[job.submitter].pop(job.id, None)
