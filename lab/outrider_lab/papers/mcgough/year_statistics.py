"""Statistics of one year, put together from figures of its runs; claims are judged by them."""

from typing import Final

from outrider_lab.papers.mcgough.grid import RANDOM
from outrider_lab.papers.mcgough.rows import Year
from outrider_lab.reporting.judging import Statistic, ratio
from outrider_lab.running.run_spec import PolicySpec

POINTS: Final = 0.05
"""A saving is met within so much of what the paper prints, for the paper contradicts itself: by
2 points (28 % in 7.1, 30 % in the abstract) and by 6 (57 of 121 MWh is called 53 %)."""
NO_EFFECT: Final = 0.05
"""A ratio of two runs shows no effect within so much of 1."""


def of(policy: PolicySpec, name: str) -> Statistic[Year]:
    """A figure of one run."""
    return lambda year: year[policy].scalars[name]


def share_of_random(statistic: Statistic[Year]) -> Statistic[Year]:
    """Of two energies: their share of all that random used that year."""
    return ratio(statistic, of(RANDOM, "total_mwh"))
