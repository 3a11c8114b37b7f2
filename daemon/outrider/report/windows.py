"""Windows of time: whole weeks of a site's wall clock, or two given moments."""

import datetime as dt
from math import inf, nextafter
from typing import NamedTuple

from outrider.model.errors import ConfigurationError


class Window(NamedTuple):
    """Half-open interval of time in Unix seconds: the end is not part of it."""

    begin_s: float
    end_s: float

    @property
    def span_s(self) -> float:
        """Seconds from begin to end."""
        return self.end_s - self.begin_s

    def __contains__(self, time_s: object) -> bool:
        return isinstance(time_s, float | int) and self.begin_s <= time_s < self.end_s

    @classmethod
    def closed(cls, begin_s: float, end_s: float) -> "Window":
        """Return a window that includes its last moment."""
        return cls(begin_s, nextafter(end_s, inf))


def whole_weeks(last_s: float, weeks: int, zone: dt.tzinfo) -> tuple[Window, Window]:
    """Return the last whole weeks (Monday to Monday, wall clock), and as many before them.

    Args:
        last_s: the last known moment; a week that ends later is not whole.
        weeks: how many.
        zone: of the site.
    """
    last = dt.datetime.fromtimestamp(last_s, zone)
    end = dt.datetime.combine(last.date() - dt.timedelta(days=last.weekday()), dt.time(), zone)
    edges = [_back(end, n * weeks, zone).timestamp() for n in (2, 1, 0)]
    return Window(edges[1], edges[2]), Window(edges[0], edges[1])


def _back(monday: dt.datetime, weeks: int, zone: dt.tzinfo) -> dt.datetime:
    """Return the midnight some weeks earlier, by the wall clock in spite of daylight saving."""
    return dt.datetime.combine(monday.date() - dt.timedelta(weeks=weeks), dt.time(), zone)


def asked_for(begin: str, end: str, zone: dt.tzinfo) -> tuple[Window, Window]:
    """Return the window between two moments, and one of the same length before it.

    Args:
        begin: ISO 8601; without an offset by the site's wall clock.
        end: likewise.
        zone: of the site.

    Raises:
        ConfigurationError: a moment cannot be parsed, or the end is not after the begin.
    """
    window = Window(_moment("--begin", begin, zone), _moment("--end", end, zone))
    if window.span_s <= 0.0:
        raise ConfigurationError(
            f'--begin "{begin}" --end "{end}": the end is not after the begin'
        )  # fmt: skip
    return window, Window(window.begin_s - window.span_s, window.begin_s)


def _moment(option: str, text: str, zone: dt.tzinfo) -> float:
    try:
        moment = dt.datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise ConfigurationError(
            f'{option} "{text}": expected ISO 8601, as 2026-03-02 or 2026-03-02T06:00+01:00'
        ) from error
