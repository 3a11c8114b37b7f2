"""Owners who use the machines that a job may use, and when their hours end."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from outrider.model.jobs import Job
from outrider.model.localtime import WEEK_S
from outrider.service.core import Core
from outrider.service.views.sentence import moment

_MOST_CLUSTERS: Final = 3


def owner_hours_that_end(core: Core, job: Job) -> list[str]:
    """What to wait for where owners use machines that a waiting job may use, the soonest first.

    Only of machine groups whose opening hours are configured, are open now, and end. Nothing where
    a machine that the job may use is free: then it is not owners for whom it waits.

    Args:
        core: the daemon's.
        job: that waits.
    """
    site = core.site
    machines = list(_may_use(core, job))
    if any(site.is_free(machine) for machine in machines):
        return []
    owned = Counter(site.cluster_of(machine) for machine in machines if site.owner[machine])
    ends = [(at_s, cluster) for cluster in owned if (at_s := _closes_s(core, cluster)) is not None]
    return [
        f"wait for the owner hours of {site.cluster_names[cluster]} to end, "
        f"{moment(core, at_s):%d %b %H:%M}: owners use {_machines(owned[cluster])} there"
        for at_s, cluster in sorted(ends)[:_MOST_CLUSTERS]
    ]


def _may_use(core: Core, job: Job) -> Iterable[int]:
    """The machines that a job may use, as far as is known."""
    site, eligible = core.site, job.spec.eligible
    return site.classes.get(eligible, set()) if eligible else range(len(site.specs))


def _machines(n: int) -> str:
    return "1 machine that it may use" if n == 1 else f"{n:,} machines that it may use"


def _closes_s(core: Core, cluster: int) -> float | None:
    """When a cluster that is open closes next; None: it is closed, or never closes."""
    site = core.site
    minutes = site.cluster_specs[cluster].hours.minutes
    second = site.week_second()
    now = int(second) // 60
    after = (minutes[now:] + minutes[:now]).find(0)
    if after <= 0:
        return None
    closes = (now + after) * 60.0
    at_s = site.now - second + closes
    # where the clocks are changed before, the wall shows another time by then
    off_s = (site.local_time.week_second(at_s) - closes + WEEK_S / 2) % WEEK_S - WEEK_S / 2
    return at_s - off_s
