"""A probe: the daemon does its work."""

from aiohttp import web
from msgspec import Struct

from outrider.service.web.endpoint import Call, Endpoint, NoQuery, json_response


class Readiness(Struct):
    """Whether the daemon does its work, and if not, why."""

    ready: bool
    reasons: list[str]


async def handle(call: Call[NoQuery]) -> web.Response:
    """200, or 503 with the reasons."""
    ready, reasons = call.view.ready()
    return json_response({"ready": ready, "reasons": reasons}, 200 if ready else 503)


ENDPOINT = Endpoint(
    name="readyz",
    path="/readyz",
    summary="The daemon does its work: 200, or 503 with the reasons.",
    handle=handle,
    query=NoQuery,
    answer=Readiness,
    others={503: Readiness},
    while_starting=True,
)
