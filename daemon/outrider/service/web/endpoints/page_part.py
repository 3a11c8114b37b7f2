"""The parts of the status page: style, scripts, icon."""

from aiohttp import web

from outrider.service.web.assets import asset_response
from outrider.service.web.endpoint import Call, Endpoint, NoQuery
from outrider.service.web.shapes.values import Failure


async def handle(call: Call[NoQuery]) -> web.Response:
    """One file, or 404 with its name."""
    return asset_response(call.request, call.request.match_info["asset"])


ENDPOINT = Endpoint(
    name="asset",
    path="/page/{asset}",
    summary="A part of the status page: style, script, icon.",
    handle=handle,
    query=NoQuery,
    content="*/*",
    others={404: Failure},
    while_starting=True,
)
