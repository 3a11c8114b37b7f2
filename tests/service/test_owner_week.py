"""The owner's week: the share of each hour in which the owner was there, by the site's clock."""

import datetime as dt

import numpy as np
import pytest

from outrider.model.localtime import WEEK_S, ZoneTime
from outrider.service.views.one_machine import OWNER_WEEKS_S, owner_week, stretches_of

UTC = ZoneTime("UTC")
MONDAY = dt.datetime(2026, 3, 2, tzinfo=dt.UTC).timestamp()
HOUR = 3_600.0


def test_each_hour_has_its_share_of_what_was_seen() -> None:
    events = [
        (MONDAY + 9 * HOUR, "usable"),
        (MONDAY + 9.5 * HOUR, "owner_came"),
        (MONDAY + 9.75 * HOUR, "drained"),  # shows nothing about the owner
        (MONDAY + 11.25 * HOUR, "owner_went"),
        (MONDAY + WEEK_S + 9.25 * HOUR, "owner_came"),
    ]
    told = owner_week(events, MONDAY + WEEK_S + 10 * HOUR, UTC)
    assert told is not None
    assert (told.since_s, told.sessions) == (MONDAY + 9 * HOUR, 2)
    monday = told.share[0]
    assert monday[8:13] == [0.0, 0.625, 1.0, 0.25, 0.0]
    assert np.array(told.share).shape == (7, 24)


def test_what_was_not_seen_is_not_known() -> None:
    events = [(MONDAY + HOUR, "owner_came"), (MONDAY + 2 * HOUR, "left")]
    told = owner_week(events, MONDAY + 50 * HOUR, UTC)
    assert told is not None
    assert told.share[0][:3] == [None, 1.0, None]
    assert told.share[6] == [None] * 24


@pytest.mark.parametrize("events", [[], [(MONDAY, "usable"), (MONDAY + HOUR, "owner_went")]])
def test_without_a_session_there_are_no_habits(events: list[tuple[float, str]]) -> None:
    assert owner_week(events, MONDAY + 9 * HOUR, UTC) is None


def test_the_hours_are_those_of_the_sites_clock_also_when_clocks_are_changed() -> None:
    berlin = ZoneTime("Europe/Berlin")
    events = [(MONDAY, "usable")]
    for week in range(1, 8):  # the clocks change in the fourth
        local = dt.datetime(2026, 3, 2, 9, tzinfo=dt.UTC) + dt.timedelta(weeks=week)
        came_s = local.timestamp() - HOUR * (1 if week < 4 else 2)
        events += [(came_s, "owner_came"), (came_s + HOUR, "owner_went")]
    told = owner_week(events, MONDAY + 8 * WEEK_S - HOUR, berlin)
    assert told is not None
    assert told.share[0][8:11] == [0.0, pytest.approx(7 / 8, abs=0.01), 0.0]


def test_habits_of_long_ago_are_left_out() -> None:
    now_s = MONDAY + OWNER_WEEKS_S + 10 * HOUR
    events = [(MONDAY, "owner_came"), (MONDAY + 5 * HOUR, "owner_went")]
    assert owner_week(events, now_s, UTC) is None
    told = owner_week(events, now_s - 6 * HOUR, UTC)
    assert told is not None
    assert told.since_s == MONDAY + 4 * HOUR


def test_the_last_stretch_lasts_until_now() -> None:
    events = [(5.0, "owner_went"), (5.0, "usable"), (9.0, "owner_came"), (9.0, "owner_came")]
    assert stretches_of(events, 12.0) == [(5.0, 9.0, False), (9.0, 12.0, True)]
