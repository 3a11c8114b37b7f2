"""Rows of the ledger."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.service.views.decision_rows import decision_rows
from outrider.service.web.endpoint import Answer, Call, Endpoint
from outrider.service.web.paging import Next, page_of
from outrider.service.web.query import Limit
from outrider.service.web.shapes.decisions import DecisionRow
from outrider.service.web.shapes.values import Mode


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


async def handle(call: Call[DecisionsQuery]) -> Answer:
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


ENDPOINT = Endpoint(
    name="decisions",
    path="/api/v1/decisions",
    summary="Rows of the ledger.",
    handle=handle,
    query=DecisionsQuery,
    answer=Decisions,
)
