"""Figures of one window: those of the accounting, with energy as kWh, money and CO2."""

from collections.abc import Mapping
from math import isnan
from typing import Any, Final, NamedTuple

from outrider.engine.accounting.energy import PURPOSES
from outrider.model.localtime import HOUR_S
from outrider.report.past import Counted
from outrider.report.runs import Sums

# -- tariff ----------------------------------------------------------------------------------------
# Cost of energy: money and CO2, where a tariff is given; amounts as plain data.

_J_PER_KWH = 3.6e6


class Tariff(NamedTuple):
    """Cost of a kilowatt-hour, the same at every hour.

    Attributes:
        price_per_kwh: None: not known.
        currency: of the price.
        co2_g_per_kwh: grams; None: not known.
    """

    price_per_kwh: float | None = None
    currency: str = "EUR"
    co2_g_per_kwh: float | None = None

    def of(self, kwh: float | None) -> dict[str, float | None]:
        """Return an amount of energy as ``kwh``, ``money`` and ``co2_kg``; None where not known."""
        if kwh is None:
            return {"kwh": None, "money": None, "co2_kg": None}
        price, grams = self.price_per_kwh, self.co2_g_per_kwh
        return {
            "kwh": kwh,
            "money": None if price is None else kwh * price,
            "co2_kg": None if grams is None else kwh * grams / 1000.0,
        }


UNKNOWN: Final = Tariff()
"""Tariff without a price and without CO2."""


def kwh(joules: float) -> float | None:
    """Convert joules to kilowatt-hours; None for nan, which means unknown."""
    return None if isnan(joules) else joules / _J_PER_KWH


# -- figures ---------------------------------------------------------------------------------------


def figures(
    counted: Counted, targets: Mapping[str, float], tariff: Tariff
) -> dict[str, Any] | None:
    """Return the figures of a window; None if the journal does not cover any of it.

    Args:
        counted: the window.
        targets: fair shares by VO; empty: equal.
        tariff: what energy costs.
    """
    if counted.covered_s <= 0.0:
        return None
    report, runs = counted.report, counted.runs
    work_s = report["goodput_s"] + report["badput_s"]
    return {
        "jobs": {name: report["jobs"][name] for name in ("submitted", "completed", "removed")}
        | {"unfinished_at_end": report["jobs"]["unfinished"]},
        "starts": report["starts"],
        "wait_s": report["wait_s"]["all"],
        "overhead_s": report["overhead_s"]["all"],
        "bounded_slowdown": report["bounded_slowdown"]["all"],
        "goodput_h": report["goodput_s"] / HOUR_S,
        "badput_h": report["badput_s"] / HOUR_S,
        "waste_ratio": report["badput_s"] / work_s if work_s else None,
        "load_cpus": work_s / counted.covered_s,
        "evictions": report["evictions"],
        "energy": _energy(counted, tariff),
        "fairness": _fairness(counted.delivered_s, targets),
        "by_vo": _parts(runs.by_vo, report["wait_s"]["by_vo"], tariff),
        "by_class": _parts(runs.by_class, report["wait_s"]["by_class"], tariff),
        "by_machine_group": {
            name: {purpose: tariff.of(kwh(by_purpose[purpose])) for purpose in PURPOSES}
            for name, by_purpose in sorted(counted.joules.items())
        },
    }


def _energy(counted: Counted, tariff: Tariff) -> dict[str, Any]:
    """Return energy by purpose; `drawn` is the sum, less what runs drew before the window."""
    joules = {
        purpose: sum(by_purpose[purpose] for by_purpose in counted.joules.values())
        for purpose in PURPOSES
    }
    measured_wh, all_j = counted.report["energy_measured_wh"], sum(joules.values())
    measured_j = sum(measured_wh.values()) * HOUR_S
    return {
        "by_purpose": {purpose: tariff.of(kwh(joules[purpose])) for purpose in PURPOSES},
        "before_begin": tariff.of(kwh(counted.before_j)),
        "drawn": tariff.of(kwh(all_j - counted.before_j)),
        "measured_ratio": measured_j / all_j if all_j > 0.0 else None,
    }


def _fairness(delivered_s: Mapping[str, float], targets: Mapping[str, float]) -> dict[str, Any]:
    """Return F of the CPU time delivered in the window (Perez et al. 2008, equation 4)."""
    total = sum(delivered_s.values())
    owed = dict(targets) or {vo: 1.0 / len(delivered_s) for vo in delivered_s}
    listed = sorted(owed.keys() | delivered_s.keys())
    share = {vo: delivered_s.get(vo, 0.0) / total if total > 0.0 else None for vo in listed}
    utility = None
    if total > 0.0:
        deficit = max(w - delivered_s.get(vo, 0.0) / total for vo, w in owed.items())
        utility = 1.0 - max(0.0, deficit) / max(owed.values())
    return {
        "utility": utility,
        "share": share,
        "target": {vo: owed.get(vo, 0.0) for vo in listed},
        "targets_given": bool(targets),
    }


def _parts(
    sums: Mapping[str, Sums], waits: Mapping[str, Any], tariff: Tariff
) -> dict[str, dict[str, Any]]:
    """Return the figures of each VO, or of each class."""
    return {
        name: run_sums(sums.get(name, Sums()), tariff) | {"wait_s": waits.get(name)}
        for name in sorted(sums.keys() | waits.keys())
    }


def run_sums(sums: Sums, tariff: Tariff) -> dict[str, Any]:
    """Return the sums of runs that ended, with the fields of the report."""
    return {
        "completed": sums.completed,
        "thrown_away": sums.thrown_away,
        "goodput_h": sums.goodput_s / HOUR_S,
        "badput_h": sums.badput_s / HOUR_S,
        "goodput": tariff.of(kwh(sums.goodput_j)),
        "badput": tariff.of(kwh(sums.badput_j)),
    }
