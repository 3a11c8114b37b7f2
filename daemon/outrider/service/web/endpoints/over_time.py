"""Jobs and CPUs over time."""

from typing import Annotated, Literal, TypeAlias

import structlog
from aiohttp import web
from msgspec import Meta, Struct

from outrider.model.errors import LedgerError
from outrider.service.web.endpoint import Answer, Call, Endpoint, json_response
from outrider.service.web.shapes.values import Count, Failure, Mode, Unknown

# -- jobs over time --------------------------------------------------------------------------------
# How many jobs waited and ran, over time.

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


async def answer_jobs_over_time(call: Call[JobsOverTimeQuery]) -> Answer | web.Response:
    """Answer from the journal, read in a thread, or 503 where it cannot be read in time."""
    view = call.view
    try:
        told = await view.jobs_over_time.of(call.query.window, view.core, view.journal)
    except (LedgerError, TimeoutError) as error:
        log.warning("jobs_over_time_failed", window=call.query.window, error=str(error))
        return json_response({"error": "the journal cannot be read now; the log tells why"}, 503)
    return {"mode": view.core.config.mode, **told}


JOBS_OVER_TIME = Endpoint(
    name="jobs_over_time",
    path="/api/v1/jobs-over-time",
    summary="How many jobs waited and ran, over time.",
    handle=answer_jobs_over_time,
    query=JobsOverTimeQuery,
    answer=JobsOverTime,
    others={503: Failure},
)


# -- use -------------------------------------------------------------------------------------------
# CPUs in use over time.


class UseQuery(Struct, frozen=True):
    """Which window of time, up to now."""

    window: Annotated[
        Literal["1h", "24h", "7d", "all"],
        Meta(description="How long, in event time; all: since the oldest run on record."),
    ] = "24h"


class Cpus(Struct):
    """CPUs in use, the mean of each part of the window, by what became of the run."""

    completed: list[float]
    thrown_away: list[float]
    open: Annotated[list[float], Meta(description="Of runs that have not ended.")]


class TableWatts(Struct):
    """Watts of the runs by the table, the mean of each part of the window, as CPUs are told."""

    completed: list[float]
    thrown_away: list[float]
    open: list[float]


class Use(Struct):
    """CPUs in use over time, of the runs in the journal and those that go on.

    `is_cut`: there were more runs than are read, so the window begins later than was asked for.
    `table_w` is estimated: of each CPU at work, its share of what the busy machine draws by the
    table as it is now, also where a meter measures. Machines that idle, sleep or are used by their
    owners are not in it. `watts_known_ratio`: of the CPU time, the part on machines whose watts are
    known; that of others is in no sum of watts.
    """

    mode: Mode
    window: str
    begin_s: float
    end_s: float
    is_cut: bool
    time_s: Annotated[list[float], Meta(description="Where each part begins; all are as long.")]
    cpus: Cpus
    starts: Annotated[list[Count], Meta(description="Runs that began in each part.")]
    table_w: TableWatts
    watts_known_ratio: Unknown


async def answer_use(call: Call[UseQuery]) -> Answer | web.Response:
    """Answer from the journal, read in a thread; 503 where it cannot be read in time."""
    view = call.view
    try:
        told = await view.use_over_time.of(call.query.window, view.core, view.journal)
    except (LedgerError, TimeoutError) as error:
        log.warning("use_over_time_failed", window=call.query.window, error=str(error))
        return json_response({"error": "the journal cannot be read now; the log tells why"}, 503)
    return {"mode": view.core.config.mode, **told}


USE = Endpoint(
    name="use",
    path="/api/v1/use",
    summary="CPUs in use over time, with their watts by the table, and what became of their runs.",
    handle=answer_use,
    query=UseQuery,
    answer=Use,
    others={503: Failure},
)

ENDPOINTS = (USE, JOBS_OVER_TIME)
