"""Client of the schedd, with the calls of ``htcondor2.Schedd``."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from outrider_adapters.htcondor.pool_calls import (
    ClassAd,
    ClassAdException,
    ExprTree,
    HTCondorException,
    JobAction,
    JobStatus,
    SubmitResult,
)
from outrider_adapters.mock_condor.ads import PoolConfig, at_time, holds, projected
from outrider_adapters.mock_condor.claims import QueuedJob, Slot
from outrider_adapters.mock_condor.event_log import EventLog
from outrider_adapters.mock_condor.faults import Transport
from outrider_adapters.mock_condor.queue import JobQueue
from outrider_adapters.mock_condor.runs import (
    EVICTED_CODE,
    LEFT_QUEUE_CODE,
    VACATED_FAST_CODE,
    Runs,
)

# -- actions ---------------------------------------------------------------------------------------
# The effects of ``condor_hold``, ``condor_rm`` and the like on one job.

SUCCESS: Final = "TotalSuccess"
BAD_STATUS: Final = "TotalBadStatus"
ALREADY_DONE: Final = "TotalAlreadyDone"
_BY_USER: Final = 1  # HoldReasonCode


class Actions:
    """Actions on queued and running jobs.

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
        """Execute an action; return the counter of the result ad that it adds to."""
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


# -- job specs -------------------------------------------------------------------------------------
# Selection of jobs by the ``job_spec`` argument of ``htcondor2.Schedd``.

JobSpec: TypeAlias = str | int | Sequence[str] | ExprTree
_JOB = re.compile(r"\d+\.\d+")
_CLUSTER = re.compile(r"\d+")


class Selection(NamedTuple):
    """Jobs that a spec selects.

    Attributes:
        jobs: jobs in the queue, in the order of the spec's ids or of the queue.
        missing: ids in the spec that are not in the queue.
    """

    jobs: list[QueuedJob]
    missing: list[str]


def select_jobs(queue: JobQueue, spec: JobSpec, now_s: float) -> Selection:
    """Select jobs by a spec.

    Args:
        queue: the jobs.
        spec: ``"cluster.proc"``, ``"cluster"``, a list of these, an int (a cluster) or a constraint
            as text or `ExprTree`.
        now_s: the value of ``time()`` in a constraint.

    Raises:
        TypeError, ValueError: not a valid spec; with the messages of ``htcondor2``.
    """
    if isinstance(spec, int):
        return _of_constraint(queue, f"ClusterId == {spec}", now_s)
    if isinstance(spec, ExprTree):
        return _of_constraint(queue, repr(spec), now_s)
    if isinstance(spec, str):
        if _JOB.fullmatch(spec) or _CLUSTER.fullmatch(spec):
            return _of_ids(queue, [spec])
        return _of_constraint(queue, spec, now_s)
    if not isinstance(spec, list):
        raise TypeError("The job_spec must be list of strings, a string, an int, or an ExprTree.")
    if not all(isinstance(item, str) for item in spec):
        raise TypeError("All elements of the job_spec list must be strings.")
    return _of_ids(queue, spec)


def _of_ids(queue: JobQueue, ids: list[str]) -> Selection:
    jobs: list[QueuedJob] = []
    missing: list[str] = []
    for item in ids:
        if _JOB.fullmatch(item):
            cluster, proc = item.split(".")
            job = queue.jobs.get((int(cluster), int(proc)))
            found = [] if job is None else [job]
            missing += [item] if job is None else []
        elif _CLUSTER.fullmatch(item):
            found = [job for id_, job in queue.jobs.items() if id_[0] == int(item)]
        else:
            raise ValueError(
                "All elements of the job_spec list must be strings of the form clusterID[.procID]"
            )
        jobs += found
    return Selection(jobs, missing)


def _of_constraint(queue: JobQueue, constraint: str, now_s: float) -> Selection:
    try:
        condition = ExprTree(at_time(constraint, now_s))
    except ClassAdException as error:
        raise ValueError(
            "The job_spec string must be a clusterID[.procID] or the string form of an ExprTree."
        ) from error
    return Selection([job for job in queue.jobs.values() if holds(condition, job.ad)], [])


# -- schedd ----------------------------------------------------------------------------------------

