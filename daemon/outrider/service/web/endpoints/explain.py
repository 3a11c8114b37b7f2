"""Endpoints that explain a job, and that return rows of decisions."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.api.adapter import Clause
from outrider.journal import Journal
from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.views.commands import lease_of
from outrider.service.views.explanation import (
    explain,
    explain_from_rows,
    is_waiting,
    jobs_meant,
    states_of,
)
from outrider.service.views.job_runs import decision_rows, runs_and_end
from outrider.service.views.waiting_reasons import NO_ANSWER
from outrider.service.web.access import ACCESS
from outrider.service.web.endpoint import (
    Answer,
    Call,
    Endpoint,
    Limit,
    Next,
    NoQuery,
    NotFoundError,
    json_response,
    page_of,
)
from outrider.service.web.shapes.values import Count, Failure, JobStart, JobState, Mode, Unknown

_EXPLAINED_ROWS = 50
_MAX_CANDIDATES = 20


class AmbiguousJobError(LookupError):
    """A short form of a job's name that several jobs share.

    Attributes:
        candidates: names of these jobs.
        states: number of them in each state.
    """

    def __init__(self, short: str, candidates: list[str], states: dict[str, int]) -> None:
        counted = ", ".join(f"{n:,} {state}" for state, n in states.items())
        super().__init__(f"{short!r} matches {len(candidates):,} jobs ({counted}); name one")
        self.candidates = candidates
        self.states = states


async def explanation(
    view: DaemonView, job: str, sees: Callable[[str], bool] = lambda user: False
) -> dict[str, Any] | None:
    """Return the explanation of a job, from the journal if it has left; None if it is unknown.

    Args:
        view: the readable state of the daemon.
        job: its name, or a short form of it.
        sees: returns whether the client may read what batch systems say about a user's job that
            may name others; only then they are queried.

    Raises:
        AmbiguousJobError: several jobs have this short form.
    """
    rows = await decision_rows(view.journal, _EXPLAINED_ROWS, job)
    if not rows and view.core.merger.normaliser.known_by(job) is None:
        meant = await _jobs_meant(view, job)
        if len(meant) > 1:
            raise AmbiguousJobError(job, meant, states_of(view.core, meant))
        if meant:
            [job] = meant
            rows = await decision_rows(view.journal, _EXPLAINED_ROWS, job)
    rows.reverse()
    sees_reason = sees(user_of(view, job))
    waits = is_waiting(view.core, job)
    reasons = await view.waiting_reasons.of(job, sees_reason) if waits else NO_ANSWER
    runs, end = await runs_and_end(view.journal, job, view.core.config.timezone)
    lease, starts = lease_of(view.levers(), job), view.expected_starts()
    found = explain(view.core, job, rows, reasons, runs, lease, starts, not sees_reason)
    if found is not None or not (rows or runs or end):
        return found
    return explain_from_rows(view.core.config, job, rows, runs, end)


def user_of(view: DaemonView, job: str) -> str:
    """Return the user of a job that is here now, by its whole name; empty if unknown."""
    history = view.core.merger.normaliser.known_by(job)
    return "" if history is None else history.spec.user


async def _jobs_meant(view: DaemonView, short: str) -> list[str]:
    """Return the names of the jobs, current or in the journal, that match a short form."""
    gone = await asyncio.to_thread(_ledger_jobs, view.journal, short)
    return list(dict.fromkeys([*jobs_meant(view.core, short), *gone]))


def _ledger_jobs(path: Path, short: str) -> list[str]:
    with Journal(path, read_only=True) as journal:
        return journal.jobs_meant(short)


async def handle(call: Call[NoQuery]) -> Answer | web.Response:
    """Return the explanation; 300 with the candidates, or 404 with the job's name."""
    job = call.request.match_info["job"]
    try:
        answer = await explanation(call.view, job, call.names.sees)
    except AmbiguousJobError as error:
        ambiguity = Ambiguity(
            str(error), error.candidates[:_MAX_CANDIDATES], len(error.candidates), error.states
        )
        return json_response(ambiguity, 300)
    if answer is None:
        raise NotFoundError(f"no job {job!r} is known here")
    user = user_of(call.view, answer["job"])
    withheld, answered = None, answer["batch_system"] is not None
    if is_waiting(call.view.core, answer["job"]) and not (answered or call.names.sees(user)):
        withheld = call.request.app[ACCESS].how_to_see_reasons(call.request, call.own)
    return {**call.names.in_explanation(answer, user), "withheld": withheld}


