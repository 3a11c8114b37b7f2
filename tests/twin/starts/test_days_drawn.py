"""Days to come are days of the recent past, at the same hour and of the same kind."""

import datetime as dt

import numpy as np
import pytest

from outrider.model.localtime import DAY_S, HOUR_S
from outrider.twin.starts.expected_starts import DAYS_AHEAD, DAYS_BACK, draw_days

MONDAY_S = dt.datetime(2026, 11, 23, tzinfo=dt.UTC).timestamp()


def drawn(now_s: float, known_days: float) -> tuple[np.ndarray, np.ndarray]:
    """How many days ago the past day was that comes on each day, and the weekday of both."""
    rng = np.random.default_rng(0)
    shifts_s = draw_days(now_s, now_s - known_days * DAY_S, 400, rng)
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


def test_of_a_few_days_any_comes() -> None:
    back, _ = drawn(MONDAY_S + 3 * DAY_S, 4.5)  # since a Saturday: one Sunday is known, in part
    assert set(np.unique(back)) == {1.0, 2.0, 3.0, 4.0}
    assert drawn(MONDAY_S, 0.9)[0].shape == (400, 0)
