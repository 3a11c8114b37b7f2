"""Endpoints for machines: liveness, readiness, metrics and the OpenAPI document."""

from typing import Any, Literal, TypeAlias

from aiohttp import web
from msgspec import Struct

from outrider.service.core.user_privacy import Viewer
from outrider.service.host.threads import in_own_thread
from outrider.service.metrics import Snapshot, expose
from outrider.service.web.endpoint import (
    SERVED,
    Answer,
    Call,
    Endpoint,
    NoQuery,
    json_response,
    response,
)
from outrider.service.web.openapi import openapi

# -- healthz ---------------------------------------------------------------------------------------
# Liveness probe: the process answers.


class Health(Struct):
    """The answer of the liveness probe."""

    ok: Literal[True]


async def answer_healthz(call: Call[NoQuery]) -> Answer:
    """Answer immediately, without any check."""
    return {"ok": True}


HEALTHZ = Endpoint(
    name="healthz",
    path="/healthz",
    summary="Liveness probe: the process answers.",
    handle=answer_healthz,
    query=NoQuery,
    answer=Health,
    open=True,
    while_starting=True,
)


# -- readyz ----------------------------------------------------------------------------------------
# Readiness probe: the daemon does its work.


class Readiness(Struct):
    """The readiness of the daemon, with the reasons if it is not ready."""

    ready: bool
    reasons: list[str]


async def answer_readyz(call: Call[NoQuery]) -> web.Response:
    """Answer 200, or 503 with the reasons."""
    ready, reasons = call.view.ready()
    return json_response({"ready": ready, "reasons": reasons}, 200 if ready else 503)


READYZ = Endpoint(
    name="readyz",
    path="/readyz",
    summary="Readiness probe: 200 if the daemon does its work, else 503 with the reasons.",
    handle=answer_readyz,
    query=NoQuery,
    answer=Readiness,
    others={503: Readiness},
    while_starting=True,
)


# -- metrics ---------------------------------------------------------------------------------------
# Metrics for Prometheus.


async def answer_metrics(call: Call[NoQuery]) -> web.Response:
    """Collect the values on the event loop, and render them in a thread.

    One request at a time: several threads that render would together delay the loop.
    """
    accept = ",".join(call.request.headers.getall("Accept", ()))
    async with call.view.scraping:
        shown = shown_to(call.names, call.view.metrics())
        body, content_type = await in_own_thread(lambda: expose(shown, accept), "question")
    answer = response(body, content_type)
    answer.headers["Vary"] = "Accept"
    return answer


def shown_to(names: Viewer, snapshot: Snapshot) -> Snapshot:
    """Return the metrics as one client may see them: personal VOs as pseudonyms."""
    return snapshot.relabelled("vo", names.vo) if names.hides_vos else snapshot


METRICS = Endpoint(
    name="metrics",
    path="/metrics",
    summary="Metrics: OpenMetrics if the client accepts it, else the classic text format.",
    handle=answer_metrics,
    query=NoQuery,
    content="text/plain",
    while_starting=True,
)


# -- openapi json ----------------------------------------------------------------------------------
# The description of all endpoints.

Document: TypeAlias = dict[str, Any]
"""A JSON object without a declared shape."""


async def answer_openapi(call: Call[NoQuery]) -> Answer:
    """Return the OpenAPI document of this application."""
    return openapi(call.request.app[SERVED])


OPENAPI = Endpoint(
    name="openapi",
    path="/api/v1/openapi.json",
    summary="OpenAPI 3.1 document of all endpoints, with the shape of every answer.",
    handle=answer_openapi,
    query=NoQuery,
    answer=Document,
    while_starting=True,
)

ENDPOINTS = (METRICS, HEALTHZ, READYZ, OPENAPI)
