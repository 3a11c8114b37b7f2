"""The endpoint of current jobs: filters, order, pages and expected starts."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.model.jobs import JOB_STATE_NAMES, QUEUED, Job, JobState
from outrider.model.reasons import reason_text
from outrider.service.core.core import Core
from outrider.service.core.source_state import OURS
from outrider.service.shapes.values import (
    Count,
    ExpectedStart,
    Gaps,
    Mode,
    OutsideText,
    StartAnswer,
    StartsShown,
    Unknown,
    UserName,
    VoName,
)
from outrider.service.views.expected_starts import NOT_SAID, ExpectedStarts
from outrider.service.views.job_list import (
    KNOWN,
    CursorError,
    JobFilters,
    JobOrder,
    JobSort,
    reasons_of,
)
from outrider.service.views.sentences import choice_text, no_data
from outrider.service.web.endpoint import BadQueryError, Call, Endpoint, Limit, page_of


class PendingDecision(Struct):
    """A policy's last decision for a job, with its reason."""

    action: str
    reason: str
    text: Annotated[str, Meta(description="Both as a text for people.")] = ""


class JobRow(Struct, rename={"class_": "class"}):
    """The current state of one job."""

    job: str
    state: JobState
    user: UserName
    vo: VoName
    class_: str
    cpus: Count
    submit_s: Unknown
    waiting_s: Unknown
    machine: str | None
    run_s: Unknown
    runs: Count
    lost_s: Annotated[float, Meta(ge=0, description="Total of all wasted runs so far, seconds.")]
    longest_lost_s: Annotated[float, Meta(ge=0, description="Longest wasted run so far, seconds.")]
    pending: dict[str, PendingDecision]
    state_word: Annotated[
        str, Meta(description="The batch system's own word for `state`, else Outrider's.")
    ] = ""
    group: Annotated[
        str | None, Meta(description="Group of its machine; null: it is on no machine.")
    ] = None
    reason: Annotated[
        OutsideText | None,
        Meta(
            description="Why it does not run: for a waiting job, the reason of the first policy "
            "that has decided about it; for a held job, the batch system's words, if this client "
            "sees users' names, or the job is its own."
        ),
    ] = None
    reason_text: Annotated[
        OutsideText | None, Meta(description="`reason` as a text for people.")
    ] = None
    expected_start: Annotated[
        ExpectedStart | None,
        Meta(
            description="Expected start under the batch system's own rule, by `outrider run-twin`; "
            "null: see `expected_start_answer`."
        ),
    ] = None
    expected_start_answer: Annotated[
        StartAnswer | None,
        Meta(
            description="`not_known`: unpredictable. `not_said`: there is no forecast, or it is "
            "too old. Null: the job does not wait."
        ),
    ] = None
    expected_start_under: Annotated[
        dict[str, ExpectedStart | None] | UnsetType,
        Meta(
            description="With `candidates`: the same if a policy were active, by its name; null: "
            "not known; a missing policy: no forecast."
        ),
    ] = UNSET


class Jobs(Struct):
    """Jobs that the daemon knows now; `total` includes those on other pages.

    A job that keeps its place in the order is on exactly one page, however many jobs arrive or
    leave between two requests. Waiting or running longer changes no place.
    """

    mode: Mode
    now_s: float
    jobs: list[JobRow]
    total: Count
    state_words: Annotated[
        dict[JobState, str], Meta(description="Values of `state_word`, by state.")
    ] = {}
    expected_starts: Annotated[
        StartsShown | None, Meta(description="Facts about the expected starts of all jobs.")
    ] = None
    next: Annotated[
        str | None,
        Meta(description="Cursor to pass as `after` for the next page; null: last page."),
    ] = None
    no_data: Gaps = []


class JobsQuery(Struct, frozen=True):
    """Parameters of the list of jobs."""

    limit: Limit = 200
    after: Annotated[
        Annotated[str, Meta(max_length=200)] | UnsetType,
        Meta(description="Continue after this cursor: `next` of the previous page."),
    ] = UNSET
    sort: Annotated[
        JobSort,
        Meta(
            description="Field to sort by, with a minus in descending order; `known`: the order in "
            "which jobs became known. Jobs without a value come last."
        ),
    ] = KNOWN
    state: Annotated[JobState | UnsetType, Meta(description="Only jobs in this state.")] = UNSET
    user: Annotated[
        str | UnsetType, Meta(description="Only jobs of this user, by the name in the answers.")
    ] = UNSET
    vo: Annotated[
        str | UnsetType, Meta(description="Only jobs of this VO, by the name in the answers.")
    ] = UNSET
    group: Annotated[
        str | UnsetType,
        Meta(
            description="Only jobs on a machine of this group, and jobs on no machine whose "
            "requirements one of its machines meets."
        ),
    ] = UNSET
    reason: Annotated[
        str | UnsetType,
        Meta(description="Only jobs whose `reason` contains this text, in any case."),
    ] = UNSET
    waiting_over_s: Annotated[
        Annotated[float, Meta(ge=0)] | UnsetType,
        Meta(description="Only jobs that have waited longer than this, seconds."),
    ] = UNSET
    candidates: Annotated[
        bool,
        Meta(description="Also return expected starts under each policy."),
    ] = False

    def filters(self) -> JobFilters:
        """Return the given filters of the list."""
        given = {name: getattr(self, name) for name in JobFilters.__struct_fields__}
        return JobFilters(**{name: v for name, v in given.items() if v is not UNSET})


