"""Sections 7.2 to 7.4: the four levels, their evictions by week and their energy by month."""

from collections.abc import Callable, Iterator, Mapping
from math import isfinite, nan
from statistics import fmean

from outrider_lab.papers.mcgough.grid import LEVELS, RANDOM
from outrider_lab.papers.mcgough.rows import (
    LOWEST_ENERGY,
    LOWEST_OVERHEAD,
    POINTS,
    RANDOMS_OVERHEAD,
    Choices,
    Year,
    of,
)
from outrider_lab.reporting.claims import Claim, Stated, Statistic, less

Part = Callable[[list[float]], list[float]]
"""Selection of the stretches of a year that count."""


def claims_of_levels(choices: Choices) -> Iterator[Stated[Year]]:
    """Return each level at the epsilon that suits the case, then over the year."""
    yield from _levels(choices)
    yield from _over_the_year(choices)


def _against_the_rest(
    choices: Choices, case: str, level: str, name: str, best: Callable[..., float]
) -> Statistic[Year]:
    """Return a level's figure less the best of the other levels'."""

    def statistic(year: Year) -> float:
        others = (choices[case][other] for other in LEVELS if other != level)
        return of(choices[case][level], name)(year) - best(of(v, name)(year) for v in others)

    return statistic


def _chosen(choices: Choices, case: str, level: str, name: str) -> Statistic[Year]:
    def statistic(year: Year) -> float:
        return of(choices[case][level], name)(year)  # looked up late: a level may have no runs

    return statistic


def _levels(choices: Choices) -> Iterator[Stated[Year]]:
    """Return the four levels, each at the epsilon that suits the case."""
    yield Stated(
        Claim(
            "the computer level has the lowest overhead of all",
            "7.2, figure 12",
            "9.9 min; cluster week +.4, cluster +.7",
            "lowest overhead ratio of the computer level, less the best other level's",
            high=0.0,
        ),
        _against_the_rest(choices, LOWEST_OVERHEAD, "computer", "overhead_ratio", min),
    )
    yield Stated(
        Claim(
            "the system level cannot match random's overhead",
            "7.2, figure 12",
            "2.3 min slower",
            "lowest overhead ratio of the system level",
            1.0,
        ),
        _chosen(choices, LOWEST_OVERHEAD, "system", "overhead_ratio"),
    )
    yield Stated(
        Claim(
            "lowest overheads save little energy",
            "7.2, figure 13; 7.4, figure 17",
            "at most 17 % (7.2), around 20 % (7.4)",
            "largest saving of the four levels, each at its lowest overhead",
            0.17 - POINTS,
            0.20 + POINTS,
        ),
        lambda year: max(
            of(choices[LOWEST_OVERHEAD][level], "saving_ratio")(year) for level in LEVELS
        ),
    )
    yield Stated(
        Claim(
            "at lowest energy the cluster level saves most",
            "7.2, figure 13",
            "64 MWh (53 %)",
            "its saving less the best other level's",
            0.0,
        ),
        _against_the_rest(choices, LOWEST_ENERGY, "cluster", "saving_ratio", max),
    )
    yield Stated(
        Claim(
            "at lowest energy the cluster level has the highest overhead",
            "7.2, figure 12",
            "30.7 min (2.3 of random's)",
            "its overhead ratio less the highest other level's",
            0.0,
        ),
        _against_the_rest(choices, LOWEST_ENERGY, "cluster", "overhead_ratio", max),
    )
    yield Stated(
        Claim(
            "at random's overhead the cluster level saves 30 %",
            "7.2, figure 13",
            "36 MWh (30 %)",
            "its saving at the epsilon nearest to random's overhead",
            0.30 - POINTS,
        ),
        _chosen(choices, RANDOMS_OVERHEAD, "cluster", "saving_ratio"),
    )
    yield Stated(
        Claim(
            "at random's overhead the cluster level saves most",
            "7.2, figure 13; 7.4, figure 16",
            "most",
            "its saving less the best other level's",
            0.0,
        ),
        _against_the_rest(choices, RANDOMS_OVERHEAD, "cluster", "saving_ratio", max),
    )


def _mean_over(stretches: Mapping[float, Mapping[str, float]], name: str, part: Part) -> float:
    """Return the mean of a figure over a part of a year's months or weeks."""
    values = [stretches[start_s][name] for start_s in sorted(stretches)]
    known = [value for value in part(values) if isfinite(value)]
    return fmean(known) if known else nan


def _first_quarter(values: list[float]) -> list[float]:
    return values[: len(values) // 4]


def _last_quarter(values: list[float]) -> list[float]:
    return values[len(values) - len(values) // 4 :]


def _from_september(values: list[float]) -> list[float]:
    return values[8:]


def _over_the_year(choices: Choices) -> Iterator[Stated[Year]]:
    """Return evictions week by week, and the energy month by month."""

    def evicted(year: Year, part: Part) -> float:
        weeks = year[choices[RANDOMS_OVERHEAD]["cluster"]].by_week
        return _mean_over(weeks, "evicted_ratio", part)

    def autumn(level: str) -> Statistic[Year]:
        def statistic(year: Year) -> float:
            months = year[choices[LOWEST_ENERGY][level]].by_month
            return _mean_over(months, "energy_ratio", _from_september)

        return statistic

    yield Stated(
        Claim(
            "evictions start high and become fewer over the year",
            "7.3, figure 14",
            "become smaller",
            "cluster level at random's overhead: evicted ratio of starts, last quarter of the "
            "weeks less the first",
            high=0.0,
        ),
        lambda year: evicted(year, _last_quarter) - evicted(year, _first_quarter),
    )
    yield Stated(
        Claim(
            "late in the year fewer runs are evicted than under random",
            "7.3, figure 14",
            "fewer",
            "cluster level at random's overhead: evicted ratio in the last quarter less random's",
            high=0.0,
        ),
        lambda year: (
            evicted(year, _last_quarter)
            - _mean_over(year[RANDOM].by_week, "evicted_ratio", _last_quarter)
        ),
    )
    yield Stated(
        Claim(
            "at lowest energy the cluster level loses from September on",
            "7.4, figure 15",
            "the computer level reacts better",
            "energy ratio to random from September on, cluster less computer level",
            0.0,
        ),
        less(autumn("cluster"), autumn("computer")),
    )
