"""What the daemon shows of itself: the answers of the HTTP interface, made from the core.

Nothing here asks a batch system anything; every figure is one the core already holds.
"""

import datetime as dt
from collections import Counter
from typing import Any
from zoneinfo import ZoneInfo

from outrider import __version__
from outrider.engine.distribution import WAIT_BOUNDS_S
from outrider.engine.report import energy_wh, report
from outrider.engine.seat import NO_MACHINE, Seat
from outrider.model.decisions import KEEP, NOWHERE
from outrider.model.jobs import JOB_STATE_NAMES, QUEUED, Job
from outrider.service.core import Core
from outrider.service.machines_shown import machine_state

NOT_ESTIMATED = "not estimated yet"


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


def status(core: Core, extra: dict[str, Any]) -> dict[str, Any]:
    """The object of ``/api/v1/status``; `extra` is what only the supervisor knows."""
    accounting, site = core.accounting, core.site
    figures = report(site, accounting, None)
    buckets = [0] * (len(WAIT_BOUNDS_S) + 1)
    for waits in accounting.waits.values():
        buckets = [a + b for a, b in zip(buckets, waits.buckets, strict=True)]
    machines: Counter[str] = Counter()
    for (state, _), n in machine_counts(core).items():
        machines[state] += n
    shown = {
        "version": __version__,
        "mode": core.config.mode,
        "timezone": core.config.timezone,
        "since_s": accounting.begin_s,
        "now_s": core.site.now,
        "jobs": {
            **job_counts(core),
            "submitted": accounting.submitted,
            "completed": accounting.completed,
            "removed": accounting.removed,
        },
        "wait_s": figures["wait_s"],
        "wait_buckets_s": [
            [bound, n] for bound, n in zip((*WAIT_BOUNDS_S, None), buckets, strict=True)
        ],
        "machines": {s: machines[s] for s in ("busy", "free", "owner", "asleep", "closed")},
        "clusters": _clusters(core),
        "energy_wh": figures["energy_wh"],
        "power_source": "table" if figures["energy_wh"]["goodput"] is not None else "unknown",
        **{k: figures[k] for k in ("goodput_s", "badput_s", "starts", "evictions", "fairness")},
        "policies": [_policy(core, seat) for seat in core.seats],
        "saving": {"text": NOT_ESTIMATED, "wh": None},
        "adapters": [_source(core, label) for label in core.sources],
        "repairs": dict(core.intake.tracker.repairs),
        "late": core.intake.late,
        "gate": _gate(core),
    }
    return {**shown, "sentence": sentence(core, figures), **extra}


def sentence(core: Core, figures: dict[str, Any]) -> str:
    """What Outrider saw and thinks, in one sentence."""
    accounting = core.accounting
    begin_s = accounting.begin_s
    since = "now" if begin_s is None else f"{_moment(core, begin_s):%d %b %Y %H:%M}"
    wait_s = figures["wait_s"]["all"]["mean"]
    wait = "no job started yet" if wait_s is None else f"mean wait {_duration(wait_s)}"
    energy = figures["energy_wh"]
    if energy["goodput"] is None:
        power = "energy unknown (no watts configured)"
    else:
        power = (
            f"{energy['goodput'] / 1000:,.1f} kWh useful and "
            f"{energy['badput'] / 1000:,.1f} kWh wasted"
        )
    views = "; ".join(_agreement(seat) for seat in core.seats) or "no policy is asked"
    return (
        f"{core.config.mode} since {since}: {accounting.submitted:,} jobs seen, {wait}, {power}; "
        f"{views}; saving: {NOT_ESTIMATED}"
    )


def _agreement(seat: Seat) -> str:
    if seat.broken:
        return seat.broken
    asked = seat.agreed + seat.disagreed
    if not asked:
        return f"{seat.name} has not been compared with a start yet"
    return (
        f"{seat.name} would have chosen the same cluster in {seat.agreed / asked:.0%} of "
        f"{asked:,} starts"
    )