def known_jobs(core: Core) -> list[Job]:
    """Return all current jobs of the site."""
    return list(core.site.jobs.values())


def jobs(
    core: Core,
    limit: int,
    found: Sequence[Job] | None = None,
    after: str | None = None,
    sort: str = KNOWN,
    starts: ExpectedStarts | None = None,
    candidates: bool = False,
    sees: Callable[[str], bool] = lambda user: True,
    state_words: Mapping[str, str] = OURS,
) -> Jobs:
    """Return a page of the jobs, all or some.

    Args:
        core: core of the daemon.
        limit: most rows.
        found: the jobs to list; None: all.
        after: a cursor of the same order; None: from the first.
        sort: one of `JOB_SORTS`.
        starts: expected starts of waiting jobs; None: they are null.
        candidates: also include expected starts under each policy.
        sees: returns whether to include texts about a user's jobs, which may name users.
        state_words: the batch system's words for states, or Outrider's.

    Raises:
        CursorError: the cursor is not one of that order.
    """
    found = known_jobs(core) if found is None else found
    job_names = core.merger.normaliser.job_names

    @cache
    def code(reason: str) -> tuple[OutsideText, OutsideText]:
        return OutsideText(reason, None), OutsideText(reason_text(reason), None)

    def row(job: Job) -> JobRow:
        row = _job_row(core, job_names[job.number], job)
        (reason,) = reasons_of(core, [job], sees)
        if reason is not None and job.state == QUEUED:
            row.reason, row.reason_text = code(reason)
        elif reason is not None:
            row.reason = row.reason_text = OutsideText(reason, job.spec.user)
        row.state_word = state_words[row.state]
        if starts is not None:
            _add_start(row, starts, candidates)
        return row

    behind = JobOrder(sort).behind(after, found, core.site.now)
    page, cursor = page_of(((place, row(job)) for place, job in behind), limit)
    return Jobs(
        mode=core.config.mode,
        now_s=core.now_s,
        jobs=page,
        total=len(found),
        state_words={state: state_words[state] for state in JOB_STATE_NAMES},
        expected_starts=None if starts is None else starts.shown(),
        next=cursor,
        no_data=no_data(core),
    )


def _job_row(core: Core, name: str, job: Job) -> JobRow:
    site, on = core.site, job.machine >= 0
    queued = job.state == QUEUED
    user = UserName.of_job(job.spec)
    return JobRow(
        job=name,
        state=JOB_STATE_NAMES[job.state],
        user=user,
        vo=VoName(job.spec.vo, user),
        class_=job.spec.job_class,
        cpus=job.spec.cpus,
        submit_s=job.submit_s,
        waiting_s=job.wait_s(site.now) if queued else None,
        machine=core.merger.normaliser.machine_names[job.machine] if on else None,
        group=site.cluster_names[site.machine_cluster[job.machine]] if on else None,
        run_s=job.run_s(site.now) if on else None,
        runs=job.runs,
        lost_s=job.lost_s,
        longest_lost_s=job.consumed_s,
        pending={
            runner.name: PendingDecision(
                action=pending.action,
                reason=pending.reason,
                text=choice_text(pending.action, pending.reason),
            )
            for runner in core.runners
            if (pending := runner.queue.waiting.get(job.number)) is not None
        },
    )


def _add_start(row: JobRow, starts: ExpectedStarts, candidates: bool) -> None:
    waits = row.state == JOB_STATE_NAMES[QUEUED]
    if waits:
        own = starts.of(row.job)
        row.expected_start, row.expected_start_answer = own.start, own.answer
    if candidates:
        under = starts.under(row.job).items() if waits else ()
        row.expected_start_under = {
            policy: one.start for policy, one in under if one.answer != NOT_SAID
        }


async def handle(call: Call[JobsQuery]) -> Jobs:
    """Answer from memory with a page of jobs."""
    query, core, names = call.query, call.view.core, call.names
    found = query.filters().chosen(core, known_jobs(core), names)
    after = None if query.after is UNSET else query.after
    starts, candidates = call.view.expected_starts(), query.candidates
    try:
        return jobs(
            core, query.limit, found, after, query.sort, starts, candidates, names.sees,
            call.view.state_words.now(),
        )  # fmt: skip
    except CursorError as error:
        raise BadQueryError(str(error)) from error


JOBS = Endpoint(
    name="jobs",
    path="/api/v1/jobs",
    summary="Current jobs.",
    handle=handle,
    query=JobsQuery,
    answer=Jobs,
    shared=True,
)

ENDPOINTS = (JOBS,)
