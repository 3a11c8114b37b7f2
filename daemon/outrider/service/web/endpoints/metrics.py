"""Metrics for Prometheus."""

import asyncio

from aiohttp import web

from outrider.service.core.user_names import UserNames
from outrider.service.metrics import Snapshot, expose
from outrider.service.web.endpoint import Call, Endpoint, NoQuery, response


async def handle(call: Call[NoQuery]) -> web.Response:
    """The values are taken here, on the loop, and rendered in a thread.

    One at a time: several threads that render would hold up the loop together.
    """
    accept = ",".join(call.request.headers.getall("Accept", ()))
    async with call.view.scraping:
        shown = shown_to(call.names, call.view.metrics())
        body, content_type = await asyncio.to_thread(expose, shown, accept)
    answer = response(body, content_type)
    answer.headers["Vary"] = "Accept"
    return answer


def shown_to(names: UserNames, snapshot: Snapshot) -> Snapshot:
    """What one client may see: a VO that is named for a user only by its pseudonym."""
    return snapshot.relabelled("vo", names.vo) if names.hides_vos else snapshot


ENDPOINT = Endpoint(
    name="metrics",
    path="/metrics",
    summary="Metrics: OpenMetrics where the client accepts it, else the classic text.",
    handle=handle,
    query=NoQuery,
    content="text/plain",
    while_starting=True,
)
