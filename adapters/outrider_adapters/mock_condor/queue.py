"""The job queue: every job that has not left, and the ads of those that have."""

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
"""Attributes by which jobs of one user are ordered, largest first, and what unset means."""


class QueuedJob:
    """A job, its ad, and what only the pool knows.

    Attributes:
        run_s: how long it runs if nothing disturbs it; `math.inf`: it never ends by itself.
        submitter: whom its use is charged to, such as ``alice@mock.local``.
        slot: where it runs, or None.
        ends_s: when its run will end, while it runs.
        left_s: what was left of the run when it was suspended.
        autocluster: number of its autocluster, 0 while unknown.
    """

    __slots__ = (
        "_place_in_line",
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
        self._place_in_line: tuple[float, ...] | None = None

    @property
    def name(self) -> str:
        """``cluster.proc``."""
        return f"{self.id[0]}.{self.id[1]}"

    @property
    def place(self) -> "Slot":
        """The slot of a job that runs.

        Raises:
            LookupError: it does not.
        """
        if self.slot is None:
            raise LookupError(f"job {self.name} does not run")
        return self.slot

    @property
    def status(self) -> int:
        """``JobStatus``."""
        return int(self.ad["JobStatus"])

    def place_in_line(self) -> tuple[float, ...]:
        """Sorts jobs of one user: priorities, then the time of submission."""
        if self._place_in_line is None:
            ranks = [-number(self.ad.get(name), unset) for name, unset in _ORDER]
            self._place_in_line = (*ranks, self.ad["QDate"], *self.id)
        return self._place_in_line

    def was_edited(self) -> None:
        """Forget what was worked out from the ad."""
        self.autocluster = 0
        self._place_in_line = None


class JobQueue:
    """Jobs by id, those idle by submitter, and the ads of those that left, oldest first.

    Args:
        most_history: how many ads of jobs that left are kept, the newest.
    """

    def __init__(self, most_history: int) -> None:
        self.jobs: dict[JobId, QueuedJob] = {}
        self.history: deque[ClassAd] = deque(maxlen=most_history)
        self._idle: dict[str, dict[JobId, QueuedJob]] = defaultdict(dict)
        self._last_cluster = 0

    def next_cluster(self) -> int:
        """A number for a new cluster of jobs."""
        self._last_cluster += 1
        return self._last_cluster

    def enter(self, job: QueuedJob) -> None:
        """A job has been submitted."""
        self.jobs[job.id] = job
        self._index(job)

    def change(self, job: QueuedJob, status: int, now_s: float) -> None:
        """Give a job another ``JobStatus``."""
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
        """A job is completed or removed; its ad goes to the history."""
        self.change(job, status, now_s)
        del self.jobs[job.id]
        self.history.append(job.ad)

    def idle_count(self) -> int:
        """How many jobs are idle."""
        return sum(map(len, self._idle.values()))

    def submitters_waiting(self) -> list[str]:
        """Submitters that have idle jobs, by name."""
        return sorted(submitter for submitter, jobs in self._idle.items() if jobs)

    def waiting(self, submitter: str) -> list[QueuedJob]:
        """The idle jobs of a submitter, in line."""
        return sorted(self._idle[submitter].values(), key=QueuedJob.place_in_line)

    def count(self, jobs: Iterable[QueuedJob] | None = None) -> dict[str, int]:
        """How many jobs are in the states that a schedd's ad counts."""
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
