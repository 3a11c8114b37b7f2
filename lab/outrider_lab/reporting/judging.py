"""What a paper states, measured unit by unit and judged; a unit is a seed, a year or a window.

A statistic is put together from figures of the runs of one unit, so that what is compared met the
same arrivals.
"""

from collections.abc import Callable, Iterable
from math import nan
from typing import Any, Generic, NamedTuple, TypeVar

from outrider_lab.reporting.claims import Claim, judge

Unit = TypeVar("Unit")
Statistic = Callable[[Unit], float]
"""Of one unit: nan where it is not known; raises `KeyError` where the unit lacks a run it needs."""


class Stated(NamedTuple, Generic[Unit]):
    """A claim, what is measured for it in each unit, and what is known beyond the figures."""

    claim: Claim
    statistic: Statistic[Unit]
    note: str = ""


def judged(
    stated: Iterable[Stated[Unit]], units: Iterable[Unit], too_small: str | None
) -> list[dict[str, Any]]:
    """Every claim with what was measured and the verdict.

    Args:
        stated: claims and their statistics.
        units: a unit that lacks a claim's run does not count for that claim.
        too_small: why runs of this size decide nothing; None: they are large enough.
    """
    units = list(units)
    out = []
    for claim, statistic, note in stated:
        found = judge(claim, [_measured(statistic, unit) for unit in units], too_small)
        if note:
            found["why"] += f"; {note}"
        out.append(found)
    return out


def _measured(statistic: Statistic[Unit], unit: Unit) -> float:
    try:
        return statistic(unit)
    except KeyError:  # that run is not in this size's grid, or it failed and is listed as failed
        return nan


def unmeasured(unit: object) -> float:
    """For a claim that no figure can confirm or refute."""
    return nan


def ratio(above: Statistic[Unit], below: Statistic[Unit]) -> Statistic[Unit]:
    """Of two statistics of one unit; nan over nothing."""

    def statistic(unit: Unit) -> float:
        whole = below(unit)
        return above(unit) / whole if whole else nan

    return statistic


def less(first: Statistic[Unit], second: Statistic[Unit]) -> Statistic[Unit]:
    """The first less the second."""
    return lambda unit: first(unit) - second(unit)


def times(statistic: Statistic[Unit], factor: float) -> Statistic[Unit]:
    """In another unit of measurement."""
    return lambda unit: factor * statistic(unit)


def greatest(statistics: Iterable[Statistic[Unit]]) -> Statistic[Unit]:
    """The greatest of several; nan if there is none."""
    several = list(statistics)
    return lambda unit: max((statistic(unit) for statistic in several), default=nan)


def least(statistics: Iterable[Statistic[Unit]]) -> Statistic[Unit]:
    """The least of several; nan if there is none."""
    several = list(statistics)
    return lambda unit: min((statistic(unit) for statistic in several), default=nan)
