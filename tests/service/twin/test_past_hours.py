"""Past hours that are forecast again: all if that is quick, else some."""

import pytest

from outrider.service.twin.starts_cycle import PastHours

HOUR_S = 3_600.0
HALF_S = 1_800.0


def asked(past: PastHours, until_s: float, each_s: float) -> list[float]:
    """Hours asked about, by a record that yields twice an hour, at its first moment and later."""
    hours = []
    for n in range(1, int(until_s / HALF_S) + 1):
        if past.is_due(n * HALF_S):
            hours.append(n / 2)
            past.took(n * HALF_S, each_s)
    return hours


def test_each_full_hour_is_asked_about_but_for_the_records_first_moment() -> None:
    assert asked(PastHours(-1e9, 6 * HOUR_S, 60.0), 6 * HOUR_S, 1.0) == [1, 2, 3, 4, 5, 6]


def test_none_before_the_last_weeks() -> None:
    assert asked(PastHours(3.5 * HOUR_S, 6 * HOUR_S, 60.0), 6 * HOUR_S, 1.0) == [4, 5, 6]


@pytest.mark.parametrize("each_s", [0.1, 1.0, 7.0, 25.0, 100.0])
def test_it_ends_in_time_and_asks_as_late_as_early(each_s: float) -> None:
    hours = asked(PastHours(-1e9, 336 * HOUR_S, 60.0), 336 * HOUR_S, each_s)
    assert hours[0] == 1
    assert (len(hours) - 1) * each_s <= 60.0 + each_s, "the first does not count"
    if each_s <= 7.0:
        assert len(hours) >= min(336, 0.7 * 60.0 / each_s)
        assert hours[-1] > 336 * (1 - 2 / len(hours))


def test_who_was_there_asks_only_about_whole_hours_that_were_missed() -> None:
    past = PastHours(-1e9, 12 * HOUR_S, 60.0)
    past.mark_asked(3.2 * HOUR_S)
    assert [n for n in (3.25, 3.9, 4.0, 4.9) if past.is_due(n * HOUR_S)] == []
    assert past.is_due(5.0 * HOUR_S)
