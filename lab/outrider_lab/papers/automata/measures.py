"""Figures of one seed, by which claims are judged."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from outrider_lab.papers.automata.grid import DRIFT, GRID, USERS, Figures, Key
from outrider_lab.reporting.judging import Statistic

NO_FIGURE: Final = "stated, no figure"


class Seed(NamedTuple):
    """A seed, and what every run with it measured."""

    number: int
    runs: Mapping[Key, Figures]


def of(
    experiment: str, scheme: str, figure: str, pattern: str = "", poll: str = ""
) -> Statistic[Seed]:
    """A figure of one run."""
    key = (experiment, pattern, poll, scheme)
    return lambda seed: float(seed.runs[key][figure])


def on_grid(scheme: str, figure: str) -> Statistic[Seed]:
    """A figure of the grid."""
    return of(GRID, scheme, figure)


def in_drift(scheme: str, figure: str) -> Statistic[Seed]:
    """A figure of the grid whose capacities change."""
    return of(DRIFT, scheme, figure)


def of_users(scheme: str, figure: str, pattern: str, poll: str) -> Statistic[Seed]:
    """A figure of polling."""
    return of(USERS, scheme, figure, pattern, poll)
