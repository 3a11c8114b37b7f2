"""The host's clock, with bounds against wrongly dated records and against a wrong clock.

A record dated 2099 must have no permanent effect, and neither must a clock that was years ahead for
an hour. So there are two bounds. Records more than `RECORD_AHEAD_S` ahead are rejected. Records
that are less ahead may be of a log read in a wrong time zone, and wait until the clock catches up.
The site's time is never more than `SITE_AHEAD_S` ahead of the clock unless the clock was set back.
"""

import time
from collections.abc import Callable
from typing import Final

from outrider.engine.ingest.set_aside import TimeLimits

EARLIEST_S: Final = 978_307_200.0
"""2001-01-01: clocks that were never set start in 1970, 1980 or 2000."""
RECORD_AHEAD_S: Final = 86_400.0
SITE_AHEAD_S: Final = 3_600.0
_SLACK_S: Final = 60.0
_RELEASED_S: Final = 1_767_225_600.0
"""2026-01-01: a clock before Outrider's first year is wrong, and cannot check others."""


class WallClock:
    """The clock of this host.

    Args:
        read: returns Unix seconds.
    """

    def __init__(self, read: Callable[[], float] = time.time) -> None:
        self._read = read

    @property
    def now_s(self) -> float:
        """The current time, in Unix seconds."""
        return self._read()

    def limits(self, site_now_s: float) -> TimeLimits:
        """Return the range of record times that are accepted now.

        Args:
            site_now_s: the time at the site. A clock behind it may have been set back wrongly, and
                arriving records must not be lost by that.
        """
        now_s = self.now_s
        if now_s < _RELEASED_S:
            return TimeLimits(EARLIEST_S)
        return TimeLimits(EARLIEST_S, max(now_s, site_now_s) + RECORD_AHEAD_S)

    def latest_site_s(self) -> float | None:
        """Return the latest plausible time at the site; None: this clock itself is wrong."""
        now_s = self.now_s
        return None if now_s < _RELEASED_S else now_s + SITE_AHEAD_S + _SLACK_S
