"""The time at the front of a record: local time of the server, turned into Unix seconds."""

import datetime as dt
import re
from typing import Final

from outrider.api import ReaderOptions
from outrider_adapters.readers.repeated_hour import LATE_S, again_s

_MOST_MINUTES: Final = 4096  # a cache entry is about 100 bytes; older minutes hardly come again
_MINUTE = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d)", re.ASCII)


class Stamps:
    """Turns times such as ``11/21/2026 03:17:00`` into Unix seconds.

    PBS writes the local time of its server and names no zone. It is taken to be local time of
    `options.timezone`, and UTC where that is None; of an hour that comes twice, the first is
    meant until the file falls back in it. A stamp that does name a zone is taken at its word.

    Attributes:
        last_s: the time given out last, in Unix seconds; None before the first.

    Raises:
        ConfigurationError: the time zone is not known.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self.last_s: float | None = None
        self._zone = options.zone()
        self._minutes: dict[tuple[str, str | None], float] = {}
        self._again: dict[tuple[str, str | None], float] = {}  # of those that come twice

    def at(self, minute: str, second: str, zone: str | None) -> float:
        """Unix seconds of a stamp.

        Args:
            minute: up to its minutes, such as ``11/21/2026 03:17``.
            second: seconds, with or without a fraction.
            zone: ``Z``, ``+01:00``, ``+0100`` or None.

        Raises:
            ValueError: there is no such day or hour.
        """
        key = minute, zone
        start_s = self._minutes.get(key)
        if start_s is None:
            start_s, again = self._read_minute(minute, zone)
            if len(self._minutes) >= _MOST_MINUTES:
                self._minutes.clear()
                self._again.clear()
            self._minutes[key] = start_s
            if again is not None:
                self._again[key] = again
        time_s = start_s + float(second)
        if self.last_s is not None and time_s < self.last_s - LATE_S:
            time_s = self._again.get(key, start_s) + float(second)
        self.last_s = time_s
        return time_s

    def _read_minute(self, minute: str, zone: str | None) -> tuple[float, float | None]:
        """When a minute begins, and when it does again, if it comes twice."""
        match = _MINUTE.fullmatch(minute)
        if match is None:
            raise ValueError(f'"{minute}" is no date; right would be "11/21/2026 03:17"')
        month, day, year, hour, minutes = map(int, match.groups())
        there = _zone(zone) if zone else self._zone
        try:
            time = dt.datetime(year, month, day, hour, minutes, tzinfo=there)
            return time.timestamp(), again_s(time)
        except OverflowError as error:
            raise ValueError(f'"{minute}" is too far away') from error


def _zone(text: str) -> dt.tzinfo:
    if text == "Z":
        return dt.UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return dt.timezone(dt.timedelta(minutes=-minutes if text[0] == "-" else minutes))
