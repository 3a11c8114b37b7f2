"""Statistics of one year, put together from figures of its runs; claims are judged by them."""

from collections.abc import Callable, Iterable
from math import nan
from typing import Final, NamedTuple

from outrider_lab.papers.mcgough.grid import RANDOM
from outrider_lab.papers.mcgough.rows import Year
from outrider_lab.reporting.claims import Claim
from outrider_lab.running.run_spec import PolicySpec

POINTS: Final = 0.05
"""A saving is met within so much of what the paper prints, for the paper contradicts itself: by
2 points (28 % in 7.1, 30 % in the abstract) and by 6 (57 of 121 MWh is called 53 %)."""
NO_EFFECT: Final = 0.05
"""A ratio of two runs shows no effect within so much of 1."""

Statistic = Callable[[Year], float]
"""Nan where the grid has no run for it; raises `KeyError` where the year lacks one it needs."""


class Stated(NamedTuple):
    """A claim, and what is measured for it each year."""

    claim: Claim
    statistic: Statistic


def of(policy: PolicySpec, name: str) -> Statistic:
    """A figure of one run."""
    return lambda year: year[policy].scalars[name]


def ratio(above: Statistic, below: Statistic) -> Statistic:
    """Of two statistics of one year."""
    return lambda year: above(year) / below(year)


def less(first: Statistic, second: Statistic) -> Statistic:
    """The first less the second."""
    return lambda year: first(year) - second(year)


def least(statistics: Iterable[Statistic]) -> Statistic:
    """The least of several; nan if there is none."""
    several = list(statistics)
    return lambda year: min((statistic(year) for statistic in several), default=nan)


def share_of_random(statistic: Statistic) -> Statistic:
    """Of two energies: their share of all that random used that year."""
    return ratio(statistic, of(RANDOM, "total_mwh"))
