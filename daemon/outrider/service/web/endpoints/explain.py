"""Why a job is where it is."""

import asyncio
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
from outrider.service.views.waiting_reasons import NOBODY_ASKED
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
_MOST_CANDIDATES = 20


class AmbiguousJobError(LookupError):
    """A short form that several jobs here have.

    Attributes:
        candidates: their names.
        states: how many of them are in which state.
    """

    def __init__(self, short: str, candidates: list[str], states: dict[str, int]) -> None:
        counted = ", ".join(f"{n:,} {state}" for state, n in states.items())
        super().__init__(f"{short!r} stands for {len(candidates):,} jobs ({counted}); say which")
        self.candidates = candidates
        self.states = states


async def explanation(
    view: DaemonView, job: str, asks_batch_system: bool = False
) -> dict[str, Any] | None:
    """From memory, or from the ledger once the job has left; None for an unknown job.

    Args:
        view: what may be seen of the daemon.
        job: its name, or a short form of it.
        asks_batch_system: whether it is asked, too, why the job waits; what it says names users.

    Raises:
        AmbiguousJobError: the short form is that of several jobs.
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
    asks = asks_batch_system and is_waiting(view.core, job)
    said = await view.waiting_reasons.of(job) if asks else NOBODY_ASKED
    runs, end = await runs_and_end(view.journal, job, view.core.config.timezone)
    lease, starts = lease_of(view.levers(), job), view.expected_starts()
    found = explain(view.core, job, rows, said, runs, lease, starts)
    if found is not None or not (rows or runs or end):
        return found
    return explain_from_rows(view.core.config, job, rows, runs, end)


async def _jobs_meant(view: DaemonView, short: str) -> list[str]:
    """Names of the jobs, here or in the ledger, that a short form can mean."""
    gone = await asyncio.to_thread(_ledger_jobs, view.journal, short)
    return list(dict.fromkeys([*jobs_meant(view.core, short), *gone]))


def _ledger_jobs(path: Path, short: str) -> list[str]:
    with Journal(path, read_only=True) as journal:
        return journal.jobs_meant(short)


async def handle(call: Call[NoQuery]) -> Answer | web.Response:
    """Return the explanation; 300 with the candidates, or 404 with the job's name."""
    job = call.request.match_info["job"]
    try:
        answer = await explanation(call.view, job, call.sees_names)
    except AmbiguousJobError as error:
        told = Ambiguity(
            str(error), error.candidates[:_MOST_CANDIDATES], len(error.candidates), error.states
        )
        return json_response(told, 300)
    if answer is None:
        raise NotFoundError(f"no job {job!r} is known here")
    history = call.view.core.merger.normaliser.known_by(answer["job"])
    return call.names.in_explanation(answer, "" if history is None else history.spec.user)


# -- explanation -----------------------------------------------------------------------------------
# The shape of what is explained of a job.


class Ambiguity(Struct):
    """A short form of a job's name that several jobs here have, such as an array's."""

    error: str
    candidates: Annotated[list[str], Meta(description="Names of the first of these jobs.")]
    total: Count
    states: Annotated[
        dict[str, Count], Meta(description="How many are in which state; `left`: not here.")
    ]


class Alike(Struct):
    """Jobs that wait, of the same user and VO, and ask for the same."""

    total: Annotated[Count, Meta(description="This one included.")]
    ahead: Annotated[Count, Meta(description="Of them, those that were submitted before it.")]


class BatchSystem(Struct):
    """Why a job is not running, as its batch system says it, in its own terms and numbers."""

    adapter: str
    code: Annotated[str, Meta(description="Its own word or number for the reason; may be empty.")]
    sentence: str
    never: Annotated[bool, Meta(description="The job never starts as it stands.")]
    remedies: Annotated[
        list[str], Meta(description="What would change it, the most promising first.")
    ]
    machines: Annotated[int | None, Meta(description="How many machines may run it at all.")]
    clauses: Annotated[
        list[Clause],
        Meta(
            description="The conditions that all have to hold: how many machines meet each, and "
            "how many would be left without it."
        ),
    ]
    expected_start_s: Annotated[
        Unknown, Meta(description="When the batch system itself expects it to start.")
    ]
    ahead: Annotated[int | None, Meta(description="Waiting jobs before it, by its own order.")]
    removes_most: Annotated[
        str | None,
        Meta(
            description="The condition that by itself removes most machines; null: each is met by "
            "all machines, or none is known."
        ),
    ] = None


class DecisionRow(Struct):
    """One row of the ledger. Alike jobs share a row: `jobs` lists them."""

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
            "where nothing was to be carried out."
        ),
    ] = None
    jobs: list[str] | None = None


