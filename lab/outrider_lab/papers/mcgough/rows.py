"""Rows from run reports: figures of each year against random in the same year, then means."""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, nan
from statistics import fmean
from typing import Any, Final, NamedTuple

from outrider_lab.papers.mcgough.grid import LEVELS, RANDOM, Size, at_level
from outrider_lab.reporting.claims import Statistic, ratio, standard_error
from outrider_lab.running.run_spec import PolicySpec

Report = Mapping[str, Any]
_WH_PER_MWH: Final = 1e6
_MINUTE_S: Final = 60.0
_OVERHEADS: Final = ("mean", "p95", "p99", "max")
_SMALLER_IS_WORSE: Final = {"saving_ratio"}
_OF_A_STRETCH: Final = (
    "goodput_mwh", "badput_mwh", "total_mwh", "energy_ratio", "starts", "evictions", "killed",
    "evicted_ratio",
)  # fmt: skip


class YearFigures(NamedTuple):
    """Figures of one policy in one year.

    Attributes:
        scalars: figures by name; those of the overhead as ``overhead_min.mean``.
        by_month, by_week: figures of each stretch of the year, by its first second.
    """

    scalars: dict[str, float]
    by_month: dict[float, dict[str, float]]
    by_week: dict[float, dict[str, float]]


Year = Mapping[PolicySpec, YearFigures]
"""One seed's figures, by policy."""


def year_figures(report: Report, random: Report) -> YearFigures:
    """Return figures of a run, and their ratios to `random`, which ran the same year.

    Energy is that of the jobs, good and wasted, as the paper counts it; the overhead is in
    minutes; `evictions` are all runs thrown away, `killed` those of them whose job was killed.
    """
    scalars = _energy(report["energy_wh"])
    overhead = report["overhead_s"]["all"]
    scalars |= {f"overhead_min.{k}": _known(overhead[k]) / _MINUTE_S for k in _OVERHEADS}
    random_total = _energy(random["energy_wh"])["total_mwh"]
    random_mean = _known(random["overhead_s"]["all"]["mean"]) / _MINUTE_S
    return YearFigures(
        scalars
        | {
            "saving_ratio": 1.0 - _ratio(scalars["total_mwh"], random_total),
            "overhead_ratio": _ratio(scalars["overhead_min.mean"], random_mean),
            "unfinished": report["jobs"]["unfinished"],
            "evictions": sum(report["evictions"].values()),
            "killed": report["evictions"]["killed"],
            "starts": report["starts"],
        },
        _stretches(report["by_month"], random["by_month"]),
        _stretches(report["by_week"], random["by_week"]),
    )


def row_of(policy: PolicySpec, years: Sequence[YearFigures], report: Report) -> dict[str, Any]:
    """Return a row of the output.

    Args:
        policy: what ran.
        years: its figures, at least one year.
        report: of one of its runs, for the settings as they took effect.

    Returns:
        Every figure as the mean over the years; beside each, `_se` is its standard error and
        `_worst` the worst year's. What a policy has no setting for (level, epsilon, sigma) is
        None.
    """
    settings = report["settings"]
    row: dict[str, Any] = {"variant": str(policy), "policy": policy.policy}
    row |= {name: settings.get(name) for name in ("level", "epsilon", "sigma")}
    row |= {
        "reconsider_s": report["reconsider_s"],
        "preset": policy.preset,
        "settings": dict(settings),
        "years": len(years),
    }
    for name in years[0].scalars:
        values = [year.scalars[name] for year in years]
        worst = min if name in _SMALLER_IS_WORSE else max
        figure, _, part = name.partition(".")
        for suffix, value in _summed_up(values, worst):
            if part:
                row.setdefault(figure + suffix, {})[part] = value
            else:
                row[figure + suffix] = value
    row["by_month"] = _over_years([year.by_month for year in years])
    row["by_week"] = _over_years([year.by_week for year in years])
    return row


def _summed_up(
    values: Sequence[float], worst: Callable[[Sequence[float]], float]
) -> tuple[tuple[str, float | None], ...]:
    return ("", fmean(values)), ("_se", standard_error(values)), ("_worst", worst(values))


