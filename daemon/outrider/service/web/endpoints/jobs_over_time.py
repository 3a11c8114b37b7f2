"""How many jobs waited and ran, over time."""

from typing import Annotated, Literal, TypeAlias

import structlog
from aiohttp import web
from msgspec import Meta, Struct

from outrider.model.errors import LedgerError
from outrider.service.web.endpoint import Answer, Call, Endpoint, json_response
from outrider.service.web.shapes.values import Failure, Mode, Unknown

Window: TypeAlias = Literal["1h", "24h", "7d", "all"]

log = structlog.get_logger()


class JobsOverTimeQuery(Struct, frozen=True):
    """How far back."""

    window: Annotated[
        Window, Meta(description="The time before now; `all`: since the oldest run on record.")
    ] = "24h"


class JobsOverTime(Struct):
    """Jobs in bins of equal length, by the runs on record and the jobs that are here.

    `waiting` and `running` (suspended jobs included) are means over each bin, null before
    `known_from_s`. A job that is held counts as waiting; one that was removed before it ever ran
    is not in the record of runs.
    """

    mode: Mode
    window: Window
    now_s: float
    begin_s: float
    step_s: float
    known_from_s: float
    waiting: list[Unknown]
    running: list[Unknown]


async def handle(call: Call[JobsOverTimeQuery]) -> Answer | web.Response:
    """Answer from the journal, read in a thread, or 503 where it cannot be read in time."""
    view = call.view
    try:
        told = await view.jobs_over_time.of(call.query.window, view.core, view.journal)
    except (LedgerError, TimeoutError) as error:
        log.warning("fail_jobs_over_time", window=call.query.window, reason=str(error))
        return json_response({"error": "the journal cannot be read now; the log tells why"}, 503)
    return {"mode": view.core.config.mode, **told}


ENDPOINT = Endpoint(
    name="jobs_over_time",
    path="/api/v1/jobs-over-time",
    summary="How many jobs waited and ran, over time.",
    handle=handle,
    query=JobsOverTimeQuery,
    answer=JobsOverTime,
    others={503: Failure},
)
