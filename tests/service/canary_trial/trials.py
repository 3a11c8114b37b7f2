"""Trial for tests: from Monday 4 January 2010, 00:00 UTC."""

import datetime as dt
from typing import Any

from outrider.service.canary_trial.trial import MEASURES, Trial, draw_days, midnights

DAY_S = 86_400.0
SUNDAY_S = dt.datetime(2010, 1, 3, 12, tzinfo=dt.UTC).timestamp()


def trial(seed: int = 1, days: int = 28, washout_s: float = 3_600.0, **more: Any) -> Trial:
    """Return a trial registered on a Sunday noon."""
    return Trial(
        registered_s=SUNDAY_S, policy="survival", settings={}, seed=seed,
        midnights_s=midnights(SUNDAY_S, days, dt.UTC), acts=draw_days(seed, days),
        washout_s=washout_s, measures=tuple(m.name for m in MEASURES), **more,
    )  # fmt: skip


def at(of: Trial, day: int, hour: float = 12.0) -> float:
    """Return a moment of a day of the trial."""
    return of.midnights_s[day] + hour * 3_600.0
