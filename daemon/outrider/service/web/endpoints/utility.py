"""The utility endpoint: figures by which a broker ranks sites."""

from typing import Annotated

from msgspec import Meta, Struct

from outrider.service.views.status import utility
from outrider.service.web.endpoint import Answer, Call, Endpoint, NoQuery
from outrider.service.web.shapes.status import Energy
from outrider.service.web.shapes.values import Count, Mode, Unknown


class SiteUtility(Struct):
    """Figures by which a broker decides whether to send work here."""

    free_machines: Annotated[
        Count,
        Meta(
            description="Machines on which a job may start now: open, with a free CPU, awake or "
            "asleep. In the status, `free` counts only those on which nothing runs."
        ),
    ]
    queued_jobs: Count
    mean_wait_s: Unknown
    fairness: Unknown
    energy_wh: Energy
    energy_measured_wh: Annotated[
        Energy, Meta(description="Part of `energy_wh` that meters measured.")
    ]


class WaitNow(Struct):
    """Seconds from now to the start: an 80 % interval and the median."""

    low: float
    median: float
    high: float


class KindNow(Struct, rename={"class_": "class"}):
    """One more job of a VO and a class, like the median such job of the last days."""

    vo: str
    class_: str
    cpus: Count
    estimate_s: Annotated[Unknown, Meta(description="Requested run time.")]
    n: Annotated[Count, Meta(description="Number of such jobs in the last days.")]
    wait_s: Annotated[
        WaitNow | None, Meta(description="Null: not known, or no machine could run it.")
    ]
    utility: Annotated[
        Unknown,
        Meta(
            description="Expected unit utility of completing it, 0 to 1, by the time utility "
            "function of its class; null: not known, or the class has none."
        ),
    ]


class OneMoreJob(Struct):
    """Forecasts for one more job, submitted now behind all waiting jobs; each kind separately."""

    asked_s: Annotated[Unknown, Meta(description="Time of the forecast, of the site's events.")]
    not_said: Annotated[
        str | None, Meta(description="Why there is no forecast; null: there is one.")
    ]
    kinds: Annotated[list[KindNow], Meta(description="Kinds of jobs, the most frequent first.")]


class Utility(Struct):
    """The current utility of the site to a job."""

    mode: Mode
    now_s: float
    site_utility: SiteUtility
    one_more_job: OneMoreJob | None = None


async def handle(call: Call[NoQuery]) -> Answer:
    """Answer from memory, with VOs as this client sees them."""
    return call.names.in_utility(utility(call.view.core, call.view.expected_starts()))


UTILITY = Endpoint(
    name="utility",
    path="/api/v1/utility",
    summary="Figures by which a broker decides whether to send work here.",
    handle=handle,
    query=NoQuery,
    answer=Utility,
)

ENDPOINTS = (UTILITY,)
