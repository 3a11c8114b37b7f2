"""Jobs now."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.model.jobs import JOB_STATE_NAMES, QUEUED, Job
from outrider.service.core.core import Core
from outrider.service.core.state_words import OURS
from outrider.service.views.expected_starts import NOT_SAID, ExpectedStarts
from outrider.service.views.job_filters import JobFilters, reasons_of
from outrider.service.views.job_order import KNOWN, CursorError, JobOrder, JobSort
from outrider.service.web.endpoint import Answer, Call, Endpoint
from outrider.service.web.paging import page_of
from outrider.service.web.query import BadQueryError, Limit
from outrider.service.web.shapes.jobs import Jobs
from outrider.service.web.shapes.values import JobState


class JobsQuery(Struct, frozen=True):
    """Which jobs."""

    limit: Limit = 200
    after: Annotated[
        Annotated[str, Meta(max_length=200)] | UnsetType,
        Meta(description="Go on after this: what `next` of the page before said."),
    ] = UNSET
    sort: Annotated[
        JobSort,
        Meta(
            description="By this of the row, with a minus the greatest first; `known`: as they "
            "became known. What has no value comes last."
        ),
    ] = KNOWN
    state: Annotated[JobState | UnsetType, Meta(description="Only jobs in this state.")] = UNSET
    user: Annotated[
        str | UnsetType, Meta(description="Only of this user, as this client is shown users.")
    ] = UNSET
    vo: Annotated[
        str | UnsetType, Meta(description="Only of this VO, as this client is shown VOs.")
    ] = UNSET
    group: Annotated[
        str | UnsetType,
        Meta(
            description="Only jobs on a machine of this group; of those on none, such as may use "
            "one of it by what they require of machines."
        ),
    ] = UNSET
    reason: Annotated[
        str | UnsetType,
        Meta(description="Only jobs in whose `reason` this stands, in large or small letters."),
    ] = UNSET
    waiting_over_s: Annotated[
        Annotated[float, Meta(ge=0)] | UnsetType,
        Meta(description="Only jobs that have waited for longer, seconds."),
    ] = UNSET
    candidates: Annotated[
        bool,
        Meta(description="Expected starts under each policy, too."),
    ] = False

    def filters(self) -> JobFilters:
        """What narrows the list."""
        given = {name: getattr(self, name) for name in JobFilters.__struct_fields__}
        return JobFilters(**{name: v for name, v in given.items() if v is not UNSET})


def known_jobs(core: Core) -> list[Job]:
    """All jobs that are here."""
    return list(core.site.jobs.values())


def jobs(
    core: Core,
    limit: int,
    found: Sequence[Job] | None = None,
    after: str | None = None,
    sort: str = KNOWN,
    starts: ExpectedStarts | None = None,
    candidates: bool = False,
    names_shown: bool = True,
    state_words: Mapping[str, str] = OURS,
) -> Answer:
    """A page of the jobs, all or some.

    Args:
        core: the daemon's.
        limit: at most so many.
        found: which; None: all.
        after: a cursor of the same order; None: from the first.
        sort: one of `JOB_SORTS`.
        starts: when those that wait are expected to start; None: that is not asked.
        candidates: under each policy, too.
        names_shown: what may name users is told.
        state_words: the batch system's, or ours.

    Raises:
        CursorError: the cursor is none of that order's.
    """
    found = known_jobs(core) if found is None else found
    job_names = core.merger.normaliser.job_names

    def row(job: Job) -> dict[str, Any]:
        name = job_names[job.number]
        facts = _job_row(core, name, job)
        (reason,) = reasons_of(core, [job], names_shown)
        facts |= {"reason": reason, "state_word": state_words[facts["state"]]}
        return facts if starts is None else facts | _start(starts, name, job, candidates)

    behind = JobOrder(sort).behind(after, found, core.site.now)
    page, cursor = page_of(((place, row(job)) for place, job in behind), limit)
    return {
        "mode": core.config.mode,
        "now_s": core.now_s,
        "jobs": page,
        "total": len(found),
        "state_words": state_words,
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
        "group": site.cluster_names[site.machine_cluster[job.machine]] if on else None,
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


async def handle(call: Call[JobsQuery]) -> Answer:
    """Answer from memory."""
    query, core, names = call.query, call.view.core, call.names
    found = query.filters().chosen(core, known_jobs(core), names)
    after = None if query.after is UNSET else query.after
    starts, candidates = call.view.expected_starts(), query.candidates
    try:
        page = jobs(
            core, query.limit, found, after, query.sort, starts, candidates, names.shown,
            call.view.state_words.now(),
        )  # fmt: skip
    except CursorError as error:
        raise BadQueryError(str(error)) from error
    return names.in_jobs(page)


ENDPOINT = Endpoint(
    name="jobs",
    path="/api/v1/jobs",
    summary="Jobs now.",
    handle=handle,
    query=JobsQuery,
    answer=Jobs,
    shared=True,
)
