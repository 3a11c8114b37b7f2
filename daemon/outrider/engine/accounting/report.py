"""Report of a run for replay, ingest and status, made from site and accounting."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import isnan
from typing import Any, TypeAlias

from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.distribution import Distribution, summary
from outrider.engine.accounting.energy import PURPOSES
from outrider.engine.state.site import Site

_J_PER_WH = 3600.0

OpenEnergy: TypeAlias = dict[int, tuple[float, float]]
"""Joules of current runs, and of them measured, by cluster number."""


def add_unfinished_overhead(
    accounting: Accounting, site: Site, end_s: float, run_s: Iterable[tuple[int, float]]
) -> None:
    """Count the overhead so far of jobs that are unfinished at the end of a trace.

    Args:
        accounting: of the run.
        site: of the run.
        end_s: end of the trace.
        run_s: (job, true run time) of those jobs that would have ended by themselves.
    """
    for number, seconds in run_s:
        job = site.jobs.get(number)
        if job is not None and job.submit_s is not None:
            accounting.overhead.add(max(0.0, end_s - job.submit_s - seconds))


def open_energy_j(accounting: Accounting, site: Site) -> OpenEnergy:
    """Return the joules so far of current runs, by cluster number.

    Returns:
        (all, of it measured by meters) of each cluster that has such runs.
    """
    machines = accounting.energy.machines
    joules: dict[int, tuple[float, float]] = {}
    for job in site.with_run:
        cluster = site.machine_cluster[job.machine]
        before, before_measured = joules.get(cluster, (0.0, 0.0))
        spent, measured = machines[job.machine].run_j(job, job.run_s(site.now), site.now)
        joules[cluster] = before + spent, before_measured + measured
    return joules


def energy_wh(
    accounting: Accounting, site: Site, open_j: OpenEnergy | None = None
) -> dict[str, float | None]:
    """Return watt-hours by purpose; None where watts or machine states are unknown.

    `open_j` is what `open_energy_j` returned, where that is known already.
    """
    if open_j is None:
        open_j = open_energy_j(accounting, site)
    joules = {purpose: sum(by_cluster) for purpose, by_cluster in accounting.energy.joules.items()}
    joules["open"] = sum(spent for spent, _ in open_j.values())
    return {p: None if isnan(joules[p]) else joules[p] / _J_PER_WH for p in PURPOSES}


def energy_measured_wh(
    accounting: Accounting, site: Site, open_j: OpenEnergy | None = None
) -> dict[str, float]:
    """Return the part of `energy_wh`, by purpose, that meters measured."""
    if open_j is None:
        open_j = open_energy_j(accounting, site)
    measured = accounting.energy.measured
    joules = {purpose: sum(by_cluster) for purpose, by_cluster in measured.items()}
    joules["open"] = sum(spent for _, spent in open_j.values())
    return {p: joules[p] / _J_PER_WH for p in PURPOSES}


def _never_started(site: Site, accounting: Accounting) -> dict[tuple[str, str], int]:
    never = dict(accounting.never_started)
    for key, n in site.job_counts.never_started.items():
        never[key] = never.get(key, 0) + n
    return never


def _waits(accounting: Accounting, site: Site) -> dict[str, Any]:
    never = _never_started(site, accounting)
    parts = dict(accounting.waits)
    for key in never:
        parts.setdefault(key, Distribution(accounting.exact))

    def grouped(position: int) -> dict[str, Any]:
        waits: defaultdict[str, list[Distribution]] = defaultdict(list)
        for key, part in parts.items():
            waits[key[position]].append(part)
        censored: Counter[str] = Counter()
        for key, n in never.items():
            censored[key[position]] += n
        return {name: summary(waits[name], censored[name]) for name in sorted(waits)}

    return {
        "all": summary(parts.values(), sum(never.values())),
        "by_class": grouped(0),
        "by_vo": grouped(1),
    }


def _work(accounting: Accounting) -> dict[str, Any]:
    """Return goodput and badput, CPU-seconds, of each class and of each VO."""
    good, bad = accounting.goodput, accounting.badput
    parts: dict[str, dict[str, dict[str, float]]] = {"by_class": {}, "by_vo": {}}
    for key in sorted(good.keys() | bad.keys()):
        for part, name in zip(parts.values(), key, strict=True):
            sums = part.setdefault(name, {"goodput": 0.0, "badput": 0.0})
            sums["goodput"] += good.get(key, 0.0)
            sums["badput"] += bad.get(key, 0.0)
    return parts


def report(
    site: Site, accounting: Accounting, longest_defer_s: float | None = None
) -> dict[str, Any]:
    """Return the measured part of one run's object in ``outrider replay --json``.

    Args:
        site: of the run.
        accounting: of the run.
        longest_defer_s: longest time for which a policy deferred a job; None: not reported.
    """
    unfinished, open_j = len(site.jobs), open_energy_j(accounting, site)
    return {
        "jobs": {
            "submitted": accounting.submitted,
            "completed": accounting.completed,
            "removed": accounting.removed,
            "unfinished": unfinished,
            "skipped": {},
        },
        "wait_s": _waits(accounting, site),
        "overhead_s": {"all": summary([accounting.overhead])},
        "bounded_slowdown": {"all": summary([accounting.slowdown])},
        "defer_s": {"max": longest_defer_s},
        "energy_wh": energy_wh(accounting, site, open_j),
        "energy_measured_wh": energy_measured_wh(accounting, site, open_j),
        "goodput_s": accounting.goodput_s,
        "badput_s": accounting.badput_s,
        "work_s": _work(accounting),
        "starts": accounting.starts,
        "evictions": accounting.evictions_by_reason(),
        "fairness": accounting.fairness.report(site.now),
        "utility": {"total": accounting.utility.total, "per_step": _per_step(site, accounting)},
    }


def _per_step(site: Site, accounting: Accounting) -> float | None:
    """Return the utility per second (Vengerov 2005, section 2); None before time has passed."""
    span_s = site.now - (accounting.begin_s or 0.0)
    return accounting.utility.total / span_s if span_s > 0 else None
