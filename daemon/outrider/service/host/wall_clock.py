"""This host's clock, and how far it is believed: against records dated wrongly, and itself.

A record dated 2099 must not move anything for ever, and neither must a clock that was years ahead
for an hour. So there are two bounds. Records more than `RECORD_AHEAD_S` ahead are set aside: less
is a log without a time zone read in another one, and waits until the clock gets there. The site's
time is never more than `SITE_AHEAD_S` ahead of the clock; where it is, the clock was put back.
"""

import time
from collections.abc import Callable
from typing import Final

from outrider.engine.ingest.set_aside import TimeLimits

EARLIEST_S: Final = 978_307_200.0
"""2001-01-01: clocks that were never set begin in 1970, 1980 or 2000."""
RECORD_AHEAD_S: Final = 86_400.0
SITE_AHEAD_S: Final = 3_600.0
_SLACK_S: Final = 60.0
_RELEASED_S: Final = 1_767_225_600.0
"""2026-01-01: a clock before Outrider's first year is wrong, and no measure of others."""


class WallClock:
    """This host's clock.

    Args:
        read: Unix seconds now.
    """

    def __init__(self, read: Callable[[], float] = time.time) -> None:
        self._read = read

    @property
    def now_s(self) -> float:
        """Unix seconds now."""
        return self._read()

    def limits(self, site_now_s: float) -> TimeLimits:
        """Return which times of records are believed now.

        Args:
            site_now_s: the time at the site. A clock behind it may have been put back wrongly,
                and what comes in must not be lost by that.
        """
        now_s = self.now_s
        if now_s < _RELEASED_S:
            return TimeLimits(EARLIEST_S)
        return TimeLimits(EARLIEST_S, max(now_s, site_now_s) + RECORD_AHEAD_S)

    def latest_site_s(self) -> float | None:
        """A time at the site beyond this one is wrong, or this clock is; None: surely this one."""
        now_s = self.now_s
        return None if now_s < _RELEASED_S else now_s + SITE_AHEAD_S + _SLACK_S
