"""What the site is worth to a job: what a broker ranks sites by."""

from typing import Annotated

from msgspec import Meta, Struct

from outrider.service.views.utility import utility
from outrider.service.web.endpoint import Answer, Call, Endpoint, NoQuery
from outrider.service.web.shapes.status import Energy
from outrider.service.web.shapes.values import Count, Mode, Unknown


class SiteUtility(Struct):
    """What lets a broker tell whether to send work here."""

    free_machines: Annotated[
        Count,
        Meta(
            description="Machines on which a job may start now: open, with a CPU left, awake or "
            "asleep. The status shows as `free` only those on which nothing runs."
        ),
    ]
    queued_jobs: Count
    mean_wait_s: Unknown
    fairness: Unknown
    energy_wh: Energy
    energy_measured_wh: Annotated[
        Energy, Meta(description="The part of `energy_wh` that meters measured.")
    ]


class WaitNow(Struct):
    """Seconds from now to the start: an interval of 80 %, and the median."""

    low: float
    median: float
    high: float


class KindNow(Struct, rename={"class_": "class"}):
    """One more job of a VO and a class, like the middle one of those that came in the last days."""

    vo: str
    class_: str
    cpus: Count
    estimate_s: Annotated[Unknown, Meta(description="Run time that it asks for.")]
    n: Annotated[Count, Meta(description="Such jobs that came in the last days.")]
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
    """What one more job would meet, sent here now, behind all that wait; each kind alone."""

    asked_s: Annotated[Unknown, Meta(description="Up to when the site was seen for it.")]
    not_said: Annotated[str | None, Meta(description="Why there is no answer; null: there is.")]
    kinds: Annotated[list[KindNow], Meta(description="Those of which most jobs came, first.")]


class Utility(Struct):
    """What the site is worth to a job now."""

    mode: Mode
    now_s: float
    site_utility: SiteUtility
    one_more_job: OneMoreJob | None = None


async def handle(call: Call[NoQuery]) -> Answer:
    """Answer from memory."""
    return call.names.in_utility(utility(call.view.core, call.view.expected_starts()))


UTILITY = Endpoint(
    name="utility",
    path="/api/v1/utility",
    summary="What lets a broker tell whether to send work here.",
    handle=handle,
    query=NoQuery,
    answer=Utility,
)

ENDPOINTS = (UTILITY,)