# -- explanation -----------------------------------------------------------------------------------
# The shape of the explanation of a job.


class Ambiguity(Struct):
    """A short form of a job's name that several jobs share, such as an array's."""

    error: str
    candidates: Annotated[list[str], Meta(description="Names of the first of these jobs.")]
    total: Count
    states: Annotated[
        dict[str, Count], Meta(description="Number of jobs by state; `left`: no longer here.")
    ]


class Alike(Struct):
    """Waiting jobs of the same user and VO with the same requests."""

    total: Annotated[Count, Meta(description="Number of these jobs, this one included.")]
    ahead: Annotated[Count, Meta(description="Number of them that were submitted before it.")]


class BatchSystem(Struct):
    """The batch system's own reason why a job is not running, with its words and numbers."""

    adapter: str
    code: Annotated[str, Meta(description="Its own word or number for the reason; may be empty.")]
    sentence: str
    never: Annotated[bool, Meta(description="The job can never start unless it is changed.")]
    remedies: Annotated[list[str], Meta(description="Suggestions, the most promising first.")]
    machines: Annotated[int | None, Meta(description="Number of machines that may run it at all.")]
    clauses: Annotated[
        list[Clause],
        Meta(
            description="The conditions that all have to be met: how many machines meet each, and "
            "how many would remain without it."
        ),
    ]
    expected_start_s: Annotated[
        Unknown, Meta(description="Start that the batch system itself expects.")
    ]
    ahead: Annotated[int | None, Meta(description="Waiting jobs before it, in its own order.")]
    removes_most: Annotated[
        str | None,
        Meta(
            description="The condition that alone excludes most machines; null: all machines meet "
            "each, or none is known."
        ),
    ] = None


class DecisionRow(Struct):
    """One decision in the journal. Similar jobs may share a row: `jobs` lists them."""

    time_s: float
    seq: Count
    job: str
    action: str
    machine: str | None
    cpus: int
    reason: str
    policy: str
    mode: Mode
    propensity: Unknown
    scores: dict[str, Unknown] | None
    input_age_s: Unknown
    input: str
    gate: Annotated[
        str | None,
        Meta(
            description="The gate's answer: `act`, `would`, or `refused: ` with the reason; null "
            "if there was nothing to apply."
        ),
    ] = None
    jobs: list[str] | None = None


class Lease(Struct):
    """Outrider's change of a job in the batch system, which expires unless it is renewed."""

    lever: str
    action: Annotated[str | None, Meta(description="Null: it was refused.")]
    machine: Annotated[str | None, Meta(description="A machine of the group that it is for.")]
    decided_s: Unknown
    refused_because: str | None


class Left(Struct):
    """The end of a job that has left."""

    how: Literal["completed", "removed"]
    at_s: float
    reason: Annotated[str | None, Meta(description="Why it was removed; null: it completed.")]


class PolicyView(Struct):
    """One policy's decision for one job."""

    name: str
    action: Annotated[
        str | None, Meta(description="Its decision; null: it has not decided about this job.")
    ]
    reason: str | None
    cluster: Annotated[str | None, Meta(description="Cluster where it would start the job.")]
    until_s: Annotated[
        Unknown, Meta(description="When it reconsiders; null: when the scheduler asks it.")
    ]
    scores: dict[str, Unknown]
    propensity: Unknown
    explanation: str
    decided_s: Unknown
    seq: int | None
    latest_s: Annotated[
        Unknown,
        Meta(
            description="Latest time until which it may defer the job; null: it does not defer it, "
            "or without limit."
        ),
    ] = None
    text: Annotated[str, Meta(description="The decision as a sentence for people.")] = ""


class Run(Struct):
    """An ended run of the job."""

    machine: str
    cpus: int
    start_s: float
    end_s: float
    run_s: Annotated[float, Meta(description="Seconds of work in it.")]
    lost_because: Annotated[
        str | None, Meta(description="Why it was lost; null: it completed the job.")
    ]
    text: Annotated[str, Meta(description="The run as a sentence for people.")] = ""


