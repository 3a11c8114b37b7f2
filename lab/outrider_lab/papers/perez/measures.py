"""Statistics of one seed (or one window), put together from its runs; claims are judged by them."""

from collections.abc import Callable, Iterable, Mapping
from math import nan
from typing import Final, NamedTuple

from outrider_lab.papers.perez.figures import RunFigures
from outrider_lab.papers.perez.grid import FEASIBLE
from outrider_lab.reporting.claims import Claim
from outrider_lab.running.run_spec import PolicySpec

A_QUARTER: Final = 1.25
"""A wait is met if it is at most a quarter above what the paper prints of its one run."""
NO_EFFECT: Final = 0.05
"""A ratio of two runs shows no effect within so much of 1."""

Unit = Mapping[tuple[str, str, PolicySpec], RunFigures]
"""Runs on the same arrivals with exact estimates, by row, targets and policy."""
Statistic = Callable[[Unit], float]
"""Nan where it is not known; raises `KeyError` where the unit lacks a run it needs."""


class Stated(NamedTuple):
    """A claim, what is measured for it in each unit, and what is known beyond the figures."""

    claim: Claim
    statistic: Statistic
    note: str = ""


def unmeasured(unit: Unit) -> float:
    """For a claim that no figure can confirm or refute."""
    return nan


def of(row: str, policy: PolicySpec, name: str, targets: str = FEASIBLE) -> Statistic:
    """A figure of one run."""
    return lambda unit: unit[row, targets, policy].scalars[name]


def ratio(above: Statistic, below: Statistic) -> Statistic:
    """Of two statistics of one unit; nan over nothing."""

    def statistic(unit: Unit) -> float:
        whole = below(unit)
        return above(unit) / whole if whole else nan

    return statistic


def less(first: Statistic, second: Statistic) -> Statistic:
    """The first less the second."""
    return lambda unit: first(unit) - second(unit)


def times(statistic: Statistic, factor: float) -> Statistic:
    """In another unit of measurement."""
    return lambda unit: factor * statistic(unit)


def greatest(statistics: Iterable[Statistic]) -> Statistic:
    """The greatest of several."""
    several = list(statistics)
    return lambda unit: max(statistic(unit) for statistic in several)


def least(statistics: Iterable[Statistic]) -> Statistic:
    """The least of several."""
    several = list(statistics)
    return lambda unit: min(statistic(unit) for statistic in several)
