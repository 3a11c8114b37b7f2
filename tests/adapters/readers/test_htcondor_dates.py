"""Date styles of HTCondor logs, and the years of those without one."""

import datetime as dt

import pytest

from outrider.api import ConfigurationError, ReaderOptions
from outrider_adapters.readers.htcondor import HTCondorLogReader
from tests.adapters.readers.samples import record


def utc(text: str) -> float:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp()


def times(dates: list[str], options: ReaderOptions) -> list[float]:
    log = b"".join(record(0, f"{n:03d}.000.000", date) for n, date in enumerate(dates))
    return [event[0] for event in HTCondorLogReader(options).read(log, final=True).events]


def years(dates: list[str], options: ReaderOptions) -> list[int]:
    return [dt.datetime.fromtimestamp(at, dt.UTC).year for at in times(dates, options)]


@pytest.mark.parametrize(
    ("date", "at"),
    [
        ("2026-11-21 03:17:00.418Z", "2026-11-21T03:17:00.418"),
        ("2026-11-21T03:17:00", "2026-11-21T03:17:00"),
        ("2026-11-21 03:17:00.5", "2026-11-21T03:17:00.500"),
        ("2026-11-21T03:17:00+01:00", "2026-11-21T02:17:00"),
        ("2026-11-21T03:17:00-0230", "2026-11-21T05:47:00"),
        ("11/21 03:17:00", "2026-11-21T03:17:00"),
        ("11/21/2026 03:17:00", "2026-11-21T03:17:00"),
        ("11/21/26 03:17:00", "2026-11-21T03:17:00"),
    ],
)
def test_every_date_style_is_read(date: str, at: str) -> None:
    assert times([date], ReaderOptions(year=2026)) == [pytest.approx(utc(at), abs=1e-6)]


def test_a_date_without_zone_is_local_time_where_a_zone_is_given() -> None:
    options = ReaderOptions(timezone="Europe/Berlin", year=2026)
    read = times(["2026-07-01 12:00:00", "07/01 12:00:01", "2026-07-01 12:00:02Z"], options)
    assert [at - utc("2026-07-01T10:00:00") for at in read] == [0, 1, 7202]


def test_the_year_is_that_of_the_last_event_and_earlier_decembers_step_back() -> None:
    dates = ["12/26 03:59:35", "12/31 23:59:59", "01/01 00:00:01", "01/08 12:00:00"]
    assert years(dates, ReaderOptions(year=2014)) == [2013, 2013, 2014, 2014]


def test_two_new_years_are_two_years() -> None:
    dates = ["12/31 10:00:00", "01/01 10:00:00", "11/01 10:00:00", "01/05 10:00:00"]
    assert years(dates, ReaderOptions(year=2014)) == [2012, 2013, 2013, 2014]


def test_a_record_written_a_little_late_is_of_no_other_year() -> None:
    dates = ["12/31 23:59:59", "01/01 00:00:00", "12/31 23:59:58", "01/01 00:00:01"]
    assert years(dates, ReaderOptions(year=2014)) == [2013, 2014, 2013, 2014]
    dates = ["03/01 00:00:00", "02/28 23:59:58", "03/01 00:00:01"]
    assert years(dates, ReaderOptions(year=2014)) == [2014, 2014, 2014]


def test_without_a_year_the_modification_time_tells_it_with_a_warning() -> None:
    modified_s = utc("2014-01-08T12:00:00")
    log = record(0, date="12/26 03:59:35") + record(5, date="01/07 03:59:35")
    reading = HTCondorLogReader(ReaderOptions(modified_s=modified_s)).read(log, final=True)
    assert [event[0] for event in reading.events] == [
        utc("2013-12-26T03:59:35"),
        utc("2014-01-07T03:59:35"),
    ]
    assert "2014" in reading.warnings[0]


def test_the_first_part_of_a_log_is_not_after_its_modification() -> None:
    reader = HTCondorLogReader(ReaderOptions(modified_s=utc("2014-01-08T12:00:00")))
    first = reader.read(record(0, date="12/26 03:59:35"), final=True)
    restarted = HTCondorLogReader(ReaderOptions(modified_s=utc("2014-02-01T00:00:00")))
    restarted.restore(reader.save())
    second = restarted.read(record(5, date="01/07 03:59:35"), final=True)
    assert first.events[0][0] == utc("2013-12-26T03:59:35")
    assert second.events[0][0] == utc("2014-01-07T03:59:35")


def test_a_given_year_waits_for_the_whole_log() -> None:
    reader = HTCondorLogReader(ReaderOptions(year=2014))
    log = record(0, date="12/26 03:59:35") + record(5, date="01/07 03:59:35")
    assert reader.read(log).consumed == 0
    assert len(reader.read(log, final=True).events) == 2


@pytest.mark.parametrize("date", ["02/30 03:17:00", "13/01 03:17:00", "2026-02-29 03:17:00"])
def test_a_day_that_never_was_is_rejected(date: str) -> None:
    options = ReaderOptions(year=2026)
    reading = HTCondorLogReader(options).read(record(0, date=date), final=True)
    assert reading.rejected == {"date": 1}


def test_without_any_year_the_dates_are_rejected_and_a_warning_says_why() -> None:
    reading = HTCondorLogReader(ReaderOptions()).read(record(0, date="11/21 03:17:00"), final=True)
    assert reading.rejected == {"date": 1}
    assert "set the year" in reading.warnings[0]


def test_an_unknown_time_zone_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="Europe/Nowhere"):
        HTCondorLogReader(ReaderOptions(timezone="Europe/Nowhere"))
