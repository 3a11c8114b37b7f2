"""The job queue: all jobs that have not left, and the ads of those that have."""

import math
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from outrider_adapters.mock_condor.ads import number
from outrider_adapters.mock_condor.bindings import ClassAd, JobStatus

if TYPE_CHECKING:
    from outrider_adapters.mock_condor.startd import Slot

JobId: TypeAlias = tuple[int, int]

_LEAST: Final = -(2**31)
_ORDER: Final = (
    ("PreJobPrio1", _LEAST),
    ("PreJobPrio2", _LEAST),
    ("JobPrio", 0),
    ("PostJobPrio1", _LEAST),
    ("PostJobPrio2", _LEAST),
)
"""Attributes by which jobs of one user are ordered, largest first, and their default values."""


class QueuedJob:
    """A job: its ad, and the hidden state of its run.

    Attributes:
        run_s: true run time, seconds; `math.inf`: it never ends by itself.
        submitter: the submitter that its usage is charged to, such as ``alice@mock.local``.
        slot: the slot it runs on, or None.
        ends_s: when its run will end, while it runs.
        left_s: seconds left of the run when it was suspended.
        autocluster: number of its autocluster, 0 while unknown.
    """

    __slots__ = (
        "_sort_key",
        "ad",
        "autocluster",
        "ends_s",
        "id",
        "left_s",
        "run_s",
        "slot",
        "submitter",
    )

    def __init__(self, ad: ClassAd, submitter: str, run_s: float) -> None:
        self.id: JobId = (ad["ClusterId"], ad["ProcId"])
        self.ad = ad
        self.submitter = submitter
        self.run_s = run_s
        self.slot: Slot | None = None
        self.ends_s = math.inf
        self.left_s = 0.0
        self.autocluster = 0
        self._sort_key: tuple[float, ...] | None = None

    @property
    def name(self) -> str:
        """``cluster.proc``."""
        return f"{self.id[0]}.{self.id[1]}"

    @property
    def running_slot(self) -> "Slot":
        """The slot of a running job.

        Raises:
            LookupError: it is not running.
        """
        if self.slot is None:
            raise LookupError(f"job {self.name} does not run")
        return self.slot

    @property
    def status(self) -> int:
        """``JobStatus``."""
        return int(self.ad["JobStatus"])

    def sort_key(self) -> tuple[float, ...]:
        """Sort key among jobs of one user: priorities, then time of submission, then id."""
        if self._sort_key is None:
            ranks = [-number(self.ad.get(name), unset) for name, unset in _ORDER]
            self._sort_key = (*ranks, self.ad["QDate"], *self.id)
        return self._sort_key

    def invalidate(self) -> None:
        """Drop cached values after a change of the ad."""
        self.autocluster = 0
        self._sort_key = None


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
