"""Users who have jobs now: who waits, who runs, what was thrown away of theirs."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from outrider.engine.state.site import Site
from outrider.model.jobs import JOB_STATE_NAMES, QUEUED


def user_rows(site: Site) -> list[dict[str, Any]]:
    """A row for each user of each VO; those with the most CPUs in use first.

    Of the jobs that wait now, ``wait_p50_s``, ``wait_p95_s`` and ``longest_wait_s`` tell how long
    they have waited so far, None where none does; ``lost_s`` are the seconds of all runs of their
    jobs that were thrown away.
    """
    now, names, most = site.now, JOB_STATE_NAMES, len(JOB_STATE_NAMES)
    # the four states, CPUs, waits, seconds lost: of 100,000 jobs each step counts
    found: dict[tuple[str, str], list[Any]] = {}
    for job in site.jobs.values():
        spec, state = job.spec, job.state
        row = found.get((spec.user, spec.vo))
        if row is None:
            row = found[spec.user, spec.vo] = [0] * most + [0, [], 0.0]
        row[state] += 1
        row[-1] += job.lost_s
        if job.machine >= 0:
            row[-3] += job.cpus
        if state == QUEUED:
            wait_s = job.wait_s(now)
            if wait_s is not None:
                row[-2].append(wait_s)
    waits = ("wait_p50_s", "wait_p95_s", "longest_wait_s")
    fields = ("user", "vo", *names, "busy_cpus", *waits, "lost_s")
    rows = [
        dict(zip(fields, (*who, *row, *_quantiles(waits_s), lost_s), strict=True))
        for who, (*row, waits_s, lost_s) in found.items()
    ]
    return sorted(rows, key=lambda row: (-row["busy_cpus"], -row["queued"]))


def _quantiles(waits_s: Sequence[float]) -> list[float | None]:
    """Half and 95 % of them are no longer than the first two, none is longer than the last."""
    if not waits_s:
        return [None, None, None]
    in_order, n = sorted(waits_s), len(waits_s)
    return [in_order[ceil(q * n) - 1] for q in (0.5, 0.95, 1.0)]
