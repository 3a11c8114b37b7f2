"""The status: what the daemon saw and thinks of it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from outrider import __version__
from outrider.engine.accounting.distribution import WAIT_BOUNDS_S
from outrider.engine.accounting.report import report
from outrider.engine.scheduling.policy_runner import Seat
from outrider.service.core import Core
from outrider.service.views.counts import job_counts, machine_counts
from outrider.service.views.sentence import NOT_ESTIMATED, measured_ratio, sentence

_ALL_MEASURED = 1.0 - 1e-9


def status(core: Core, extra: dict[str, Any]) -> dict[str, Any]:
    """The object of ``/api/v1/status``; `extra` is what the core does not know."""
    accounting, site = core.accounting, core.site
    figures = report(site, accounting)
    buckets = [0] * (len(WAIT_BOUNDS_S) + 1)
    for waits in accounting.waits.values():
        buckets = [a + b for a, b in zip(buckets, waits.buckets, strict=True)]
    counts = machine_counts(core)
    machines: Counter[str] = Counter()
    for (state, _), n in counts.items():
        machines[state] += n
    shown = {
        "version": __version__,
        "mode": core.config.mode,
        "timezone": core.config.timezone,
        "since_s": accounting.begin_s,
        "now_s": core.now_s,
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
        "clusters": _clusters(core, counts),
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
        "set_aside": dict(core.intake.set_aside),
        "gate": _gate(core),
    }
    return {**shown, "sentence": sentence(core, figures), **extra}


def _power_source(figures: dict[str, Any]) -> str:
    """Where the energy of jobs comes from: ``table``, ``measured``, ``mixed`` or ``unknown``."""
    if figures["energy_wh"]["goodput"] is None:
        return "unknown"
    ratio = measured_ratio(figures)
    if not ratio:
        return "table"
    return "measured" if ratio > _ALL_MEASURED else "mixed"


def _clusters(core: Core, counts: Mapping[tuple[str, int], int]) -> list[dict[str, Any]]:
    site = core.site
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
        "calibration": seat.calibration(core.now_s),
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
