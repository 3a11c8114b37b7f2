"""The job queue: all jobs that have not left, and the ads of those that have."""

from collections import defaultdict, deque
from collections.abc import Iterable

from outrider_adapters.htcondor.pool_calls import ClassAd, ExprTree, JobStatus
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
        """Return a new ClusterId."""
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
        """Return the number of idle jobs."""
        return sum(map(len, self._idle.values()))

    def submitters_with_idle_jobs(self) -> list[str]:
        """Return the submitters that have idle jobs, sorted by name."""
        return sorted(submitter for submitter, jobs in self._idle.items() if jobs)

    def idle_jobs(self, submitter: str) -> list[QueuedJob]:
        """Return the idle jobs of a submitter, in the order of `QueuedJob.sort_key`."""
        return sorted(self._idle[submitter].values(), key=QueuedJob.sort_key)

    def count(self, jobs: Iterable[QueuedJob] | None = None) -> dict[str, int]:
        """Return the number of jobs by the states that a schedd's ad counts."""
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


# -- autoclusters ----------------------------------------------------------------------------------
# Autoclusters: jobs that are equal for matchmaking, so that one match serves all of them.
#
# As in HTCondor, an attribute of jobs is *significant* if a ``START`` or ``RANK`` of a machine or
# the negotiator's own rank reads it, if a job's own ``Requirements`` or ``Rank`` does, or if
# another significant attribute does; jobs whose significant attributes are the same expressions
# form an autocluster.

_OF_JOBS = ("Requirements", "Rank")
_OF_SLOTS = ("Start", "Rank")
_SCOPES = ("my.", "target.")


class Autoclusters:
    """Autoclusters, numbered from 1. Like a schedd, it never drops significant attributes."""

    def __init__(self) -> None:
        self._significant: set[str] = {name.lower() for name in _OF_JOBS}
        self._names: tuple[str, ...] = tuple(sorted(self._significant))
        self._numbers: dict[tuple[str, ...], int] = {}
        self._read: set[tuple[str, ...]] = set()
        self._oldest_valid = 1

    @property
    def significant(self) -> str:
        """Value of ``AutoClusterAttrs``: names, separated by commas."""
        return ",".join(self._names)

    def read_slot(self, ad: ClassAd, negotiator_rank: ExprTree) -> None:
        """Add the job attributes that a slot and the negotiator refer to."""
        expressions = [ad.lookup(name) for name in _OF_SLOTS if name in ad]
        texts = tuple(map(repr, expressions))
        if texts not in self._read:
            self._read.add(texts)
            for expression in (*expressions, negotiator_rank):
                self._learn(ad.externalRefs(expression))

    def number_of(self, job: QueuedJob) -> int:
        """Return the autocluster of a job."""
        if job.autocluster < self._oldest_valid:
            signature = self._signature(job.ad)
            while signature not in self._numbers and self._read_job(job.ad):
                signature = self._signature(job.ad)
            fresh = len(self._numbers) + self._oldest_valid
            job.autocluster = self._numbers.setdefault(signature, fresh)
            job.ad["AutoClusterId"] = job.autocluster
            job.ad["AutoClusterAttrs"] = self.significant
        return job.autocluster

    def _signature(self, ad: ClassAd) -> tuple[str, ...]:
        return tuple(repr(ad.lookup(name)) if name in ad else "" for name in self._names)

    def _read_job(self, ad: ClassAd) -> bool:
        """Add the attributes that a job's significant ones refer to; return whether any was new."""
        before = self._names
        for name in before:
            if name in ad:
                self._learn(ad.internalRefs(ad.lookup(name)))
                self._learn(ad.externalRefs(ad.lookup(name)))
        return self._names != before

    def _learn(self, references: Iterable[str]) -> None:
        names = {_bare(reference) for reference in references if reference}
        if names <= self._significant:
            return
        self._significant |= names
        self._names = tuple(sorted(self._significant))
        self._oldest_valid += len(self._numbers)
        self._numbers.clear()


def _bare(reference: str) -> str:
    name = reference.lower()
    for scope in _SCOPES:
        name = name.removeprefix(scope)
    return name
