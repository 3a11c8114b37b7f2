"""Statistics of one seed, put together from figures of its trials; claims are judged by them."""

from collections.abc import Callable
from typing import Final, NamedTuple

from outrider_lab.papers.automata.grid import DRIFT, GRID, USERS, Measured
from outrider_lab.reporting.claims import Claim

Statistic = Callable[[Measured, int], float]
"""Of the measurements and a seed; raises `KeyError` where a run it needs failed."""

NO_FIGURE: Final = "stated, no figure"


class Stated(NamedTuple):
    """A claim, and what is measured for it with each seed; None: nothing can be."""

    claim: Claim
    statistic: Statistic | None


def of(experiment: str, scheme: str, figure: str, pattern: str = "", poll: str = "") -> Statistic:
    """A figure of one run."""
    key = (experiment, pattern, poll, scheme)
    return lambda measured, seed: float(measured[key][seed][figure])


def on_grid(scheme: str, figure: str) -> Statistic:
    """A figure of the grid."""
    return of(GRID, scheme, figure)


def in_drift(scheme: str, figure: str) -> Statistic:
    """A figure of the grid whose capacities change."""
    return of(DRIFT, scheme, figure)


def of_users(scheme: str, figure: str, pattern: str, poll: str) -> Statistic:
    """A figure of polling."""
    return of(USERS, scheme, figure, pattern, poll)


def ratio(above: Statistic, below: Statistic) -> Statistic:
    """Of two statistics of one seed."""
    return lambda measured, seed: above(measured, seed) / below(measured, seed)
