"""Run reports made up by hand: a world in which everything the paper claims is so."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from outrider_lab.papers.mcgough.grid import FULL, OPTIONS, Size, policies
from outrider_lab.papers.mcgough.reproduction import Reproduction
from outrider_lab.running.run_spec import PolicySpec

Figures = tuple[float, float, float]
"""Useful MWh, wasted MWh, mean overhead in minutes."""

RANDOM: Figures = (37.4, 83.6, 13.5)
WEEKS, MONTHS = 52, 12
OPTION_SETTINGS = {name for settings in OPTIONS.values() for name in settings}
_MONTH_S = 365 * 86_400.0 / MONTHS

CLUSTER = {
    0.01: (27.0, 30.0, 2.27), 0.05: (28.0, 55.5, 1.02), 0.1: (29.0, 57.0, 0.90),
    0.2: (31.0, 64.0, 0.89), 0.4: (34.0, 68.0, 0.88), 0.6: (35.5, 70.5, 0.88),
    0.8: (37.0, 77.0, 0.90),
}  # fmt: skip
COMPUTER = {
    0.01: (30.0, 45.0, 1.30), 0.05: (31.0, 59.0, 1.00), 0.1: (32.0, 62.0, 0.80),
    0.2: (33.0, 63.0, 0.76), 0.4: (34.0, 65.0, 0.74), 0.6: (35.0, 66.0, 0.735),
    0.8: (36.0, 67.0, 0.73),
}  # fmt: skip
LEVELS = {
    "cluster": CLUSTER,
    "computer": COMPUTER,
    "cluster_week": {e: (g + 3, b + 7, o + 0.05) for e, (g, b, o) in COMPUTER.items()},
    "system": {e: (37.0, 77.0 + e, 1.17 + o / 10) for e, (_, _, o) in COMPUTER.items()},
}


def as_the_paper(policy: PolicySpec) -> Figures:
    """Return figures that the paper's section 7 reports, or that agree with it."""
    settings = dict(policy.settings)
    if policy.policy == "random_match":
        return RANDOM
    if not settings:
        return 26.0, 40.0, 13.0
    useful, wasted, overhead = LEVELS[settings["level"]][settings["epsilon"]]
    away = abs(0.8 - settings["sigma"])
    useful += away * (8.0 if settings["epsilon"] < 0.5 else 1.0)
    if "history_n" in settings:
        overhead -= 0.05
        wasted += 6.0 if settings["history_weights"] == "plain" else 12.0
    return useful, wasted, overhead * RANDOM[2]


def nothing_helps(policy: PolicySpec) -> Figures:
    """Every policy and setting is as good as random."""
    return RANDOM


def everything_matters(policy: PolicySpec) -> Figures:
    """Return where the paper sees no effect, there is one."""
    useful, wasted, overhead = RANDOM
    settings = dict(policy.settings)
    factor = 1.0 + settings.get("sigma", 0.0) + settings.get("epsilon", 0.0)
    if settings.keys() & OPTION_SETTINGS:
        factor *= 1.3
    return useful * factor, wasted * factor, overhead * factor


def report(policy: PolicySpec, figures: Figures, learns: bool = True) -> dict[str, Any]:
    """A run report: evictions fall over the year, and the cluster level worsens in autumn."""
    useful, wasted, overhead = figures
    settings = dict(policy.settings)
    by_month, by_week = [], []
    is_cluster = learns and settings.get("level") == "cluster"
    for month in range(MONTHS):
        autumn = 2.0 if is_cluster and month >= 8 else 1.0
        by_month.append(_stretch(month * _MONTH_S, _MONTH_S, useful, wasted * autumn, MONTHS, 50))
    for week in range(WEEKS):
        evicted = 60 - week if is_cluster else 60
        by_week.append(_stretch(week * 604_800.0, 604_800.0, useful, wasted, WEEKS, evicted))
    return {
        "settings": settings,
        "reconsider_s": settings.get("reconsider_s", 3600.0),
        "energy_wh": {"goodput": useful * 1e6, "badput": wasted * 1e6},
        "overhead_s": {
            "all": {k: overhead * 60 * n for n, k in enumerate(("mean", "p95", "p99", "max"), 1)}
        },
        "jobs": {"unfinished": 0},
        "evictions": {"owner": 50, "reboot": 10, "killed": 20},
        "starts": 200,
        "by_month": by_month,
        "by_week": by_week,
    }


def _stretch(
    start_s: float, length_s: float, useful: float, wasted: float, parts: int, evicted: int
) -> dict[str, Any]:
    return {
        "start_s": start_s, "end_s": start_s + length_s, "goodput_wh": useful * 1e6 / parts,
        "badput_wh": wasted * 1e6 / parts, "starts": 100, "evictions": evicted + 20, "killed": 20,
        "completed": 40,
    }  # fmt: skip


def years(
    world: Callable[[PolicySpec], Figures],
    seeds: range = range(1, 5),
    size: Size = FULL,
    learns: bool = True,
) -> dict[int, dict[PolicySpec, Any]]:
    """Reports by seed and policy; years differ by a few parts in ten thousand."""
    out: dict[int, dict[PolicySpec, Any]] = {}
    for seed in seeds:
        out[seed] = {}
        for policy in policies(size):
            useful, wasted, overhead = world(policy)
            near = 1 + 2e-4 * seed
            figures = (useful * near, wasted * near, overhead * near)
            out[seed][policy] = report(policy, figures, learns)
    return out


def summed_up(
    size: Size, seeds: Sequence[int], years: Mapping[int, Mapping[PolicySpec, Any]],
    failed: Sequence[dict[str, str]] = (),
) -> dict[str, Any]:  # fmt: skip
    """The reproduction of these reports."""
    by_policy: dict[PolicySpec, dict[int, Any]] = {}
    for seed, reports in years.items():
        for policy, one in reports.items():
            by_policy.setdefault(policy, {})[seed] = one
    return Reproduction(size, seeds).sum_up(by_policy) | {"failed": list(failed)}
