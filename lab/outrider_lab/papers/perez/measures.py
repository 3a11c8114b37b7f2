"""Statistics of one seed (or one window), put together from its runs; claims are judged by them."""

from collections.abc import Mapping
from typing import Final

from outrider_lab.papers.perez.figures import RunFigures
from outrider_lab.papers.perez.grid import FEASIBLE
from outrider_lab.reporting.judging import Statistic
from outrider_lab.running.run_spec import PolicySpec

A_QUARTER: Final = 1.25
"""A wait is met if it is at most a quarter above what the paper prints of its one run."""
NO_EFFECT: Final = 0.05
"""A ratio of two runs shows no effect within so much of 1."""

Unit = Mapping[tuple[str, str, PolicySpec], RunFigures]
"""Runs on the same arrivals with exact estimates, by row, targets and policy."""


def of(row: str, policy: PolicySpec, name: str, targets: str = FEASIBLE) -> Statistic[Unit]:
    """A figure of one run."""
    return lambda unit: unit[row, targets, policy].scalars[name]
