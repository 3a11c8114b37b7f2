"""Views of users with jobs now, and of VOs since the daemon began to count."""

from collections.abc import Sequence
from itertools import accumulate
from math import ceil
from typing import Any

from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.distribution import WAIT_BOUNDS_S
from outrider.engine.state.site import Site
from outrider.model.jobs import HELD_STATE, JOB_STATE_NAMES, QUEUED, RUNNING, SUSPENDED_STATE
from outrider.service.shapes.site import UserRow, VoRow, WaitQuantile
from outrider.service.shapes.values import UserName, VoName

# -- users -----------------------------------------------------------------------------------------
# Users who have jobs now: who waits, who runs, what was thrown away of theirs.


def user_rows(site: Site, apart: bool = False) -> list[UserRow]:
    """Return a row for each user of each VO, the most CPUs in use first.

    A user who is named by several users' logs has a row for each if they are kept `apart`.

    Of the jobs that wait now, ``wait_p50_s``, ``wait_p95_s`` and ``longest_wait_s`` tell how long
    they have waited so far, None where none does; ``lost_s`` are the seconds of all runs of their
    jobs that were thrown away.
    """
    now, most = site.now, len(JOB_STATE_NAMES)
    # the four states, CPUs, waits, seconds lost: of 100,000 jobs each step counts
    found: dict[tuple[str, str, str], list[Any]] = {}
    for job in site.jobs.values():
        spec, state = job.spec, job.state
        key = spec.user, spec.vo, spec.reporter if apart else ""
        row = found.get(key)
        if row is None:
            row = found[key] = [0] * most + [0, [], 0.0]
        row[state] += 1
        row[-1] += job.lost_s
        if job.machine >= 0:
            row[-3] += job.cpus
        if state == QUEUED:
            wait_s = job.wait_s(now)
            if wait_s is not None:
                row[-2].append(wait_s)
    rows = []
    for (name, vo, reporter), (*jobs, cpus, waits_s, lost_s) in found.items():
        median_s, p95_s, longest_s = _quantiles(waits_s)
        user = UserName(name, reporter)
        rows.append(
            UserRow(
                user=user,
                vo=VoName(vo, user),
                queued=jobs[QUEUED],
                running=jobs[RUNNING],
                suspended=jobs[SUSPENDED_STATE],
                held=jobs[HELD_STATE],
                busy_cpus=cpus,
                wait_p50_s=median_s,
                wait_p95_s=p95_s,
                longest_wait_s=longest_s,
                lost_s=lost_s,
            )
        )
    return sorted(rows, key=lambda row: (-row.busy_cpus, -row.queued))


def _quantiles(waits_s: Sequence[float]) -> list[float | None]:
    """Return the median, the 95th percentile and the maximum of waits."""
    if not waits_s:
        return [None, None, None]
    in_order, n = sorted(waits_s), len(waits_s)
    return [in_order[ceil(q * n) - 1] for q in (0.5, 0.95, 1.0)]


# -- vo rows ---------------------------------------------------------------------------------------
# VOs since the daemon began to count: shares and targets, waits, and wasted CPU time.


def vo_rows(accounting: Accounting, now_s: float) -> list[VoRow]:
    """Return a row for each VO that has a target or had a job, in no fixed order.

    Waits are seconds from submission to first start; what ran is CPU-seconds of runs that ended.
    """
    fairness = accounting.fairness.report(now_s)
    share, target = fairness["share"], fairness["target"]
    buckets: dict[str, list[int]] = {}
    totals_s: dict[str, float] = {}
    for (_, vo), waits in accounting.waits.items():
        before = buckets.get(vo, [0] * len(waits.buckets))
        buckets[vo] = [n + more for n, more in zip(before, waits.buckets, strict=True)]
        totals_s[vo] = totals_s.get(vo, 0.0) + waits.total
    kept, thrown_away = _by_vo(accounting.goodput), _by_vo(accounting.badput)
    names = dict.fromkeys([*share, *target, *buckets, *kept, *thrown_away])
    return [
        VoRow(
            vo=VoName(vo),
            share=share.get(vo),
            target=target.get(vo),
            started=sum(buckets.get(vo, ())),
            wait_mean_s=totals_s[vo] / sum(buckets[vo]) if sum(buckets.get(vo, ())) else None,
            wait_p50_s=quantile(0.5, buckets.get(vo, ())),
            wait_p95_s=quantile(0.95, buckets.get(vo, ())),
            kept_cpu_s=kept.get(vo, 0.0),
            thrown_away_cpu_s=thrown_away.get(vo, 0.0),
        )
        for vo in names
    ]


def quantile(
    q: float, buckets: Sequence[int], bounds: Sequence[float] = WAIT_BOUNDS_S
) -> WaitQuantile | None:
    """Return the bucket of a quantile, and its place in it for evenly spread values.

    Args:
        q: between 0 and 1.
        buckets: how many values in each; one more than there are bounds.
        bounds: upper bounds of the buckets, ascending and above 0.

    Returns:
        The bucket, with no upper bound and no estimate above the highest bound; None where there is
        no value.
    """
    rank = q * sum(buckets)
    low = 0.0
    for n, up_to_here, high in zip(buckets, accumulate(buckets), (*bounds, None), strict=False):
        if n and up_to_here >= rank:
            if high is None:
                return WaitQuantile(low=low, about=None, high=None)
            part = 1.0 - (up_to_here - rank) / n
            return WaitQuantile(low=low, about=low + part * (high - low), high=high)
        low = low if high is None else high
    return None


def _by_vo(cpu_s: dict[tuple[str, str], float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for (_, vo), some in cpu_s.items():
        found[vo] = found.get(vo, 0.0) + some
    return found
