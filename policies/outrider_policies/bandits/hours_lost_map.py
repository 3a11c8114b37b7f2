"""A heat map of a bandit's values, by hour of day and hours lost."""

from collections.abc import Callable
from statistics import fmean
from typing import Any

from outrider_policies.levels import HOURS_LOST

_DAY_H = 24


def hours_lost_map(best: Callable[[int], float | None], hours: int) -> dict[str, Any]:
    """Value of the best place by hour of day and hours lost, for `outrider.api.Learns.learned`.

    Args:
        best: value of the best tried place in a state (hour x 24 + hours lost); None if untried.
        hours: number of hours that states distinguish; if more than 24, days are averaged.
    """
    rows = []
    for lost_h in range(HOURS_LOST):
        values = []
        for hour in range(_DAY_H):
            states = [at * HOURS_LOST + lost_h for at in range(hour, hours, _DAY_H)]
            known = [value for value in map(best, states) if value is not None]
            values.append(fmean(known) if known else None)
        if any(value is not None for value in values):
            rows.append({"label": f"{lost_h} h lost", "values": values})
    return {
        "title": "mean reward of the best place tried, by hour of day and hours lost",
        "columns": [f"{hour:02d}" for hour in range(_DAY_H)],
        "rows": rows,
    }
