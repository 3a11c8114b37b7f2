"""Endpoints that explain a job, and that return rows of decisions."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.journal import Journal
from outrider.service.core.user_privacy import named_explanation, named_rows
from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.host.threads import in_own_thread
from outrider.service.shapes.jobs import Ambiguity, Decisions, Explanation
from outrider.service.shapes.values import Failure
from outrider.service.views.explanation import (
    explain,
    explain_from_rows,
    is_waiting,
    jobs_meant,
    states_of,
)
from outrider.service.views.job_runs import decision_rows, runs_and_end
from outrider.service.views.status import lease_of
from outrider.service.views.waiting_reasons import NO_ANSWER
from outrider.service.web.access import ACCESS
from outrider.service.web.endpoint import (
    Answer,
    Call,
    Endpoint,
    Limit,
    NoQuery,
    NotFoundError,
    json_response,
    page_of,
)

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
    gone = await in_own_thread(lambda: _ledger_jobs(view.journal, short), "question")
    return list(dict.fromkeys([*jobs_meant(view.core, short, view.job_index), *gone]))


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
    return {**named_explanation(answer, user), "withheld": withheld}


EXPLAIN = Endpoint(
    name="explain",
    path="/api/v1/explain/{job}",
    summary="Explains why a job waits, runs or was held. Its name is percent-encoded (`#` is %23; "
    "slashes may stay). A short form such as 1234.0 works if only one job has it.",
    handle=handle,
    query=NoQuery,
    answer=Explanation,
    reads_journal=True,
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
        "decisions": named_rows(page),
        "next": None if query.after is UNSET else cursor,
    }


DECISIONS = Endpoint(
    name="decisions",
    path="/api/v1/decisions",
    summary="Decisions in the journal.",
    handle=answer_decisions,
    query=DecisionsQuery,
    answer=Decisions,
    reads_journal=True,
)

ENDPOINTS = (EXPLAIN, DECISIONS)
