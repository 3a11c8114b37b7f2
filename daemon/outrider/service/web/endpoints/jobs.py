"""Jobs now."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.model.jobs import JOB_STATE_NAMES, QUEUED, Job
from outrider.model.reasons import reason_text
from outrider.service.core.core import Core
from outrider.service.core.source_state import OURS
from outrider.service.views.expected_starts import NOT_SAID, ExpectedStarts
from outrider.service.views.job_list import (
    KNOWN,
    CursorError,
    JobFilters,
    JobOrder,
    JobSort,
    reasons_of,
)
from outrider.service.views.sentences import choice_text
from outrider.service.web.endpoint import Answer, BadQueryError, Call, Endpoint, Limit, page_of
from outrider.service.web.shapes.values import (
    Count,
    ExpectedStart,
    JobState,
    Mode,
    StartAnswer,
    StartsShown,
    Unknown,
)


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
    """Return all jobs that are here."""
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
    """Return a page of the jobs, all or some.

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
        text = reason if job.state != QUEUED or reason is None else reason_text(reason)
        facts |= {
            "reason": reason,
            "reason_text": text,
            "state_word": state_words[facts["state"]],
        }
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
            runner.name: {
                "action": pending.action,
                "reason": pending.reason,
                "text": choice_text(pending.action, pending.reason),
            }
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


# -- jobs ------------------------------------------------------------------------------------------
# The shape of a list of jobs. It follows the rules of `outrider.service.web.shapes.values`.


class PendingDecision(Struct):
    """What a policy last chose for a job, and why."""

    action: str
    reason: str
    text: Annotated[str, Meta(description="Both as a text for people.")] = ""


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
    state_word: Annotated[
        str, Meta(description="The batch system's own word for `state`; ours where it has none.")
    ] = ""
    group: Annotated[
        str | None, Meta(description="Of the machine that it is on; null: it is on none.")
    ] = None
    reason: Annotated[
        str | None,
        Meta(
            description="Why it does not run: of a job that waits, the reason of the first policy "
            "that has decided about it; of one that is held, the batch system's words, where this "
            "client is shown users' names."
        ),
    ] = None
    reason_text: Annotated[str | None, Meta(description="`reason` as a text for people.")] = None
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
    """Jobs the daemon knows now; `total` counts those on other pages too.

    A job that keeps its place in the order stands on exactly one page, however many jobs come or
    go between two; to wait or to run on changes no place.
    """

    mode: Mode
    now_s: float
    jobs: list[JobRow]
    total: Count
    state_words: Annotated[
        dict[JobState, str], Meta(description="The words of `state_word`, by state.")
    ] = {}
    expected_starts: Annotated[
        StartsShown | None, Meta(description="What holds for the expected starts of all.")
    ] = None
    next: Annotated[
        str | None, Meta(description="Pass it as `after` for what follows; null: nothing does.")
    ] = None


JOBS = Endpoint(
    name="jobs",
    path="/api/v1/jobs",
    summary="Jobs now.",
    handle=handle,
    query=JobsQuery,
    answer=Jobs,
    shared=True,
)

ENDPOINTS = (JOBS,)
