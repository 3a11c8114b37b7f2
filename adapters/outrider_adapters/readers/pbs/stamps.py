"""The time at the front of a record: local time of the server, turned into Unix seconds."""

import datetime as dt
import re
from typing import Final

from outrider.api import ReaderOptions

_MOST_MINUTES: Final = 4096  # a cache entry is about 100 bytes; older minutes hardly come again
_MINUTE = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d)", re.ASCII)


class Stamps:
    """Turns times such as ``11/21/2026 03:17:00`` into Unix seconds.

    PBS writes the local time of its server and names no zone. It is taken to be local time of
    `options.timezone`, and UTC where that is None; of an hour that comes twice, the first is
    meant. A stamp that does name a zone is taken at its word.

    Raises:
        ConfigurationError: the time zone is not known.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._zone = options.zone()
        self._minutes: dict[tuple[str, str | None], float] = {}

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
            start_s = self._read_minute(minute, zone)
            if len(self._minutes) >= _MOST_MINUTES:
                self._minutes.clear()
            self._minutes[key] = start_s
        return start_s + float(second)

    def _read_minute(self, minute: str, zone: str | None) -> float:
        match = _MINUTE.fullmatch(minute)
        if match is None:
            raise ValueError(f'"{minute}" is no date; right would be "11/21/2026 03:17"')
        month, day, year, hour, minutes = map(int, match.groups())
        there = _zone(zone) if zone else self._zone
        try:
            return dt.datetime(year, month, day, hour, minutes, tzinfo=there).timestamp()
        except OverflowError as error:
            raise ValueError(f'"{minute}" is too far away') from error


def _zone(text: str) -> dt.tzinfo:
    if text == "Z":
        return dt.UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return dt.timezone(dt.timedelta(minutes=-minutes if text[0] == "-" else minutes))
