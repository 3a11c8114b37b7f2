"""When the owner of a machine is there, by hour of the week, from the machine's events."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.model.localtime import DAY_S, HOUR_S, WEEK_S, LocalTime

LOOK_BACK_S: Final = 8.0 * WEEK_S
"""Habits of longer ago tell little of the present."""
_QUARTER_S: Final = 900.0
"""Every time zone is a multiple of it away from UTC."""
_HOURS: Final = WEEK_S // HOUR_S
_THERE: Final = "owner_came"
_NOT_THERE: Final = frozenset({"owner_went", "usable"})
_NOT_SEEN: Final = "left"

Stretch = tuple[float, float, bool]
"""From when, until when, and whether the owner was there."""


def owner_week(
    events: Sequence[tuple[float, str]], now_s: float, local_time: LocalTime
) -> dict[str, Any] | None:
    """The share of time in which the owner was there, by hour of the week of the site's clock.

    Args:
        events: time and kind of the machine's, in order.
        now_s: event time.
        local_time: the site's.

    Returns:
        ``since_s``, ``sessions`` (how often the owner came), and ``share``: from Monday, seven
        lists of 24, None where the machine was not seen. None: no owner was ever seen to come.
    """
    begin_s = now_s - LOOK_BACK_S
    stretches = [
        (max(start_s, begin_s), end_s, there)
        for start_s, end_s, there in stretches_of(events, now_s)
        if end_s > begin_s
    ]
    sessions = sum(there for _, _, there in stretches)
    if not sessions:
        return None
    first_s = stretches[0][0]
    edges = np.arange(first_s // _QUARTER_S, now_s // _QUARTER_S + 2) * _QUARTER_S
    hours = (local_time.week_seconds(edges[:-1]) // HOUR_S).astype(np.intp)

    def by_hour(chosen: list[Stretch]) -> NDArray[np.float64]:
        seconds = np.zeros(_HOURS)
        np.add.at(seconds, hours, np.diff(_covered(edges, chosen)))
        return seconds

    seen_s = by_hour(stretches)
    there_s = by_hour([one for one in stretches if one[2]])
    share = [
        round(float(there / seen), 4) if seen > 0 else None
        for there, seen in zip(there_s, seen_s, strict=True)
    ]
    day = DAY_S // HOUR_S
    return {
        "since_s": first_s,
        "sessions": sessions,
        "share": [share[at : at + day] for at in range(0, _HOURS, day)],
    }


def stretches_of(events: Sequence[tuple[float, str]], now_s: float) -> list[Stretch]:
    """Stretches in which it is known whether the owner was there, the last until now.

    Before the first event that tells it, and after the machine left, it is not known.
    """
    found: list[Stretch] = []
    since_s, there = 0.0, None
    for time_s, kind in [*events, (now_s, _NOT_SEEN)]:
        if kind == _THERE:
            told: bool | None = True
        elif kind in _NOT_THERE:
            told = False
        elif kind == _NOT_SEEN:
            told = None
        else:
            continue
        if told is there:
            continue
        if there is not None and time_s > since_s:
            found.append((since_s, time_s, there))
        since_s, there = time_s, told
    return found


def _covered(at_s: NDArray[np.float64], stretches: list[Stretch]) -> NDArray[np.float64]:
    """(moments,) Seconds of the stretches up to each moment."""
    if not stretches:
        return np.zeros(len(at_s))
    points, so_far = [], [0.0]
    for start_s, end_s, _ in stretches:
        points += [start_s, end_s]
        so_far += [so_far[-1] + end_s - start_s] * 2
    return np.interp(at_s, points, so_far[:-1])
