"""Users who have jobs now: who waits, who runs, what was thrown away of theirs."""

from typing import Any

from outrider.engine.state.site import Site
from outrider.model.jobs import JOB_STATE_NAMES, QUEUED


def user_rows(site: Site) -> list[dict[str, Any]]:
    """A row for each user of each VO; those with the most CPUs in use first.

    ``longest_wait_s`` is of the jobs that wait now, None where none does; ``lost_s`` are the
    seconds of all runs of their jobs that were thrown away.
    """
    now, names, most = site.now, JOB_STATE_NAMES, len(JOB_STATE_NAMES)
    # the four states, CPUs, the longest wait, seconds lost: of 100,000 jobs each step counts
    found: dict[tuple[str, str], list[Any]] = {}
    for job in site.jobs.values():
        spec, state = job.spec, job.state
        row = found.get((spec.user, spec.vo))
        if row is None:
            row = found[spec.user, spec.vo] = [0] * most + [0, None, 0.0]
        row[state] += 1
        row[-1] += job.lost_s
        if job.machine >= 0:
            row[-3] += job.cpus
        if state == QUEUED:
            wait_s = job.wait_s(now)
            if wait_s is not None and (row[-2] is None or wait_s > row[-2]):
                row[-2] = wait_s
    fields = ("user", "vo", *names, "busy_cpus", "longest_wait_s", "lost_s")
    rows = [dict(zip(fields, (*who, *row), strict=True)) for who, row in found.items()]
    return sorted(rows, key=lambda row: (-row["busy_cpus"], -row["queued"]))
