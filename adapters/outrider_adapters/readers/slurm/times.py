"""Slurm's points in time and spans of time, turned into seconds."""

import datetime as dt
import re
from typing import Final

from outrider.api import ReaderOptions
from outrider_adapters.readers.repeated_hour import again_s
from outrider_adapters.readers.short_cache import cached_if_short

DAY_S: Final = 86_400
_LAST_S: Final = 253_402_300_800  # the year 10,000
_MOST_MINUTES: Final = 4096  # a cache entry is about 100 bytes; older minutes hardly come again
_MOST_LIMIT_MIN: Final = 4_294_967_293  # above it are Slurm's NO_VAL and INFINITE
_UNSET: Final = frozenset({"", "unknown", "none", "invalid", "n/a"})
_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d):([0-5]\d|60)(?:\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_SPAN = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d\d)(?:\.\d{1,9})?", re.ASCII)
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)


class Clock:
    """Turns points in time into Unix seconds.

    Slurm writes the local time of whoever printed it (``sacct``: the shell's, jobcomp: the
    controller's) and names no zone. It is taken to be local time of `options.timezone`, and UTC
    where that is None; of an hour that comes twice, the first is meant unless that would be too
    early (see `at`). A time that does name its zone, and Unix seconds
    (``SLURM_TIME_FORMAT=%s``), are taken at their word.

    Raises:
        ConfigurationError: the time zone is not known.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._zone = options.zone()
        self._minutes: dict[str, float] = {}
        self._again: dict[str, float] = {}  # minutes that come twice: when they come again

    def at(self, text: str, after_s: float | None = None) -> float | None:
        """Unix seconds, or None where the time was never set (``Unknown``, the first of 1970).

        Args:
            text: in Slurm's words.
            after_s: the time cannot be before this: of an hour that comes twice it is then the
                second.

        Raises:
            ValueError: it is no time.
        """
        match = _STAMP.fullmatch(text)
        if match is not None:
            minute, second, zone = match.groups()
            minute = minute + zone if zone else minute
            time_s = self._minute_s(minute) + int(second)
            if after_s is not None and time_s < after_s and minute in self._again:
                time_s = self._again[minute] + int(second)
        elif text.lower() in _UNSET:
            return None
        elif _WHOLE.fullmatch(text):
            time_s = float(text)
        else:
            raise ValueError(f'"{text}" is no time; right would be "2026-11-21T03:17:00"')
        if time_s >= _LAST_S:
            raise ValueError(f'"{text}" is too far away')
        return time_s if time_s >= DAY_S else None

    def _minute_s(self, minute: str) -> float:
        start_s = self._minutes.get(minute)
        if start_s is None:
            there = dt.datetime.fromisoformat(minute)
            if there.tzinfo is None:
                there = there.replace(tzinfo=self._zone)
            try:
                start_s, again = there.timestamp(), again_s(there)
            except OverflowError as error:
                raise ValueError(f'"{minute}" is too far away') from error
            if len(self._minutes) >= _MOST_MINUTES:
                self._minutes.clear()
                self._again.clear()
            self._minutes[minute] = start_s
            if again is not None:
                self._again[minute] = again
        return start_s


@cached_if_short(entries=4096)
def span_s(text: str) -> float | None:
    """Seconds of ``[days-][hours:]minutes:seconds``, or None if it is none.

    >>> span_s("1-06:00:00")
    108000.0
    """
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


@cached_if_short(entries=4096)
def limit_s(text: str) -> float | None:
    """Seconds of a time limit: a span, or whole minutes. None for ``UNLIMITED`` and the like.

    >>> limit_s("1440"), limit_s("Partition_Limit")
    (86400.0, None)
    """
    if _WHOLE.fullmatch(text):
        minutes = int(text)
        return minutes * 60.0 if 0 < minutes <= _MOST_LIMIT_MIN else None
    return span_s(text) or None
