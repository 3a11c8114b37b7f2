"""The site's wall clock: the hour of day and of week of an event time."""

import datetime as dt
import re
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo

from outrider.model.errors import ConfigurationError

if TYPE_CHECKING:  # a command that only asks the daemon reads a zone's name, and needs no numpy
    import numpy as np
    from numpy.typing import NDArray

HOUR_S = 3_600
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday; Monday is 0


def day_second(clock: str) -> float:
    """Seconds since midnight of a time of day, ``HH:MM`` or ``HH:MM:SS``.

    Raises:
        ValueError: it is not a time of day.
    """
    match = _CLOCK.fullmatch(clock)
    hour, minute, second = (int(part or 0) for part in match.groups()) if match else (99, 0, 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f'"{clock}" is no time of day; expected "03:00"')
    return float(hour * 3600 + minute * 60 + second)


def time_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name.

    Raises:
        ConfigurationError: there is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # what ZoneInfo raises for odd names
        raise ConfigurationError(
            f'time zone "{name}" is not known; expected "Europe/Berlin"'
        ) from error


class LocalTime(Protocol):
    """Turns event time (seconds) into seconds since Monday 00:00 local time."""

    def week_second(self, time_s: float) -> float:
        """Seconds since the last Monday 00:00, local time, in [0, 604800)."""
        ...

    def week_seconds(self, times_s: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """Return `week_second` of an array of times."""
        ...


class TraceTime:
    """Time of a trace in seconds from a local wall-clock start, without daylight saving.

    Args:
        start: wall clock of second 0 (a naive datetime, as in ``site.toml``).
    """

    def __init__(self, start: dt.datetime) -> None:
        midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
        self.start = start
        self.offset_s = start.weekday() * DAY_S + (start - midnight).total_seconds()

    def week_second(self, time_s: float) -> float:
        """Seconds since the last Monday 00:00 of the trace's own clock."""
        return (time_s + self.offset_s) % WEEK_S

    def week_seconds(self, times_s: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """Return `week_second` of an array of times."""
        return (times_s + self.offset_s) % WEEK_S


class ZoneTime:
    """Unix time in a time zone; daylight saving is looked up once per quarter of an hour."""

    def __init__(self, zone: str) -> None:
        self._zone = time_zone(zone)
        self._quarter = -1
        self._shift_s = 0.0

    def week_second(self, time_s: float) -> float:
        """Seconds since the last Monday 00:00 in the zone."""
        quarter = int(time_s // 900)
        if quarter != self._quarter:
            self._shift_s = self._shift_in(quarter)
            self._quarter = quarter
        return (time_s + self._shift_s) % WEEK_S

    def week_seconds(self, times_s: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """Return `week_second` of an array of times."""
        import numpy as np

        quarters, at = np.unique(times_s // 900, return_inverse=True)
        shifts_s = np.array([self._shift_in(int(quarter)) for quarter in quarters])
        seconds: NDArray[np.float64] = (times_s + shifts_s[at]) % WEEK_S
        return seconds

    def _shift_in(self, quarter: int) -> float:
        """Seconds to add to Unix time in this quarter of an hour."""
        offset = dt.datetime.fromtimestamp(quarter * 900, self._zone).utcoffset()
        return (offset or dt.timedelta()).total_seconds() + _EPOCH_WEEKDAY * DAY_S
