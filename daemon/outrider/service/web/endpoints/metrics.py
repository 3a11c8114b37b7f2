"""Metrics for Prometheus."""

import asyncio

from aiohttp import web

from outrider.service.metrics import expose
from outrider.service.web.endpoint import Call, Endpoint, NoQuery, response


async def handle(call: Call[NoQuery]) -> web.Response:
    """The values are taken here, on the loop, and rendered in a thread.

    One at a time: several threads that render would hold up the loop together.
    """
    accept = ",".join(call.request.headers.getall("Accept", ()))
    async with call.view.scraping:
        shown = call.names.in_metrics(call.view.metrics())
        body, content_type = await asyncio.to_thread(expose, shown, accept)
    answer = response(body, content_type)
    answer.headers["Vary"] = "Accept"
    return answer


ENDPOINT = Endpoint(
    name="metrics",
    path="/metrics",
    summary="Metrics: OpenMetrics where the client accepts it, else the classic text.",
    handle=handle,
    query=NoQuery,
    content="text/plain",
    while_starting=True,
)
