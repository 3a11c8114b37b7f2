"""Why a job is where it is."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from outrider.service.daemon_view import DaemonView
from outrider.service.views.decision_rows import decision_rows
from outrider.service.views.explanation import explain, explain_from_rows
from outrider.service.web.endpoint import Answer, Call, Endpoint, NoQuery, NotFoundError
from outrider.service.web.shapes.decisions import DecisionRow
from outrider.service.web.shapes.values import Failure, JobState, Mode, Unknown

_EXPLAINED_ROWS = 50


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


class Explanation(Struct):
    """Why a job is where it is."""

    job: str
    mode: Mode
    source: Literal["daemon", "ledger"]
    state: Annotated[JobState | None, Meta(description="Null: it is not here any more.")]
    sentence: str
    waiting_s: Unknown
    since_s: Unknown
    policies: list[PolicyView]
    decisions: list[DecisionRow]
    timezone: Annotated[str, Meta(description="The site's zone, an IANA name.")] = "UTC"


async def explanation(view: DaemonView, job: str) -> dict[str, Any] | None:
    """From memory, or from the ledger once the job is gone; None for a job nobody knows."""
    rows = await decision_rows(view.journal, _EXPLAINED_ROWS, job)
    rows.reverse()
    found = explain(view.core, job, rows)
    if found is not None or not rows:
        return found
    return explain_from_rows(view.core.config, job, rows)


async def handle(call: Call[NoQuery]) -> Answer:
    """The explanation, or 404 with the job's name."""
    job = call.request.match_info["job"]
    answer = await explanation(call.view, job)
    if answer is None:
        raise NotFoundError(f"no job {job!r} is known here")
    return answer


ENDPOINT = Endpoint(
    name="explain",
    path="/api/v1/explain/{job}",
    summary="Why a job is where it is. A slash in its name may stand as it is or as %2F.",
    handle=handle,
    query=NoQuery,
    answer=Explanation,
    others={404: Failure},
)
