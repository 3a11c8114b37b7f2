"""Demand for machines over time: terms and vacations, days of the week, hours of the day."""

import datetime as dt
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TERM_WEEKS: Final = (range(2, 12), range(16, 25), range(39, 51))
"""ISO weeks of the three terms. In 2010: 11 Jan-21 Mar, 19 Apr-20 Jun, 27 Sep-19 Dec."""

AUTUMN_RUSH_WEEKS: Final = range(39, 43)
AUTUMN_RUSH: Final = 1.25
VACATION: Final = 0.13
WEEKEND: Final = 0.18
CLOSURE: Final = 0.016

HOUR_PROFILE: Final = np.array(
    (
        1.0, 0.6, 0.4, 0.2, 0.1, 0.1, 0.25, 0.6, 2.1, 6.2, 8.9, 10.2,
        10.4, 10.9, 10.4, 9.9, 9.0, 5.6, 4.0, 3.3, 2.9, 2.5, 1.9, 1.4,
    )
)  # fmt: skip
"""Demand for log-ins by hour of day, relative."""


def is_term(day: dt.date) -> bool:
    """Whether lectures are given in the week of this day."""
    week = day.isocalendar().week
    return any(week in term for term in TERM_WEEKS)


def is_closed(day: dt.date) -> bool:
    """Whether the university is closed over Christmas: 23 December to 3 January."""
    return (day.month == 12 and day.day >= 23) or (day.month == 1 and day.day <= 3)


def day_demand(day: dt.date) -> float:
    """Demand for log-ins on this day, relative to a weekday in term."""
    if is_closed(day):
        demand = CLOSURE
    elif not is_term(day):
        demand = VACATION
    elif day.isocalendar().week in AUTUMN_RUSH_WEEKS:
        demand = AUTUMN_RUSH
    else:
        demand = 1.0
    return demand * (WEEKEND if day.weekday() >= 5 else 1.0)


def days_from(start: dt.date, count: int) -> list[dt.date]:
    """`count` consecutive days from `start`."""
    return [start + dt.timedelta(days=number) for number in range(count)]


def typical_week() -> tuple[Floats, Floats]:
    """The distinct kinds of day in 2010 and how often each occurs.

    Returns:
        (7, levels) demand of each kind of day by weekday, and (7, levels) days a year.
    """
    counts: list[dict[float, int]] = [{} for _ in range(7)]
    for day in days_from(dt.date(2010, 1, 1), 365):
        kinds = counts[day.weekday()]
        demand = day_demand(day)
        kinds[demand] = kinds.get(demand, 0) + 1
    levels = max(len(kinds) for kinds in counts)
    demand_by_day = np.zeros((7, levels))
    days_a_year = np.zeros((7, levels))
    for weekday, kinds in enumerate(counts):
        demand_by_day[weekday, : len(kinds)] = list(kinds)
        days_a_year[weekday, : len(kinds)] = list(kinds.values())
    return demand_by_day, days_a_year
