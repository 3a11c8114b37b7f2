"""The status: what the daemon saw and thinks of it."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from outrider import __version__
from outrider.acting.gate import ACT, ACTING_MODES, BUDGET, STALE
from outrider.engine.accounting.distribution import WAIT_BOUNDS_S
from outrider.engine.accounting.report import report
from outrider.engine.scheduling.policy_runner import PolicyRunner
from outrider.service.core.core import Core
from outrider.service.views.counts import job_counts, machine_counts
from outrider.service.views.sentence import measured_ratio, sentence
from outrider.service.views.twin import NOT_ESTIMATED

_ALL_MEASURED = 1.0 - 1e-9


def status(core: Core, extra: dict[str, Any], saving: str = NOT_ESTIMATED) -> dict[str, Any]:
    """The object of ``/api/v1/status``.

    Args:
        core: what it shows.
        extra: fields of what the core does not know.
        saving: what the twin says, in words.
    """
    accounting, site = core.accounting, core.site
    figures = report(site, accounting)
    buckets = [0] * (len(WAIT_BOUNDS_S) + 1)
    for waits in accounting.waits.values():
        buckets = [a + b for a, b in zip(buckets, waits.buckets, strict=True)]
    jobs = job_counts(core)
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
            **jobs,
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
        "discipline": {
            "name": core.discipline.name,
            "source": core.discipline.source,
            "why": core.discipline.why,
        },
        "policies": [
            *(_policy(core, runner) for runner in core.runners),
            *(_policy_without_runner(*lost) for lost in core.policies_without_runner.items()),
        ],
        "saving": {"text": saving, "wh": None},
        "adapters": [_source(core, label, jobs["running"]) for label in core.sources],
        "repairs": dict(core.merger.normaliser.repairs),
        "late": core.merger.late,
        "set_aside": dict(core.merger.set_aside),
        "names": {
            kind: {"named": len(names), "most": names.most, "folded": names.folded}
            for kind, names in core.names.by_kind.items()
        },
        "gate": _gate(core.decision_log.verdicts()),
    }
    return {**shown, "sentence": sentence(core, figures, saving), **extra}


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


def _policy(core: Core, runner: PolicyRunner) -> dict[str, Any]:
    asked = runner.agreed + runner.disagreed
    return {
        "name": runner.name,
        "role": "acting" if runner.acting or core.config.mode in ACTING_MODES else "shadow",
        "description": runner.policy.description,
        "discipline": runner.discipline,
        "decisions": runner.decisions,
        "by_action": {"start": runner.starts, "defer": runner.decisions - runner.starts},
        "agreed": runner.agreed,
        "disagreed": runner.disagreed,
        "agreement_ratio": runner.agreed / asked if asked else None,
        "reward_mean": runner.reward_sum / runner.reward_n if runner.reward_n else None,
        "reward_n": runner.reward_n,
        "longest_deferral_s": runner.longest_ended_deferral_s,
        "reconsider_s": runner.reconsider_s,
        "broken": runner.broken or None,
        "refused": dict(runner.refused),
        "learned": runner.learned(core.site),
        "calibration": runner.calibration(core.now_s),
        "deferred": runner.deferrals.report(),
        "gate": _gate(core.decision_log.gates[runner.name].verdicts),
    }


def _policy_without_runner(name: str, why: str) -> dict[str, Any]:
    """A policy that could not be loaded or made: it decided nothing."""
    return {
        "name": name,
        "role": "shadow",
        "description": "",
        "discipline": None,
        "decisions": 0,
        "by_action": {"start": 0, "defer": 0},
        "agreed": 0,
        "disagreed": 0,
        "agreement_ratio": None,
        "reward_mean": None,
        "reward_n": 0,
        "longest_deferral_s": None,
        "reconsider_s": None,
        "broken": why,
        "refused": {},
        "learned": None,
        "calibration": None,
        "deferred": None,
        "gate": _gate({}),
    }


def _source(core: Core, label: str, running: int) -> dict[str, Any]:
    source = core.sources[label]
    return {
        "label": label,
        "type": source.kind,
        "up": source.up,
        "input_age_s": source.age_s,
        "events": dict(core.merger.counts[label]),
        "duplicates": core.merger.duplicates[label],
        "rejected": dict(source.rejected),
        "ignored": dict(source.ignored),
        "note": source.note,
        "problem": source.down_because,
        "silent": source.silent(time.time()) if running else {},
        "inferred": source.inferred,
    }


def _gate(verdicts: Mapping[str, int]) -> dict[str, Any]:
    return {
        "would_act": verdicts.get(ACT, 0),
        "would_refuse": {cause: verdicts.get(cause, 0) for cause in (STALE, BUDGET)},
    }
