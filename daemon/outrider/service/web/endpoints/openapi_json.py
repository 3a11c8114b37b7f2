"""The description of all endpoints."""

from typing import Any, TypeAlias

from outrider.service.web.endpoint import SERVED, Answer, Call, Endpoint, NoQuery
from outrider.service.web.openapi import openapi

Document: TypeAlias = dict[str, Any]
"""A JSON object that describes itself."""


async def handle(call: Call[NoQuery]) -> Answer:
    """The document of what this application serves."""
    return openapi(call.request.app[SERVED])


ENDPOINT = Endpoint(
    name="openapi",
    path="/api/v1/openapi.json",
    summary="All of this, with the shape of every answer, as OpenAPI 3.1.",
    handle=handle,
    query=NoQuery,
    answer=Document,
    while_starting=True,
)
