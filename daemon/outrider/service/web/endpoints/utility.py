"""What the site is worth to a job: what a broker ranks sites by."""

from typing import Annotated

from msgspec import Meta, Struct

from outrider.engine.accounting.report import report
from outrider.service.core import Core
from outrider.service.views.counts import job_counts
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


class Utility(Struct):
    """What the site is worth to a job now."""

    mode: Mode
    now_s: float
    site_utility: SiteUtility


def utility(core: Core) -> Answer:
    """What the site is worth to a job now."""
    figures = report(core.site, core.accounting)
    return {
        "mode": core.config.mode,
        "now_s": core.now_s,
        "site_utility": {
            "free_machines": core.site.free_total,
            "queued_jobs": job_counts(core)["queued"],
            "mean_wait_s": figures["wait_s"]["all"]["mean"],
            "fairness": figures["fairness"]["windowed"],
            "energy_wh": figures["energy_wh"],
            "energy_measured_wh": figures["energy_measured_wh"],
        },
    }


async def handle(call: Call[NoQuery]) -> Answer:
    """Answer from memory."""
    return utility(call.view.core)


ENDPOINT = Endpoint(
    name="utility",
    path="/api/v1/utility",
    summary="What lets a broker tell whether to send work here.",
    handle=handle,
    query=NoQuery,
    answer=Utility,
)
