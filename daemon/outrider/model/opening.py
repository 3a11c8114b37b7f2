"""Opening hours of a cluster: ``mon-fri 09:00-17:00, sat 10:00-14:00`` or ``always``."""

import re

from outrider.model.errors import ConfigurationError

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SPAN = re.compile(
    r"(?P<first>[a-z]{3})(?:-(?P<last>[a-z]{3}))?\s+"
    r"(?P<from_h>\d{1,2}):(?P<from_m>\d{2})-(?P<to_h>\d{1,2}):(?P<to_m>\d{2})"
)
MINUTES_A_WEEK = 7 * 24 * 60


class OpeningHours:
    """A week in minutes, one byte each: 1 while the cluster is open to its owners.

    Args:
        text: ``always``, ``never``, or spans ``DAY[-DAY] HH:MM-HH:MM`` separated by commas. A
            span may cross midnight (``fri 22:00-02:00``) and ``24:00`` is the end of a day.

    Raises:
        ConfigurationError: the text is none of these.

    >>> OpeningHours("mon-fri 09:00-17:00").is_open(9 * 3600)
    True
    """

    __slots__ = ("minutes", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        words = text.strip().lower()
        if words in ("always", "never"):
            self.minutes = bytes([words == "always"]) * MINUTES_A_WEEK
            return
        week = bytearray(MINUTES_A_WEEK)
        for part in words.split(","):
            _mark(week, part.strip(), text)
        self.minutes = bytes(week)

    def is_open(self, week_second: float) -> bool:
        """Whether it is open at this second since Monday 00:00."""
        return self.minutes[int(week_second) // 60] == 1


def _mark(week: bytearray, part: str, text: str) -> None:
    span = _SPAN.fullmatch(part)
    if span is None or span["first"] not in _DAYS or (span["last"] or "mon") not in _DAYS:
        raise ConfigurationError(
            f'opening hours "{text}": cannot read "{part}"; right would be "mon-fri 09:00-17:00"'
        )
    start = int(span["from_h"]) * 60 + int(span["from_m"])
    end = int(span["to_h"]) * 60 + int(span["to_m"])
    if max(start, end) > 24 * 60 or int(span["from_m"]) > 59 or int(span["to_m"]) > 59:
        raise ConfigurationError(
            f'opening hours "{text}": "{part}" names no time of day; right would be '
            '"mon-fri 09:00-17:00"'
        )
    if end <= start:
        end += 24 * 60
    first = _DAYS.index(span["first"])
    last = _DAYS.index(span["last"] or span["first"])
    for day in range(first, last + 1 if last >= first else last + 8):
        for minute in range(day * 1440 + start, day * 1440 + end):
            week[minute % MINUTES_A_WEEK] = 1


ALWAYS = OpeningHours("always")
