"""Coming days are days of the recent past, at the same hour and of the same kind."""

import datetime as dt

import numpy as np
import pytest

from outrider.forecast.expected_starts import DAYS_AHEAD, DAYS_BACK, draw_days
from outrider.forecast.queue_state import Jobs, QueueState
from outrider.model.localtime import DAY_S, HOUR_S, LocalTime, TraceTime, ZoneTime

UTC = ZoneTime("UTC")

MONDAY_S = dt.datetime(2026, 11, 23, tzinfo=dt.UTC).timestamp()
NOBODY = Jobs(np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty((0, 5), np.int64))


def at(now_s: float, clock: LocalTime) -> QueueState:
    """Return the state of an empty site at a moment."""
    return QueueState(now_s, clock.week_second(now_s), 1, 1, NOBODY, np.empty(0), NOBODY)


def drawn(now_s: float, known_days: float, clock: LocalTime = UTC) -> tuple[np.ndarray, np.ndarray]:
    """Return for each coming day the age of the past day in days, and both weekdays."""
    rng = np.random.default_rng(0)
    shifts_s = draw_days(at(now_s, clock), now_s - known_days * DAY_S, 400, rng)
    ahead = np.arange(shifts_s.shape[1])
    return shifts_s / DAY_S - ahead, ahead


@pytest.mark.parametrize("hour", [0, 9, 15, 23])
def test_a_day_of_the_weekend_is_one_and_all_of_its_kind_are_drawn(hour: int) -> None:
    now_s = MONDAY_S + hour * HOUR_S
    back, ahead = drawn(now_s, 40.0)
    assert back.shape == (400, DAYS_AHEAD)
    noon = 12 + hour  # the middle of the 24 hours that begin now
    first = (noon // 24 + ahead) % 7  # Monday is 0
    past = (noon // 24 - back) % 7
    assert ((past >= 5) == (first >= 5)[None]).all()
    assert set(np.unique(back)) == set(range(1, DAYS_BACK + 1))


@pytest.mark.parametrize(
    ("zone", "hour", "ahead", "past"),
    [
        ("UTC", 11, 5, {1, 2, 8, 9}),
        ("UTC", 13, 4, {2, 3, 9, 10}),
        ("Pacific/Auckland", 22, 4, {2, 3, 9, 10}),
        ("America/Los_Angeles", 21, 4, {2, 3, 9, 10}),
    ],
)
def test_the_weekend_is_that_of_the_sites_own_clock(
    zone: str, hour: int, ahead: int, past: set[int]
) -> None:
    """The weekend follows the site's own clock, not UTC.

    Monday, 22:00 in UTC is Tuesday, 11:00 in Auckland; 21:00 is 13:00 in Los Angeles. From 13:00 on
    most of 24 hours are of the next day.
    """
    back, _ = drawn(MONDAY_S + hour * HOUR_S, 40.0, ZoneTime(zone))
    assert set(np.unique(back[:, ahead])) == past, "the first day of the weekend to come"
    assert not set(np.unique(back[:, ahead - 1])) & past, "the day before it is a working day"


def test_the_clock_of_a_log_begins_where_its_header_says() -> None:
    """Second 0 of a trace is not the Thursday of 1970."""
    saturday = TraceTime(dt.datetime(1996, 6, 22))  # noqa: DTZ001 - a local wall clock
    back, _ = drawn(30 * DAY_S, 30.0, saturday)  # day 30 is a Monday
    assert set(np.unique(back[:, 5])) == {1, 2, 8, 9}
    assert not set(np.unique(back[:, 0])) & {1, 2, 8, 9}


def test_of_a_few_days_any_comes() -> None:
    back, _ = drawn(MONDAY_S + 3 * DAY_S, 4.5)  # since a Saturday: one Sunday is known, in part
    assert set(np.unique(back)) == {1.0, 2.0, 3.0, 4.0}
    assert drawn(MONDAY_S, 0.9)[0].shape == (400, 0)
