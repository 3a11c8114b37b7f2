"""Jobs and machines now, by state."""

from collections import Counter

from outrider.model.jobs import JOB_STATE_NAMES
from outrider.service.core import Core


def job_counts(core: Core) -> dict[str, int]:
    """Jobs known now, by state."""
    counts = Counter(job.state for job in core.site.jobs.values())
    return {name: counts[state] for state, name in enumerate(JOB_STATE_NAMES)}


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