def _energy(energy_wh: Mapping[str, float | None]) -> dict[str, float]:
    good, bad = (_known(energy_wh[k]) / _WH_PER_MWH for k in ("goodput", "badput"))
    return {"total_mwh": good + bad, "goodput_mwh": good, "badput_mwh": bad}


def _stretches(
    stretches: Sequence[Report], random: Sequence[Report]
) -> dict[float, dict[str, float]]:
    """Return figures of weeks or months; both runs had the same year, so the same stretches."""
    out = {}
    for ours, theirs in zip(stretches, random, strict=True):
        good, bad = (ours[k] / _WH_PER_MWH for k in ("goodput_wh", "badput_wh"))
        random_mwh = (theirs["goodput_wh"] + theirs["badput_wh"]) / _WH_PER_MWH
        out[ours["start_s"]] = {
            "goodput_mwh": good,
            "badput_mwh": bad,
            "total_mwh": good + bad,
            "energy_ratio": _ratio(good + bad, random_mwh),
            "starts": ours["starts"],
            "evictions": ours["evictions"],
            "killed": ours["killed"],
            "evicted_ratio": _ratio(ours["evictions"] - ours["killed"], ours["starts"]),
        }
    return out


def _over_years(years: Sequence[Mapping[float, Mapping[str, float]]]) -> list[dict[str, Any]]:
    """Return means by stretch over the years with the figure, and `_se` of the ratios."""
    out = []
    for start_s in sorted({start_s for year in years for start_s in year}):
        stretch: dict[str, Any] = {"start_s": start_s}
        for name in _OF_A_STRETCH:
            values = [y[start_s][name] for y in years if start_s in y]
            values = [value for value in values if isfinite(value)]
            stretch[name] = fmean(values) if values else None
            if name.endswith("_ratio"):
                stretch[f"{name}_se"] = standard_error(values)
        out.append(stretch)
    return out


def _known(value: float | None) -> float:
    return nan if value is None else value


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else nan


# -- year statistics -------------------------------------------------------------------------------
# Statistics of one year, put together from figures of its runs; claims are judged by them.

POINTS: Final = 0.05
"""Tolerance of a saving.

The paper contradicts itself: by 2 points (28 % in 7.1, 30 % in the abstract) and by 6 (57 of 121
MWh is called 53 %).
"""
NO_EFFECT: Final = 0.05
"""A ratio of two runs shows no effect within so much of 1."""


def of(policy: PolicySpec, name: str) -> Statistic[Year]:
    """Return a figure of one run."""
    return lambda year: year[policy].scalars[name]


def share_of_random(statistic: Statistic[Year]) -> Statistic[Year]:
    """Return an energy's share of all that random used that year."""
    return ratio(statistic, of(RANDOM, "total_mwh"))


# -- choices ---------------------------------------------------------------------------------------
# Which epsilon stands for a level: figures 12 to 17 compare the levels at three of them.

LOWEST_OVERHEAD: Final = "lowest overhead"
LOWEST_ENERGY: Final = "lowest energy"
RANDOMS_OVERHEAD: Final = "random's overhead"
CRITERIA: Final[Mapping[str, Callable[[Mapping[str, Any]], float]]] = {
    LOWEST_OVERHEAD: lambda row: float(row["overhead_ratio"]),
    LOWEST_ENERGY: lambda row: float(row["total_mwh"]),
    RANDOMS_OVERHEAD: lambda row: abs(row["overhead_ratio"] - 1.0),
}
"""Quantity to minimise in the paper's three cases (7.2): LO, LE and RC of figures 12 and 13."""
Choices = Mapping[str, Mapping[str, PolicySpec]]
"""The policy chosen for a case and a level."""


def choose(size: Size, rows: Mapping[PolicySpec, Mapping[str, Any]]) -> Choices:
    """Choose on the means over all years, as the paper chose on its one year.

    Args:
        size: its epsilons are chosen from, at sigma .8.
        rows: by policy; a level of which none is there has no choice.
    """
    out: dict[str, dict[str, PolicySpec]] = {case: {} for case in CRITERIA}
    for level in LEVELS:
        there = [policy for policy in at_level(size, level) if policy in rows]
        for case, least in CRITERIA.items():
            if there:
                out[case][level] = min(there, key=lambda v, least=least: least(rows[v]))  # type: ignore[misc]
    return out
