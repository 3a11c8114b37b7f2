"""Endpoint for wasted CPU time."""

from typing import Annotated

from msgspec import Meta, Struct

from outrider.service.web.endpoint import Call, Endpoint


class WasteQuery(Struct, frozen=True):
    """Query parameters of the endpoint."""

    least_s: Annotated[float, Meta(ge=0, description="0 where it is less.")] = 0.0


class Waste(Struct):
    """Wasted CPU-seconds since counting began."""

    badput_s: float


async def handle(call: Call[WasteQuery]) -> Waste:
    """Return the answer from memory."""
    badput_s = call.view.core.accounting.badput_s
    return Waste(badput_s if badput_s >= call.query.least_s else 0.0)


WASTE = Endpoint(
    name="waste",
    path="/api/v1/waste",
    summary="CPU time that came to nothing.",
    handle=handle,
    query=WasteQuery,
    answer=Waste,
)

ENDPOINTS = (WASTE,)
