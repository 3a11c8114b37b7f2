"""The status: what the daemon saw and thinks of it, made from the core.

Nothing here asks a batch system anything; every figure is one the core already holds.
"""

import datetime as dt
from collections import Counter
from typing import Any
from zoneinfo import ZoneInfo

from outrider import __version__
from outrider.engine.accounting.distribution import WAIT_BOUNDS_S
from outrider.engine.accounting.report import report
from outrider.engine.scheduling.policy_runner import Seat
from outrider.model.jobs import JOB_STATE_NAMES
from outrider.service.core import Core
from outrider.service.machines_shown import machine_state

NOT_ESTIMATED = "not estimated yet"
_ALL_MEASURED = 1.0 - 1e-9


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
        "energy_measured_wh": figures["energy_measured_wh"],
        "energy_measured_ratio": measured_ratio(figures),
        "power_source": _power_source(figures),
        **{
            k: figures[k]
            for k in ("goodput_s", "badput_s", "utility", "starts", "evictions", "fairness")
        },
        "policies": [_policy(core, seat) for seat in core.seats],
        "saving": {"text": NOT_ESTIMATED, "wh": None},
        "adapters": [_source(core, label) for label in core.sources],
        "repairs": dict(core.intake.tracker.repairs),
        "late": core.intake.late,
        "gate": _gate(core),
    }
    return {**shown, "sentence": sentence(core, figures), **extra}


def measured_ratio(figures: dict[str, Any]) -> float | None:
    """How much of the energy that is known was measured by meters; None if none is known."""
    known_wh = {p: wh for p, wh in figures["energy_wh"].items() if wh is not None}
    total_wh = sum(known_wh.values())
    if not total_wh:
        return None
    return float(sum(figures["energy_measured_wh"][p] for p in known_wh) / total_wh)


def _power_source(figures: dict[str, Any]) -> str:
    """Where the energy of jobs comes from: ``table``, ``measured``, ``mixed`` or ``unknown``."""
    if figures["energy_wh"]["goodput"] is None:
        return "unknown"
    ratio = measured_ratio(figures)
    if not ratio:
        return "table"
    return "measured" if ratio > _ALL_MEASURED else "mixed"


def sentence(core: Core, figures: dict[str, Any]) -> str:
    """What Outrider saw and thinks, in one sentence."""
    accounting = core.accounting
    begin_s = accounting.begin_s
    since = "now" if begin_s is None else f"{moment(core, begin_s):%d %b %Y %H:%M}"
    wait_s = figures["wait_s"]["all"]["mean"]
    wait = "no job started yet" if wait_s is None else f"mean wait {_duration(wait_s)}"
    energy = figures["energy_wh"]
    if energy["goodput"] is None or energy["badput"] is None:
        power = "energy unknown (no watts configured)"
    else:
        power = (
            f"{energy['goodput'] / 1000:,.1f} kWh useful and "
            f"{energy['badput'] / 1000:,.1f} kWh wasted"
        )
        if measured := measured_ratio(figures):
            power += f" (of it measured: {measured:.0%})"
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
        "discipline": seat.discipline,
        "decisions": seat.decisions,
        "by_action": {"start": seat.starts, "defer": seat.decisions - seat.starts},
        "agreed": seat.agreed,
        "disagreed": seat.disagreed,
        "agreement_ratio": seat.agreed / asked if asked else None,
        "reward_mean": seat.reward_sum / seat.reward_n if seat.reward_n else None,
        "reward_n": seat.reward_n,
        "longest_hold_s": seat.longest_hold_s,
        "reconsider_s": seat.reconsider_s,
        "broken": seat.broken or None,
        "refused": dict(seat.refused),
        "learned": seat.learned(core.site),
        "calibration": seat.calibration(core.site.now),
        "held": seat.holds.report(),
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


def moment(core: Core, time_s: float) -> dt.datetime:
    """An event time on the site's wall clock."""
    return dt.datetime.fromtimestamp(time_s, ZoneInfo(core.config.timezone))


def _duration(seconds: float) -> str:
    for size, unit in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
