"""Choice of the last whole week, by the wall clock of the site."""

import datetime as dt
from pathlib import Path

import pytest

from outrider.journal import Journal
from outrider.journal.journal_events import last_moment_s
from outrider.model import events as ev
from outrider.model.errors import ConfigurationError
from outrider.model.localtime import time_zone
from outrider.report.windows import Window, asked_for, whole_weeks
from tests.report.journals import MONDAY_S, WEEK, at, machine, write

BERLIN = time_zone("Europe/Berlin")


def local(text: str) -> float:
    return dt.datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


def test_the_last_whole_week_ends_on_the_last_monday() -> None:
    window, before = whole_weeks(local("2026-03-11T12:00"), 1, BERLIN)
    assert window == (local("2026-03-02"), local("2026-03-09"))
    assert before == (local("2026-02-23"), local("2026-03-02"))


def test_a_week_that_ends_with_the_record_is_whole() -> None:
    assert whole_weeks(local("2026-03-09"), 1, BERLIN)[0].end_s == local("2026-03-09")
    assert whole_weeks(local("2026-03-09") - 1, 1, BERLIN)[0].end_s == local("2026-03-02")


def test_the_week_in_which_clocks_go_forward_has_167_hours() -> None:
    window, before = whole_weeks(local("2026-03-31T09:00"), 1, BERLIN)
    assert window.span_s == 167 * 3600
    assert before.span_s == 168 * 3600


def test_many_weeks_are_compared_with_as_many() -> None:
    window, before = whole_weeks(local("2026-03-11"), 4, BERLIN)
    assert window.begin_s == local("2026-02-09") == before.end_s
    assert before.begin_s == local("2026-01-12")


def test_moments_without_an_offset_are_by_the_wall_clock() -> None:
    window, before = asked_for("2026-03-02", "2026-03-03T12:00+00:00", BERLIN)
    assert window.begin_s == local("2026-03-02")
    assert window.end_s == local("2026-03-03T13:00")
    assert (before.end_s, before.span_s) == (window.begin_s, window.span_s)


@pytest.mark.parametrize(
    ("begin", "end"), [("yesterday", "2026-03-02"), ("2026-03-02", "2026-03-02"), ("", "x")]
)
def test_what_is_no_window_is_refused(begin: str, end: str) -> None:
    with pytest.raises(ConfigurationError, match="--begin"):
        asked_for(begin, end, BERLIN)


def test_a_window_holds_its_begin_and_not_its_end_unless_it_is_closed() -> None:
    assert (1.0 in Window(1.0, 2.0), 2.0 in Window(1.0, 2.0)) == (True, False)
    assert 2.0 in Window.closed(1.0, 2.0)


def test_the_last_moment_is_the_last_watermark_whatever_an_event_is_dated(tmp_path: Path) -> None:
    path = write(tmp_path / "j", [machine("m1"), at(9e5, ev.OWNER_CAME, "m1")], last_h=50)
    with Journal(path, read_only=True) as journal:
        assert last_moment_s(journal) == MONDAY_S + 50 * 3600
    with Journal(tmp_path / "empty") as journal:
        assert last_moment_s(journal) is None
    assert WEEK.span_s == 168 * 3600
