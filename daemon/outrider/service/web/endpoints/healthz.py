"""A probe: the process answers."""

from typing import Literal

from msgspec import Struct

from outrider.service.web.endpoint import Answer, Call, Endpoint, NoQuery


class Health(Struct):
    """The process answers."""

    ok: Literal[True]


async def handle(call: Call[NoQuery]) -> Answer:
    """Answer at once."""
    return {"ok": True}


ENDPOINT = Endpoint(
    name="healthz",
    path="/healthz",
    summary="The process answers.",
    handle=handle,
    query=NoQuery,
    answer=Health,
    open=True,
    while_starting=True,
)
