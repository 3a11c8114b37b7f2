"""What one more job of each kind would meet here, asked now and then beside the daemon."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import structlog

from outrider.forecast.followed_site import FollowedSite
from outrider.forecast.one_more import OneMore, one_more
from outrider.forecast.outlook import Outlook
from outrider.model.disciplines import Discipline
from outrider.model.utility import TimeUtility
from outrider.service.config.loaded import LoadedConfig
from outrider.service.twin.starts_file import OneMoreTold, Wait

_REST: Final = 10.0
"""So many times as long as a look took it rests: expected starts come first."""
_BUDGET_S: Final = 20.0
"""After so many seconds of a look no further kind is asked about: those left are the rarest."""

log = structlog.get_logger()


class OneMoreCycle:
    """Asks for each kind of job, and says what its class makes of the wait.

    Args:
        loaded: the configuration, with the classes' time utility functions; asked each time.
        clock: seconds that only ever go on.

    Attributes:
        told: what was said last.
        asked_s: up to when the site was seen for it, Unix seconds; None: it was never asked.
    """

    def __init__(
        self,
        loaded: Callable[[], LoadedConfig],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loaded = loaded
        self._clock = clock
        self._rests_until = -math.inf
        self._rng = np.random.default_rng(0)
        self.told: list[OneMoreTold] = []
        self.asked_s: float | None = None

    def look(self, site: FollowedSite, outlook: Outlook, discipline: Discipline) -> bool:
        """Ask if it is time; whether it was. What goes wrong leaves nothing told, and a log line.

        Args:
            site: followed up to now.
            outlook: on it.
            discipline: the rule of its batch system.
        """
        began = self._clock()
        if began < self._rests_until:
            return False
        try:
            utilities = self._loaded().utilities()
            told = []
            for one in one_more(site, outlook, discipline, self._rng):
                told.append(_told(one, utilities))
                if self._clock() - began >= _BUDGET_S:
                    break
            self.told, self.asked_s = told, site.now_s
        except Exception:  # expected starts must go on
            log.exception("fail_one_more")
            self.told, self.asked_s = [], None
        ended = self._clock()
        self._rests_until = ended + _REST * (ended - began)
        return True


def _told(one: OneMore, utilities: Mapping[str, TimeUtility]) -> OneMoreTold:
    spec, function = one.kind.spec, utilities.get(one.kind.job_class)
    worth = None
    if function is not None and len(one.waits_s):
        worth = float(function.unit(one.waits_s + one.runs_s, one.runs_s).mean())
    return OneMoreTold(
        vo=one.kind.vo,
        job_class=one.kind.job_class,
        cpus=spec.cpus,
        estimate_s=spec.estimate_s,
        n=one.kind.n,
        wait_s=None if one.wait_s is None else Wait(*one.wait_s.tolist()),
        utility=worth,
    )
