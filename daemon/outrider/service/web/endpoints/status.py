"""Everything the status page shows."""

from typing import Any

from outrider.service.daemon_view import DaemonView
from outrider.service.views.status import status
from outrider.service.web.endpoint import Answer, Call, Endpoint, NoQuery
from outrider.service.web.shapes.status import Status


def whole_status(view: DaemonView) -> dict[str, Any]:
    """What the core shows, joined to the ledger, the publisher and the notes."""
    figures = view.recording.figures()
    ledger = {
        key: figures[key]
        for key in (
            "recording",
            "failure",
            "last_seq",
            "size_bytes",
            "budget_bytes",
            "dropped_rows",
            "snapshot_age_s",
        )
    } | {"rows": sum(figures["rows"].values())}
    mqtt = view.publisher.figures()
    notes = [*view.notes, *view.core.notes()]
    if view.recording.over_budget is not None:
        notes.append(view.recording.over_budget)
    if mqtt is not None and mqtt["failure"]:
        notes.append(f"not publishing: {mqtt['failure']}")
    extra = {"own_clock": view.own_clock, "ledger": ledger, "mqtt": mqtt, "notes": notes}
    return status(view.core, extra)


async def handle(call: Call[NoQuery]) -> Answer:
    """Answer from memory."""
    return whole_status(call.view)


ENDPOINT = Endpoint(
    name="status",
    path="/api/v1/status",
    summary="Everything the page shows.",
    handle=handle,
    query=NoQuery,
    answer=Status,
)