def _clusters(core: Core) -> list[dict[str, Any]]:
    site = core.site
    counts = machine_counts(core)
    return [
        {
            "name": name,
            "machines": len(site.members[c]),
            "free": counts.get(("free", c), 0),
            "busy": counts.get(("busy", c), 0),
            "owner": counts.get(("owner", c), 0),
            "active_w": site.active_w[c],
        }
        for c, name in enumerate(site.cluster_names)
    ]


def _policy(core: Core, seat: Seat) -> dict[str, Any]:
    asked = seat.agreed + seat.disagreed
    return {
        "name": seat.name,
        "role": "acting" if seat.acting else "shadow",
        "description": seat.policy.description,
        "decisions": seat.decisions,
        "by_action": {"start": seat.starts, "keep": seat.decisions - seat.starts},
        "agreed": seat.agreed,
        "disagreed": seat.disagreed,
        "agreement_ratio": seat.agreed / asked if asked else None,
        "reward_mean": seat.reward_sum / seat.reward_n if seat.reward_n else None,
        "reward_n": seat.reward_n,
        "longest_hold_s": seat.longest_hold_s,
        "reconsider_s": seat.reconsider_s,
        "broken": seat.broken or None,
        "learned": None if seat.broken else seat.policy.learned(core.site),
    }


def _source(core: Core, label: str) -> dict[str, Any]:
    source = core.sources[label]
    return {
        "label": label,
        "type": source.kind,
        "up": source.up,
        "input_age_s": source.age_s,
        "events": dict(core.intake.counts[label]),
        "duplicates": core.intake.duplicates[label],
        "rejected": dict(source.rejected),
        "ignored": dict(source.ignored),
        "note": source.note,
        "inferred": source.inferred,
    }


def _gate(core: Core) -> dict[str, Any]:
    verdicts = core.gate.verdicts
    return {
        "would_act": verdicts["act"],
        "would_refuse": {cause: verdicts[cause] for cause in ("stale_input", "budget")},
    }


# -- one job ------------------------------------------------------------------------------------