class Lease(Struct):
    """What Outrider has asked of the batch system for a job, for as long as it renews that."""

    lever: str
    action: Annotated[str | None, Meta(description="Null: it was refused.")]
    machine: Annotated[str | None, Meta(description="For whose group of machines.")]
    decided_s: Unknown
    refused_because: str | None


class Left(Struct):
    """How a job left."""

    how: Literal["completed", "removed"]
    at_s: float
    reason: Annotated[str | None, Meta(description="Why it was removed; null: it completed.")]


class PolicyView(Struct):
    """What one policy thinks of one job."""

    name: str
    action: Annotated[str | None, Meta(description="What it would do; null: it was not asked.")]
    reason: str | None
    cluster: Annotated[str | None, Meta(description="Where it would start the job.")]
    until_s: Annotated[Unknown, Meta(description="When it looks again; null: when asked.")]
    scores: dict[str, Unknown]
    propensity: Unknown
    explanation: str
    decided_s: Unknown
    seq: int | None
    latest_s: Annotated[
        Unknown,
        Meta(
            description="Until when it may defer the job at most; null: it does not defer it, or "
            "without a limit."
        ),
    ] = None
    text: Annotated[str, Meta(description="The decision as a sentence for people.")] = ""


class Run(Struct):
    """A run of the job that has ended."""

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
    """Why a job is where it is."""

    job: str
    mode: Mode
    source: Literal["daemon", "ledger"]
    state: Annotated[JobState | None, Meta(description="Null: it is not here any more.")]
    sentence: str
    held_because: Annotated[
        str | None,
        Meta(
            description="Why it is held, as the batch system says it; null: it is not held, that "
            "is not known, or the client may not see users' names, which such words tell."
        ),
    ]
    batch_system: Annotated[
        BatchSystem | None,
        Meta(
            description="Asked now, of jobs that are queued or held; null: nothing was said, or "
            "the client may not see users' names, which such words tell."
        ),
    ]
    batch_system_errors: Annotated[
        list[str], Meta(description="Batch systems that were asked in vain, and why.")
    ]
    waiting_s: Unknown
    since_s: Unknown
    runs: Annotated[list[Run], Meta(description="Its last runs that have ended, oldest first.")]
    policies: list[PolicyView]
    decisions: list[DecisionRow]
    cause: Annotated[
        str, Meta(description="Why it is where it is, without what policies would do: a sentence.")
    ] = ""
    start_lines: Annotated[
        list[str], Meta(description="The expected start as lines of text for people.")
    ] = []
    timezone: Annotated[str, Meta(description="The site's zone, an IANA name.")] = "UTC"
    now_s: Annotated[Unknown, Meta(description="The time at the site; null: it is not asked.")] = (
        None
    )
    expected_start: Annotated[
        JobStart | None,
        Meta(
            description="By the twin beside the daemon; null: it does not wait, or the daemon was "
            "not asked. What the batch system itself expects is in `batch_system`."
        ),
    ] = None
    lease: Annotated[
        Lease | None, Meta(description="In the modes canary and active. Null: nothing stands.")
    ] = None
    alike: Annotated[Alike | None, Meta(description="Null: it does not wait.")] = None
    left: Annotated[
        Left | None, Meta(description="Null: it is here, or how it left is not known.")
    ] = None
    remedies: Annotated[
        list[str],
        Meta(
            description="What would change it by what Outrider itself knows, such as the end of "
            "owners' hours; what the batch system says would is in `batch_system`."
        ),
    ] = []


EXPLAIN = Endpoint(
    name="explain",
    path="/api/v1/explain/{job}",
    summary="Why a job is where it is. Its name is percent-encoded (`#` is %23; a slash may stand "
    "as it is). A short form such as 1234.0 does where only one job here has it.",
    handle=handle,
    query=NoQuery,
    answer=Explanation,
    others={300: Ambiguity, 404: Failure},
)


# -- decisions -------------------------------------------------------------------------------------
# Rows of the ledger.


class DecisionsQuery(Struct, frozen=True):
    """Which rows of the ledger."""

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
    """Rows of the ledger."""

    mode: Mode
    decisions: list[DecisionRow]
    next: Next = None


async def answer_decisions(call: Call[DecisionsQuery]) -> Answer:
    """Answer from the ledger."""
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
    summary="Rows of the ledger.",
    handle=answer_decisions,
    query=DecisionsQuery,
    answer=Decisions,
)

ENDPOINTS = (EXPLAIN, DECISIONS)