_IMMUTABLE: Final = frozenset(
    {"clusterid", "procid", "globaljobid", "owner", "user", "qdate", "jobstatus", "mytype"}
)
_COUNTERS: Final = (
    "TotalError",
    SUCCESS,
    "TotalNotFound",
    "TotalBadStatus",
    "TotalAlreadyDone",
    "TotalPermissionDenied",
)


class SchedulerDaemon(Protocol):
    """Interface of a schedd for its client: the queue, and operations on it."""

    now_s: float
    config: PoolConfig
    transport: Transport
    log: EventLog
    queue: JobQueue
    actions: Actions

    def set_job_attribute(self, job: QueuedJob, name: str, expression: str) -> None:
        """Change one attribute of a job's ad."""
        ...

    def submit(
        self, user: str, description: Mapping[str, str], run_s: float | None, count: int = 1
    ) -> SubmitResult:
        """Submit jobs as this user."""
        ...

    def request_cycle(self) -> None:
        """Request a negotiation cycle."""
        ...


class Schedd:
    """A client with the calls of ``htcondor2.Schedd``, and the identity of one user.

    Calls that change jobs behave as those of bindings 25.14 against a pool of 23.9: an edit of
    another user's job is reported as done but changes nothing, so read back every edit; `act` does
    not raise without permission, so check its counters.

    Raises (every call):
        HTCondorException: the schedd does not answer.
    """

    def __init__(self, pool: SchedulerDaemon, user: str) -> None:
        self._pool = pool
        self._user = user

    def query(
        self,
        constraint: str | ExprTree = "True",
        projection: list[str] | None = None,
        callback: Callable[[ClassAd], Any] | None = None,
        limit: int = -1,
    ) -> list[Any]:
        """Return ads of jobs in the queue.

        Args:
            constraint: which jobs; all by default.
            projection: attributes to return; None or empty: all, and ``ServerTime``.
            callback: maps each ad to a result; ads for which it returns None are left out.
            limit: most ads to return; negative: all.

        Raises:
            HTCondorException: the constraint does not parse.
        """
        self._pool.transport.call(
            "Failed to fetch ads from schedd, errmsg=CEDAR:6001:Failed to connect"
        )
        condition = self._condition(constraint)
        found: list[Any] = []
        for job in self._pool.queue.jobs.values():
            if limit >= 0 and len(found) >= limit:
                break
            if condition is None or holds(condition, job.ad):
                found.append(self._answer(job.ad, projection))
        found = self._pool.transport.answer(found)
        if callback is None:
            return found
        return [answer for answer in map(callback, found) if answer is not None]

    def history(
        self,
        constraint: str | ExprTree | None = None,
        projection: list[str] | None = None,
        match: int = -1,
        since: int | str | ExprTree | None = None,
    ) -> list[ClassAd]:
        """Return ads of jobs that have left the queue, the last first.

        Args:
            constraint: which jobs; None: all.
            projection: attributes to return; None or empty: all.
            match: most ads to return; negative: all.
            since: stop before the first job of this cluster (int or ``"cluster"``), this id
                (``"cluster.proc"``) or for which this expression is true.

        Raises:
            HTCondorException: an expression does not parse.
        """
        self._pool.transport.call("Failed to connect to schedd.")
        condition = self._condition("true" if constraint is None else constraint)
        stop = None if since is None else self._condition(_since(since))
        found: list[ClassAd] = []
        for ad in reversed(self._pool.queue.history):
            if 0 <= match <= len(found) or (stop is not None and holds(stop, ad)):
                break
            if condition is None or holds(condition, ad):
                found.append(projected(ad, projection or ()))
        return self._pool.transport.answer(found)

    def edit(self, job_spec: JobSpec, attr: str, value: str | ExprTree, flags: int = 0) -> int:
        """Set an attribute of jobs to an expression.

        Returns:
            the number of selected jobs. Those of other users are counted but not changed, unless
            this user is a superuser.

        Raises:
            HTCondorException: no such job, a constraint without matches, a value that does not
                parse, or an immutable attribute.
        """
        self._pool.transport.call("Failed to connect to schedd.")
        text = repr(value) if isinstance(value, ExprTree) else str(value)
        try:
            expression = ExprTree(text)
        except ClassAdException as error:
            raise HTCondorException(f'Unable to edit jobs: "{text}" is no expression') from error
        jobs, missing = select_jobs(self._pool.queue, job_spec, self._pool.now_s)
        if missing or not jobs:
            raise HTCondorException(f"Unable to edit jobs: nonexistent job {', '.join(missing)}")
        for job in jobs:
            if self._may_change(job) and not self._pool.transport.loses_edit():
                if attr.lower() in _IMMUTABLE:
                    raise HTCondorException(f"Unable to edit jobs: {attr} is immutable")
                self._pool.set_job_attribute(job, attr, expression)
        return len(jobs)

    def act(
        self, action: JobAction, job_spec: JobSpec, reason: str | tuple[str, int] | None = None
    ) -> ClassAd:
        """Hold, release, remove, vacate, suspend or continue jobs.

        Args:
            action: the action.
            job_spec: selects the jobs.
            reason: written to the job's ad only if it is a tuple with a code; plain text is lost,
                as in 25.14.

        Returns:
            an ad of counters: TotalSuccess, TotalPermissionDenied, TotalNotFound, TotalBadStatus,
            TotalAlreadyDone, TotalError; TotalJobAds; TotalChangedAds is 1 if any succeeded.
        """
        if not isinstance(action, JobAction):
            raise TypeError("action must be a JobAction")
        self._pool.transport.call("Error when performing action on the schedd.")
        if reason is None:
            words = f"Python-initiated action (by user {self._user})"
        else:
            words = reason[0] if isinstance(reason, tuple) else ""
        totals = dict.fromkeys(_COUNTERS, 0)
        job_ads = len(self._pool.queue.jobs)
        jobs, missing = select_jobs(self._pool.queue, job_spec, self._pool.now_s)
        totals["TotalNotFound"] = len(missing)
        for job in jobs:
            if self._may_change(job):
                totals[self._pool.actions.act(action, job, words, self._pool.now_s)] += 1
            else:
                totals["TotalPermissionDenied"] += 1
        self._pool.log.flush()
        changed = int(totals[SUCCESS] > 0)
        return ClassAd({**totals, "TotalJobAds": job_ads, "TotalChangedAds": changed})

    def submit(self, description: Mapping[str, str], count: int = 0) -> SubmitResult:
        """Submit jobs that sleep: the run time is the argument of ``sleep``.

        Args:
            description: an ``htcondor2.Submit`` or a plain mapping of submit commands.
            count: number of jobs; 0: that of the description's queue statement, or else 1.

        Raises:
            HTCondorException: an unsupported description (see `submitting.job_ad`), or the job is
                not ``sleep SECONDS``.
        """
        self._pool.transport.call("Failed to connect to schedd.")
        return self._pool.submit(self._user, description, None, count or _queued(description))

    def reschedule(self) -> None:
        """Request a negotiation cycle; it takes place when the pool's time advances."""
        self._pool.transport.call("Failed to connect to schedd.")
        self._pool.request_cycle()

    def _may_change(self, job: QueuedJob) -> bool:
        return self._user in (job.ad["Owner"], *self._pool.config.superusers)

    def _condition(self, constraint: str | ExprTree) -> ExprTree | None:
        text = at_time(str(constraint).strip(), self._pool.now_s)
        if text.lower() in ("true", ""):
            return None
        try:
            return ExprTree(text)
        except ClassAdException as error:
            raise HTCondorException(f'Failed to parse constraint "{constraint}"') from error

    def _answer(self, ad: ClassAd, projection: list[str] | None) -> ClassAd:
        answer = projected(ad, projection or ())
        if not projection or "ServerTime" in projection:
            answer["ServerTime"] = int(self._pool.now_s)
        return answer


def _since(since: int | str | ExprTree) -> str:
    text = str(since)
    cluster, dot, proc = text.partition(".")
    if cluster.isdigit() and (not dot or proc.isdigit()):
        return f"ClusterId == {cluster}" + (f" && ProcId == {proc}" if dot else "")
    return text


def _queued(description: Mapping[str, str]) -> int:
    arguments = description.getQArgs().strip() if hasattr(description, "getQArgs") else ""
    if arguments and not arguments.isdigit():
        raise HTCondorException(
            f'submit: "queue {arguments}"; the mock pool understands "queue" and "queue NUMBER"'
        )
    return int(arguments or 1)