def explain(core: Core, name: str, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The object of ``/api/v1/explain/JOB``; None for a job that is not here.

    Args:
        core: the daemon's.
        name: the job.
        rows: its ledger rows, oldest first. Scores, propensities and sequence numbers are theirs.
    """
    track = core.intake.tracker.jobs.get(name)
    job = None if track is None else core.site.jobs.get(track.number)
    if job is None:
        return None
    latest = {row["policy"]: row for row in rows}
    policies = [
        _standing(core, seat, job, latest.get(seat.name, {}))
        for seat in core.seats
        if not seat.broken
    ]
    waiting_s = None if job.submit_s is None else core.site.now - job.submit_s
    return {
        "job": name,
        "mode": core.config.mode,
        "source": "daemon",
        "state": JOB_STATE_NAMES[job.state],
        "sentence": _why(core, name, job, policies),
        "waiting_s": waiting_s if job.state == QUEUED else None,
        "since_s": job.submit_s,
        "policies": policies,
        "decisions": rows,
    }


def explain_from_rows(mode: str, name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The same for a job that is gone, from its ledger rows (oldest first, at least one)."""
    last = rows[-1]
    return {
        "job": name,
        "mode": mode,
        "source": "ledger",
        "state": None,
        "sentence": f"{name} is not in the queue any more; the last decision about it was "
        f"{last['policy']}: {last['action']} ({last['reason']}).",
        "waiting_s": None,
        "since_s": None,
        "policies": [],
        "decisions": rows,
    }


def _standing(core: Core, seat: Seat, job: Job, row: dict[str, Any]) -> dict[str, Any]:
    standing = seat.waiting.get(job.number)
    place = NOWHERE if standing is None else standing.cluster
    return {
        "name": seat.name,
        "action": None if standing is None else standing.action or None,
        "reason": None if standing is None else standing.reason or None,
        "cluster": None if place == NOWHERE else core.site.cluster_names[place],
        "until_s": seat.next_look_s(job.number),
        "decided_s": row.get("time_s"),
        "seq": row.get("seq"),
        "scores": row.get("scores") or {},
        "propensity": row.get("propensity"),
        "explanation": seat.policy.explain(job, core.site),
    }


def _why(core: Core, name: str, job: Job, policies: list[dict[str, Any]]) -> str:
    state = JOB_STATE_NAMES[job.state]
    if state != "queued":
        where = ""
        if job.machine >= 0:
            where = f" on {core.intake.tracker.machine_names[job.machine]}"
        return f"{name} is {state}{where}."
    if core.site.free_total == 0:
        reason = "no machine is free that Outrider knows of"
    else:
        reason = f"{core.site.free_total} machines are free; the batch system has not started it"
    wishes = []
    for policy in policies:
        if policy["reason"] == NO_MACHINE:
            wishes.append(f"{policy['name']} waits for a machine")
        elif policy["action"] == KEEP:
            until = policy["until_s"]
            look = "" if until is None else f", next look {_moment(core, until):%d %b %H:%M}"
            wishes.append(f"{policy['name']} would keep it queued ({policy['reason']}{look})")
        elif policy["action"]:
            wishes.append(f"{policy['name']} would start it on {policy['cluster']}")
    thought = f" In {core.config.mode}: {'; '.join(wishes)}." if wishes else ""
    return f"{name} waits: {reason}.{thought}"


# -- lists --------------------------------------------------------------------------------------


def jobs(core: Core, limit: int, state: str | None) -> dict[str, Any]:
    """The object of ``/api/v1/jobs``."""
    tracker, site = core.intake.tracker, core.site
    rows: list[dict[str, Any]] = []
    total = 0
    for name, track in tracker.jobs.items():
        job = site.jobs.get(track.number)
        if job is None or (state is not None and JOB_STATE_NAMES[job.state] != state):
            continue
        total += 1
        if len(rows) < limit:
            rows.append(_job_row(core, name, job))
    return {"mode": core.config.mode, "now_s": site.now, "jobs": rows, "total": total}


def _job_row(core: Core, name: str, job: Job) -> dict[str, Any]:
    site, on = core.site, job.machine >= 0
    queued = JOB_STATE_NAMES[job.state] == "queued"
    return {
        "job": name,
        "state": JOB_STATE_NAMES[job.state],
        "user": job.spec.user,
        "vo": job.spec.vo,
        "class": job.spec.job_class,
        "cpus": job.spec.cpus,
        "submit_s": job.submit_s,
        "waiting_s": site.now - job.submit_s if queued and job.submit_s is not None else None,
        "machine": core.intake.tracker.machine_names[job.machine] if on else None,
        "run_s": job.run_s(site.now) if on else None,
        "runs": job.runs,
        "lost_s": job.consumed_s,
        "standing": {
            seat.name: {"action": standing.action, "reason": standing.reason}
            for seat in core.seats
            if (standing := seat.waiting.get(job.number)) is not None
        },
    }


def machines(core: Core, limit: int) -> dict[str, Any]:
    """The object of ``/api/v1/machines``."""
    site, names = core.site, core.intake.tracker.machine_names
    rows = [
        {
            "machine": names[m],
            "cluster": site.cluster_names[site.machine_cluster[m]],
            "state": machine_state(core, m),
            "cpus": site.cpus[m],
            "busy_cpus": site.busy[m],
            "active_w": spec.active_w,
            "inferred": spec.inferred,
        }
        for m, spec in enumerate(site.specs)
        if spec is not None
    ]
    return {
        "mode": core.config.mode,
        "now_s": site.now,
        "machines": rows[:limit],
        "total": len(rows),
    }


def utility(core: Core) -> dict[str, Any]:
    """The object of ``/api/v1/utility``: what a broker ranks sites by."""
    figures = report(core.site, core.accounting, None)
    return {
        "mode": core.config.mode,
        "now_s": core.site.now,
        "site_utility": {
            "free_machines": core.site.free_total,
            "queued_jobs": job_counts(core)["queued"],
            "mean_wait_s": figures["wait_s"]["all"]["mean"],
            "fairness": figures["fairness"]["windowed"],
            "energy_wh": energy_wh(core.accounting, core.site),
        },
    }


def _moment(core: Core, time_s: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(time_s, ZoneInfo(core.config.timezone))


def _duration(seconds: float) -> str:
    for size, unit in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
