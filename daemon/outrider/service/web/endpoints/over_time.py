"""Endpoints of time series: jobs over time, and CPUs in use."""

from typing import Annotated, Literal

import structlog
from aiohttp import web
from msgspec import Meta, Struct
from msgspec.structs import replace

from outrider.model.errors import LedgerError
from outrider.service.shapes.jobs import JobsOverTime, Window
from outrider.service.shapes.site import Use
from outrider.service.shapes.values import Failure
from outrider.service.web.endpoint import Call, Endpoint, json_response

# -- jobs over time --------------------------------------------------------------------------------
# Numbers of waiting and running jobs over time.

log = structlog.get_logger()


class JobsOverTimeQuery(Struct, frozen=True):
    """Parameters of jobs over time."""

    window: Annotated[
        Window, Meta(description="Length of the period up to now; `all`: since the oldest run.")
    ] = "24h"


async def answer_jobs_over_time(call: Call[JobsOverTimeQuery]) -> JobsOverTime | web.Response:
    """Answer from the journal, read in a thread, or 503 if it cannot be read in time."""
    view = call.view
    try:
        series = await view.jobs_over_time.of(call.query.window, view.core, view.journal)
    except (LedgerError, TimeoutError) as error:
        log.warning("jobs_over_time_failed", window=call.query.window, error=str(error))
        return json_response({"error": "the journal cannot be read now; see the log"}, 503)
    return replace(series, mode=view.core.config.mode)


JOBS_OVER_TIME = Endpoint(
    name="jobs_over_time",
    path="/api/v1/jobs-over-time",
    summary="Numbers of waiting and running jobs over time.",
    handle=answer_jobs_over_time,
    query=JobsOverTimeQuery,
    answer=JobsOverTime,
    reads_journal=True,
    others={503: Failure},
)


# -- use -------------------------------------------------------------------------------------------
# CPUs in use over time.


class UseQuery(Struct, frozen=True):
    """Parameters of CPU use over time."""

    window: Annotated[
        Literal["1h", "24h", "7d", "all"],
        Meta(description="Length of the period, in event time; all: since the oldest run."),
    ] = "24h"


async def answer_use(call: Call[UseQuery]) -> Use | web.Response:
    """Answer from the journal, read in a thread; 503 if it cannot be read in time."""
    view = call.view
    try:
        series = await view.use_over_time.of(call.query.window, view.core, view.journal)
    except (LedgerError, TimeoutError) as error:
        log.warning("use_over_time_failed", window=call.query.window, error=str(error))
        return json_response({"error": "the journal cannot be read now; see the log"}, 503)
    return replace(series, mode=view.core.config.mode)


USE = Endpoint(
    name="use",
    path="/api/v1/use",
    summary="CPUs in use over time, by outcome of the runs, with configured watts.",
    handle=answer_use,
    query=UseQuery,
    answer=Use,
    reads_journal=True,
    others={503: Failure},
)

ENDPOINTS = (USE, JOBS_OVER_TIME)
