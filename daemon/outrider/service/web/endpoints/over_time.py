"""Endpoints of time series: jobs over time, and CPUs in use."""

from typing import Annotated, Literal, TypeAlias

import structlog
from aiohttp import web
from msgspec import Meta, Struct

from outrider.model.errors import LedgerError
from outrider.service.web.endpoint import Answer, Call, Endpoint, json_response
from outrider.service.web.shapes.values import Count, Failure, Mode, Unknown

# -- jobs over time --------------------------------------------------------------------------------
# Numbers of waiting and running jobs over time.

Window: TypeAlias = Literal["1h", "24h", "7d", "all"]
log = structlog.get_logger()


class JobsOverTimeQuery(Struct, frozen=True):
    """Parameters of jobs over time."""

    window: Annotated[
        Window, Meta(description="Length of the period up to now; `all`: since the oldest run.")
    ] = "24h"


class JobsOverTime(Struct):
    """Numbers of jobs in bins of equal length, from the recorded runs and the current jobs.

    `waiting` and `running` (suspended jobs included) are means over each bin, null before
    `known_from_s`. A held job counts as waiting. A job that was removed before it ever ran is not
    counted.
    """

    mode: Mode
    window: Window
    now_s: float
    begin_s: float
    step_s: float
    known_from_s: float
    waiting: list[Unknown]
    running: list[Unknown]


async def answer_jobs_over_time(call: Call[JobsOverTimeQuery]) -> Answer | web.Response:
    """Answer from the journal, read in a thread, or 503 if it cannot be read in time."""
    view = call.view
    try:
        series = await view.jobs_over_time.of(call.query.window, view.core, view.journal)
    except (LedgerError, TimeoutError) as error:
        log.warning("jobs_over_time_failed", window=call.query.window, error=str(error))
        return json_response({"error": "the journal cannot be read now; see the log"}, 503)
    return {"mode": view.core.config.mode, **series}


JOBS_OVER_TIME = Endpoint(
    name="jobs_over_time",
    path="/api/v1/jobs-over-time",
    summary="Numbers of waiting and running jobs over time.",
    handle=answer_jobs_over_time,
    query=JobsOverTimeQuery,
    answer=JobsOverTime,
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


class Cpus(Struct):
    """CPUs in use, as means over each bin, by the outcome of the run."""

    completed: list[float]
    thrown_away: list[float]
    open: Annotated[list[float], Meta(description="CPUs of runs that have not ended.")]


class TableWatts(Struct):
    """Configured watts of the runs, as means over each bin, by the outcome of the run."""

    completed: list[float]
    thrown_away: list[float]
    open: list[float]


class Use(Struct):
    """CPUs in use over time, of the runs in the journal and those that have not ended.

    `is_cut`: there were more runs than are read, so the period begins later than requested.
    `table_w` is an estimate: each CPU in use counts its share of the busy machine's configured
    watts, even if a meter measures. Machines that idle, sleep or are used by their owners are not
    included. `watts_known_ratio`: ratio of the CPU time on machines with configured watts; other
    machines are in no sum of watts.
    """

    mode: Mode
    window: str
    begin_s: float
    end_s: float
    is_cut: bool
    time_s: Annotated[list[float], Meta(description="Start of each bin; all have equal length.")]
    cpus: Cpus
    starts: Annotated[list[Count], Meta(description="Runs that began in each bin.")]
    table_w: TableWatts
    watts_known_ratio: Unknown


async def answer_use(call: Call[UseQuery]) -> Answer | web.Response:
    """Answer from the journal, read in a thread; 503 if it cannot be read in time."""
    view = call.view
    try:
        series = await view.use_over_time.of(call.query.window, view.core, view.journal)
    except (LedgerError, TimeoutError) as error:
        log.warning("use_over_time_failed", window=call.query.window, error=str(error))
        return json_response({"error": "the journal cannot be read now; see the log"}, 503)
    return {"mode": view.core.config.mode, **series}


USE = Endpoint(
    name="use",
    path="/api/v1/use",
    summary="CPUs in use over time, by outcome of the runs, with configured watts.",
    handle=answer_use,
    query=UseQuery,
    answer=Use,
    others={503: Failure},
)

ENDPOINTS = (USE, JOBS_OVER_TIME)
