"""Jobs now."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.model.jobs import JOB_STATE_NAMES, QUEUED, Job, JobSpec
from outrider.service.core import Core
from outrider.service.user_names import UserNames
from outrider.service.views.expected_starts import NOT_SAID, ExpectedStarts
from outrider.service.web.endpoint import Answer, Call, Endpoint
from outrider.service.web.paging import After, Next, page_of
from outrider.service.web.query import Limit
from outrider.service.web.shapes.expected_start import ExpectedStart, StartAnswer, StartsShown
from outrider.service.web.shapes.values import Count, JobState, Mode, Unknown


class JobsQuery(Struct, frozen=True):
    """Which jobs."""

    limit: Limit = 200
    after: After = UNSET
    state: Annotated[JobState | UnsetType, Meta(description="Only jobs in this state.")] = UNSET
    user: Annotated[
        str | UnsetType, Meta(description="Only of this user, as this client is shown users.")
    ] = UNSET
    vo: Annotated[
        str | UnsetType, Meta(description="Only of this VO, as this client is shown VOs.")
    ] = UNSET
    candidates: Annotated[
        bool,
        Meta(description="Expected starts under each policy, too."),
    ] = False


class PendingDecision(Struct):
    """What a policy last chose for a job, and why."""

    action: str
    reason: str


class JobRow(Struct, rename={"class_": "class"}):
    """One job now."""

    job: str
    state: JobState
    user: str
    vo: str
    class_: str
    cpus: Count
    submit_s: Unknown
    waiting_s: Unknown
    machine: str | None
    run_s: Unknown
    runs: Count
    lost_s: Annotated[float, Meta(ge=0, description="Of all runs thrown away so far, together.")]
    longest_lost_s: Annotated[float, Meta(ge=0, description="Longest run thrown away so far.")]
    pending: dict[str, PendingDecision]
    expected_start: Annotated[
        ExpectedStart | None,
        Meta(
            description="Under the batch system's own rule, by `outrider run-twin`; null: see "
            "`expected_start_answer`."
        ),
    ] = None
    expected_start_answer: Annotated[
        StartAnswer | None,
        Meta(
            description="`not_known`: nobody can know. `not_said`: there is no answer, or no "
            "young one. Null: it does not wait."
        ),
    ] = None
    expected_start_under: Annotated[
        dict[str, ExpectedStart | None] | UnsetType,
        Meta(
            description="With `candidates`: the same if a policy were in force, by its name; null: "
            "not known; a policy that is not there: not said."
        ),
    ] = UNSET


class Jobs(Struct):
    """Jobs the daemon knows now; `total` counts those on other pages too."""

    mode: Mode
    now_s: float
    jobs: list[JobRow]
    total: Count
    expected_starts: Annotated[
        StartsShown | None, Meta(description="What holds for the expected starts of all.")
    ] = None
    next: Next = None


def jobs(
    core: Core,
    limit: int,
    state: str | None,
    after: int = -1,
    starts: ExpectedStarts | None = None,
    candidates: bool = False,
    wanted: Callable[[JobSpec], bool] | None = None,
) -> Answer:
    """A page of the jobs, all or some, in the order in which they became known.

    Args:
        core: the daemon's.
        limit: at most so many.
        state: only jobs in it; None: all.
        after: only jobs of a higher number.
        starts: when those that wait are expected to start; None: that is not asked.
        candidates: under each policy, too.
        wanted: whose jobs; None: everybody's.
    """
    normaliser, site = core.merger.normaliser, core.site
    found = [
        job
        for history in normaliser.jobs.values()
        if (job := site.jobs.get(history.number)) is not None
        and (state is None or JOB_STATE_NAMES[job.state] == state)
        and (wanted is None or wanted(job.spec))
    ]

    def row(job: Job) -> dict[str, Any]:
        name = normaliser.job_names[job.number]
        facts = _job_row(core, name, job)
        return facts if starts is None else facts | _start(starts, name, job, candidates)

    page, cursor = page_of(((job.number, row(job)) for job in found if job.number > after), limit)
    return {
        "mode": core.config.mode,
        "now_s": core.now_s,
        "jobs": page,
        "total": len(found),
        "expected_starts": None if starts is None else starts.shown(),
        "next": cursor,
    }


def _job_row(core: Core, name: str, job: Job) -> dict[str, Any]:
    site, on = core.site, job.machine >= 0
    queued = job.state == QUEUED
    return {
        "job": name,
        "state": JOB_STATE_NAMES[job.state],
        "user": job.spec.user,
        "vo": job.spec.vo,
        "class": job.spec.job_class,
        "cpus": job.spec.cpus,
        "submit_s": job.submit_s,
        "waiting_s": job.wait_s(site.now) if queued else None,
        "machine": core.merger.normaliser.machine_names[job.machine] if on else None,
        "run_s": job.run_s(site.now) if on else None,
        "runs": job.runs,
        "lost_s": job.lost_s,
        "longest_lost_s": job.consumed_s,
        "pending": {
            runner.name: {"action": pending.action, "reason": pending.reason}
            for runner in core.runners
            if (pending := runner.queue.waiting.get(job.number)) is not None
        },
    }


def _start(starts: ExpectedStarts, name: str, job: Job, candidates: bool) -> dict[str, Any]:
    waits = job.state == QUEUED
    told = starts.of(name) if waits else {"start": None, "answer": None}
    fields = {"expected_start": told["start"], "expected_start_answer": told["answer"]}
    if not candidates:
        return fields
    under = starts.under(name).items() if waits else ()
    said = {policy: one["start"] for policy, one in under if one["answer"] != NOT_SAID}
    return {**fields, "expected_start_under": said}


def _wanted(query: JobsQuery, names: UserNames) -> Callable[[JobSpec], bool] | None:
    """Whose jobs are asked for, by what this client is shown: a name that is hidden finds none."""
    if query.user is UNSET and query.vo is UNSET:
        return None
    user, vo = cache(names.user), cache(names.vo)  # a pseudonym takes a hash

    def wanted(spec: JobSpec) -> bool:
        return (query.user is UNSET or user(spec.user) == query.user) and (
            query.vo is UNSET or vo(spec.vo) == query.vo
        )

    return wanted


async def handle(call: Call[JobsQuery]) -> Answer:
    """Answer from memory."""
    query = call.query
    state = None if query.state is UNSET else query.state
    after = -1 if query.after is UNSET else query.after
    starts = call.view.expected_starts()
    names = call.names
    page = jobs(
        call.view.core, query.limit, state, after, starts, query.candidates, _wanted(query, names)
    )
    return names.in_jobs(page)


ENDPOINT = Endpoint(
    name="jobs",
    path="/api/v1/jobs",
    summary="Jobs now.",
    handle=handle,
    query=JobsQuery,
    answer=Jobs,
)
