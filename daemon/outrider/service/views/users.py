"""Users who have jobs now: who waits, who runs, what was thrown away of theirs."""

from typing import Any

from outrider.engine.state.site import Site
from outrider.model.jobs import JOB_STATE_NAMES, QUEUED


def user_rows(site: Site) -> list[dict[str, Any]]:
    """A row for each user of each VO; those with the most CPUs in use first.

    ``longest_wait_s`` is of the jobs that wait now, None where none does; ``lost_s`` are the
    seconds of all runs of their jobs that were thrown away.
    """
    now = site.now
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for job in site.jobs.values():
        spec = job.spec
        row = found.get((spec.user, spec.vo))
        if row is None:
            row = found[spec.user, spec.vo] = {
                "user": spec.user, "vo": spec.vo, **dict.fromkeys(JOB_STATE_NAMES, 0),
                "busy_cpus": 0, "longest_wait_s": None, "lost_s": 0.0,
            }  # fmt: skip
        row[JOB_STATE_NAMES[job.state]] += 1
        row["lost_s"] += job.lost_s
        if job.machine >= 0:
            row["busy_cpus"] += job.cpus
        if job.state == QUEUED and (wait_s := job.wait_s(now)) is not None:
            row["longest_wait_s"] = max(row["longest_wait_s"] or 0.0, wait_s)
    return sorted(found.values(), key=lambda row: (-row["busy_cpus"], -row["queued"], row["user"]))