class Explanation(Struct):
    """The explanation of a job's state."""

    job: str
    mode: Mode
    source: Literal["daemon", "ledger"]
    state: Annotated[JobState | None, Meta(description="Null: the job has left.")]
    sentence: str
    held_because: Annotated[
        str | None,
        Meta(
            description="Why it is held, in the batch system's words; null: it is not held, the "
            "reason is unknown, or `withheld`."
        ),
    ]
    batch_system: Annotated[
        BatchSystem | None,
        Meta(
            description="Live query, for queued or held jobs; null: there was no answer, or it is "
            "`withheld`."
        ),
    ]
    batch_system_errors: Annotated[
        list[str], Meta(description="Batch systems that did not answer, and why.")
    ]
    waiting_s: Unknown
    since_s: Unknown
    runs: Annotated[list[Run], Meta(description="Its last runs that have ended, oldest first.")]
    policies: list[PolicyView]
    decisions: list[DecisionRow]
    cause: Annotated[
        str, Meta(description="Cause of the job's state, without the policies' decisions.")
    ] = ""
    start_lines: Annotated[
        list[str], Meta(description="The expected start as lines of text for people.")
    ] = []
    timezone: Annotated[str, Meta(description="The site's time zone, an IANA name.")] = "UTC"
    now_s: Annotated[
        Unknown, Meta(description="Current time at the site; null: not from a running daemon.")
    ] = None
    expected_start: Annotated[
        JobStart | None,
        Meta(
            description="By the twin process; null: the job does not wait, or the answer is not "
            "from a running daemon. The batch system's own forecast is in `batch_system`."
        ),
    ] = None
    lease: Annotated[
        Lease | None, Meta(description="In the modes canary and active; null: no active change.")
    ] = None
    alike: Annotated[Alike | None, Meta(description="Null: the job does not wait.")] = None
    left: Annotated[
        Left | None, Meta(description="Null: the job is still here, or its end is not known.")
    ] = None
    remedies: Annotated[
        list[str],
        Meta(
            description="Suggestions from what Outrider itself knows, such as the end of owners' "
            "hours; those of the batch system are in `batch_system`."
        ),
    ] = []
    withheld: Annotated[
        str | None,
        Meta(
            description="What this client is not shown, because it may contain users' names, and "
            "how to see it; null: nothing."
        ),
    ] = None


EXPLAIN = Endpoint(
    name="explain",
    path="/api/v1/explain/{job}",
    summary="Explains why a job waits, runs or was held. Its name is percent-encoded (`#` is %23; "
    "slashes may stay). A short form such as 1234.0 works if only one job has it.",
    handle=handle,
    query=NoQuery,
    answer=Explanation,
    others={300: Ambiguity, 404: Failure},
)


# -- decisions -------------------------------------------------------------------------------------
# Decisions in the journal.


class DecisionsQuery(Struct, frozen=True):
    """Parameters of the list of decisions."""

    limit: Limit = 200
    job: Annotated[str | UnsetType, Meta(description="Only decisions about this job.")] = UNSET
    after: Annotated[
        Annotated[int, Meta(ge=0, le=2**63 - 1)] | UnsetType,
        Meta(
            description="Only rows after this sequence number, oldest first. "
            "Without it: the newest rows, newest first."
        ),
    ] = UNSET


class Decisions(Struct):
    """A page of decisions in the journal."""

    mode: Mode
    decisions: list[DecisionRow]
    next: Next = None


async def answer_decisions(call: Call[DecisionsQuery]) -> Answer:
    """Answer from the journal with a page of decisions."""
    query = call.query
    rows = await decision_rows(
        call.view.journal,
        query.limit,
        None if query.job is UNSET else query.job,
        None if query.after is UNSET else query.after,
    )
    page, cursor = page_of(((row["seq"], row) for row in rows), query.limit)
    if cursor is None and len(page) == query.limit:
        cursor = page[-1]["seq"]  # others may follow
    return {
        "mode": call.view.core.config.mode,
        "decisions": call.names.in_rows(page),
        "next": None if query.after is UNSET else cursor,
    }


DECISIONS = Endpoint(
    name="decisions",
    path="/api/v1/decisions",
    summary="Decisions in the journal.",
    handle=answer_decisions,
    query=DecisionsQuery,
    answer=Decisions,
)

ENDPOINTS = (EXPLAIN, DECISIONS)
