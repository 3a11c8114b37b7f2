"""Jobs and machines now, by state."""

from collections import Counter
from math import inf
from typing import Final

from outrider.model.jobs import JOB_STATE_NAMES, QUEUED
from outrider.service.core.core import Core

NO_QUEUE: Final = ([0] * len(JOB_STATE_NAMES), 0.0)
"""What `vo_queues` would say of a VO without a job."""


def vo_queues(core: Core) -> dict[str, tuple[list[int], float]]:
    """Of each VO that has jobs: how many in each state, and the longest wait for a first start.

    The wait is in seconds, of queued jobs whose submission was seen; 0: there is none.
    """
    jobs, now = core.site.jobs.values(), core.site.now
    by_vo = core.site.job_counts.by_vo.items()
    found = {vo: (list(states), 0.0) for vo, states in by_vo}
    since_s: dict[str, float] = {}
    for job in jobs:
        if job.state == QUEUED and job.first_start_s is None and job.submit_s is not None:
            spec = job.spec
            at_s = job.submit_s if spec.eligible_s is None else max(job.submit_s, spec.eligible_s)
            if at_s < since_s.get(spec.vo, inf):
                since_s[spec.vo] = at_s
    for vo, at_s in since_s.items():
        found[vo] = found[vo][0], max(0.0, now - at_s)
    return found


def job_counts(core: Core) -> dict[str, int]:
    """Jobs known now, by state."""
    return dict(zip(JOB_STATE_NAMES, core.site.job_counts.by_state, strict=True))


def machine_counts(core: Core) -> dict[tuple[str, int], int]:
    """Machines known now, by state and cluster number."""
    site = core.site
    return Counter(
        (machine_state(core, m), site.machine_cluster[m])
        for m, spec in enumerate(site.specs)
        if spec is not None
    )


def machine_state(core: Core, m: int) -> str:
    """The one state in which a machine is shown: busy, owner, free, asleep or closed.

    A machine whose owner sits there is `owner` even while a job still runs; one that sleeps may
    be free to jobs all the same (it wakes for them), and is shown as `asleep`.
    """
    site = core.site
    if site.owner[m]:
        return "owner"
    if site.busy[m]:
        return "busy"
    if core.accounting.energy.is_asleep(m, site.now):
        return "asleep"
    return "free" if site.state[m] else "closed"
