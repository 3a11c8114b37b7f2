"""Correction of times that were recorded under a wrong clock."""

from math import inf

import pytest

from outrider.model.events import COMPLETED, STARTED, SUBMITTED, TICK
from outrider.model.jobs import JobSpec
from outrider.service.journal import restart
from outrider.service.journal.restart import Input, correct_times
from tests.fixtures.cores import T

YEAR_S = 365.25 * 86_400.0
LATEST_S = T + 7_200.0


def job(name: str, time_s: float) -> Input:
    return 0, "log", (time_s, SUBMITTED, name, JobSpec())


def tick(time_s: float) -> Input:
    return 0, "log", (time_s, TICK, "log", None)


def times(*rows: Input, believed_s: float = T) -> list[float]:
    return [row[2][0] - T for row in correct_times(rows, believed_s, LATEST_S)]


def test_what_came_while_the_clock_was_right_stays() -> None:
    assert times(job("1", T + 1), tick(T + 10), job("2", T + 12), tick(T + 20)) == [1, 10, 12, 20]


def test_a_stretch_of_ten_years_ahead_is_moved_to_where_it_was() -> None:
    ahead = T + 10 * YEAR_S
    rows = (
        tick(T + 10), job("wrong", ahead + 12), job("right", T + 13), tick(ahead + 10),
        job("wrong", ahead + 17), tick(ahead + 20), job("right", T + 30), tick(T + 40),
    )  # fmt: skip
    assert times(*rows) == [10, 12, 13, 10, 17, 20, 30, 40]


def test_whatever_happens_to_a_job_meanwhile_is_moved_as_its_submission_is() -> None:
    """Only the daemon's own ticks say where the clock was; a job's times may be anything."""
    ahead = T + 10 * YEAR_S
    started = (0, "log", (ahead + 12, STARTED, "1", ("m1", 1)))
    completed = (0, "log", (ahead + 14, COMPLETED, "1", None))
    rows = (tick(T + 10), job("1", ahead + 11), started, completed, tick(ahead + 20), tick(T + 30))
    assert times(*rows) == [10, 1, 2, 4, 10, 30]


def test_two_faults_in_a_row_have_each_their_own_distance() -> None:
    rows = (tick(T + 10), tick(T + 1 * YEAR_S), tick(T + 19 * YEAR_S), job("1", T + 19 * YEAR_S))
    assert times(*rows) == [10, 10, 10, 10]


def test_where_no_watermark_comes_for_long_what_came_goes_on_by_the_distance_known_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(restart, "_MAX_HELD", 2)
    ahead = T + 10 * YEAR_S
    many = [job(str(n), ahead + 11 + n) for n in range(5)]
    assert times(tick(T + 10), tick(ahead + 10), *many) == [10, 10, 11, 12, 13, 14, 15]
    assert times(tick(T + 10), *many)[1:] == [10 * YEAR_S + 11 + n for n in range(5)]


def test_a_record_far_ahead_beside_a_right_clock_keeps_its_time() -> None:
    assert times(job("1", T + YEAR_S), tick(T + 10)) == [YEAR_S, 10]


def test_without_a_time_to_go_by_nothing_is_moved() -> None:
    rows = (tick(T + YEAR_S), job("1", T + YEAR_S))
    assert times(*rows, believed_s=-inf) == [YEAR_S, YEAR_S]


def test_a_clock_that_goes_on_by_an_hour_has_not_leapt() -> None:
    late = LATEST_S + 10.0
    hour = [tick(late), tick(late + restart.MIN_LEAP_S)]
    assert times(*hour, believed_s=LATEST_S) == [7_210.0, 7_210.0 + restart.MIN_LEAP_S]


def test_a_clock_behind_the_site_moves_nothing() -> None:
    """Check that a steady advance is no leap, independent of this host's clock."""
    rows = [tick(LATEST_S + 10 * n) for n in range(100)]
    assert times(*rows, believed_s=LATEST_S) == [7_200.0 + 10 * n for n in range(100)]
