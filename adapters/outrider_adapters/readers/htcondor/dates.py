"""Convert the dates of an HTCondor log, with and without a year, into Unix seconds."""

import datetime as dt
import re
from itertools import pairwise
from typing import Final, NamedTuple

from outrider.api import ReaderOptions
from outrider_adapters.readers.shared import MAX_DISORDER_S, again_s

DAY_S: Final = 86_400
NEVER_YET: Final = float("-inf")
_ISO = re.compile(rb"(\d{4})-(\d\d?)-(\d\d?)[ T](\d\d):(\d\d)")
_SLASHES = re.compile(rb"(\d\d?)/(\d\d?)(?:/(\d{4}|\d\d))?[ T](\d\d):(\d\d)")
_STAMP = re.compile(
    r"\s*(\d{4}-\d\d?-\d\d?[ T]\d\d:\d\d):(\d\d(?:\.\d+)?)(Z|[+-]\d\d:?\d\d)?\s*", re.ASCII
)
_MAX_MINUTES = 4096  # a cache entry is about 100 bytes; older minutes rarely recur
_MAX_LATE_DAYS = 2  # a record written this much out of order is late, not of another year


class Day(NamedTuple):
    """Position in a log without years: the day of its newest date, and that day's year."""

    year: int
    month: int
    day: int


class Dates:
    """Converter of the dates of one log into Unix seconds.

    A date with a zone is converted by that zone. One without is local time of `options.timezone`,
    and UTC if that is None. Of a repeated hour the first is assumed until the dates of the log
    decrease. A date without a year gets one from the position in the log: `anchor` finds the
    first year, and from there the year changes when the month decreases.

    Args:
        options: year, zone and modification time of the log.

    Attributes:
        last_s: the date returned last, in Unix seconds; set it to go back there.

    Raises:
        ConfigurationError: the time zone is unknown.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self.last_s = NEVER_YET
        self._zone = options.zone()
        self._options = options
        self._minutes: dict[bytes, float] = {}
        self._again: dict[bytes, float] = {}  # second time of minutes that occur twice
        self._day: Day | None = None
        self._warnings: list[str] = []

    def at(self, minute: bytes, second: bytes, zone: bytes | None) -> float:
        """Return Unix seconds of a date.

        Args:
            minute: the date up to the minutes, such as ``03/06 11:47`` or ``2026-11-21T03:17``.
            second: seconds, with or without a fraction.
            zone: ``Z``, ``+01:00``, ``+0100`` or None.

        Raises:
            ValueError: there is no such day, or its year is unknown.
        """
        key = minute + zone if zone else minute
        start_s = self._minutes.get(key)
        if start_s is None:
            there = self._read_minute(minute, zone)
            start_s, again = there.timestamp(), again_s(there)
            if len(self._minutes) >= _MAX_MINUTES:
                self._minutes.clear()
                self._again.clear()
            self._minutes[key] = start_s
            if again is not None:
                self._again[key] = again
        time_s = start_s + float(second)
        if self._again and time_s < self.last_s - MAX_DISORDER_S and key in self._again:
            time_s = self._again[key] + float(second)
        self.last_s = time_s
        return time_s

    def at_stamp(self, stamp: str) -> float:
        """Return Unix seconds of a ClassAd's ``EventTime``. Raises `ValueError`: it is invalid."""
        match = _STAMP.fullmatch(stamp)
        if match is None:
            raise ValueError(f'"{stamp}" is not a date; expected "2026-11-21T03:17:00.418Z"')
        minute, second, zone = match.groups()
        return self.at(minute.encode(), second.encode(), zone.encode() if zone else None)

    def take_warnings(self) -> list[str]:
        """Return and clear the warnings for the operator, each once."""
        warnings, self._warnings = self._warnings, []
        return warnings

    @property
    def day(self) -> Day | None:
        """Position in a log without years, or None; set it to go back there."""
        return self._day

    @day.setter
    def day(self, day: Day | None) -> None:
        if day != self._day:
            self._day = day
            self._minutes.clear()
            self._again.clear()

    def anchor(self, days: list[tuple[int, int]], whole: bool) -> bool:
        """Find the year of the first of some dates without one.

        `ReaderOptions.year` is the year of the last date of the log, so it can only be used with
        the whole log. A modification time is no earlier than any date, so it can also be used with
        a part.

        Args:
            days: (month, day) of every available record, in their order; at least one.
            whole: they are all of the log.

        Returns:
            False if the whole log is needed first.
        """
        options = self._options
        if options.year is None and options.modified_s is None:
            self._warnings.append("the dates have no year; set the year")
            return True
        if options.year is not None and not whole:
            return False
        year = options.year
        if year is None:
            year = self._latest_year(days[-1])
            self._warnings.append(
                f"the dates have no year: the last of them is assumed to be in {year}, "
                "by the time the file was last modified"
            )
        turns = sum(_turn(before, after) for before, after in pairwise(days))
        self.day = Day(year - turns, *days[0])
        return True

    def _latest_year(self, day: tuple[int, int]) -> int:
        """Return the latest year in which this day is not after the file's modification."""
        limit_s = (self._options.modified_s or 0.0) + DAY_S
        year = dt.datetime.fromtimestamp(limit_s, self._zone).year
        for candidate in range(year, year - 9, -1):  # nine, for the 29th of February
            try:
                if dt.datetime(candidate, *day, tzinfo=self._zone).timestamp() <= limit_s:
                    return candidate
            except ValueError:
                continue
        return year

    def _read_minute(self, minute: bytes, zone: bytes | None) -> dt.datetime:
        match = _ISO.fullmatch(minute)
        if match is not None:
            year, month, day, hour, minutes = map(int, match.groups())
        else:
            match = _SLASHES.fullmatch(minute)
            if match is None:
                raise ValueError(f"{minute!r} is not a date")
            month, day, hour, minutes = (int(match[group]) for group in (1, 2, 4, 5))
            year = int(match[3]) if match[3] else self._year_of(month, day)
            year += 2000 if year < 100 else 0
        return dt.datetime(
            year, month, day, hour, minutes, tzinfo=_zone(zone) if zone else self._zone
        )

    def _year_of(self, month: int, day: int) -> int:
        here = self._day
        if here is None:
            raise ValueError("the date has no year, and it is unknown")
        if (month, day) == here[1:]:
            return here.year
        dt.date(2000, month, day)  # reject a day that is in no year before moving to it
        self.day = Day(here.year + _turn((here.month, here.day), (month, day)), month, day)
        return self._day.year if self._day else here.year


def _turn(before: tuple[int, int], after: tuple[int, int]) -> int:
    """Return the difference in years of two neighbouring (month, day): 1, 0 or, if late, -1."""
    if after[0] == before[0]:
        return 0
    try:
        gap = dt.date(2000, *after).toordinal() - dt.date(2000, *before).toordinal()
    except ValueError:
        return 0
    if gap < 0:
        return 1 if gap < -_MAX_LATE_DAYS else 0
    return -1 if gap >= 366 - _MAX_LATE_DAYS else 0


def _zone(text: bytes) -> dt.tzinfo:
    if text == b"Z":
        return dt.UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return dt.timezone(dt.timedelta(minutes=-minutes if text[:1] == b"-" else minutes))
