"""The live status page."""

from aiohttp import web

from outrider.service.web.assets import asset_response
from outrider.service.web.endpoint import Call, Endpoint, NoQuery


async def handle(call: Call[NoQuery]) -> web.Response:
    """Its HTML; the page asks for the rest by itself."""
    return asset_response(call.request, "index.html")


ENDPOINT = Endpoint(
    name="page",
    path="/",
    summary="The live status page.",
    handle=handle,
    query=NoQuery,
    content="text/html",
    while_starting=True,
)
