"""A canary trial by days: on which days it is acted, drawn and registered beforehand. Pure code.

On days drawn at random a policy acts on all jobs that may be acted on, on the others on none. The
same weekday of two weeks that follow each other is a pair: one of it acts, the other is its
control. So owners' and users' weekly habits are on both sides alike (a paired, randomised design:
Box, Hunter and Hunter, *Statistics for Experimenters*, ch. 3).
"""

import datetime as dt
import random
from bisect import bisect_right
from itertools import pairwise
from typing import Any, Final

import msgspec

_WEEK: Final = 7
FORTNIGHT: Final = 2 * _WEEK
"""Days of a trial come in whole ones: each holds seven pairs."""
RUNS_OUT_S: Final = 86_400.0
"""After its last day nothing acts for so long, until most runs that began in it have ended."""


def draw_days(seed: int, days: int) -> tuple[bool, ...]:
    """(days,) whether each acts: of the two days of a pair one does, of a week three or four.

    Args:
        seed: of the draw.
        days: a multiple of 14.

    >>> sum(draw_days(seed=5, days=28))
    14
    """
    rng = random.Random(seed)
    acts: list[bool] = []
    for _ in range(days // FORTNIGHT):
        chosen = set(rng.sample(range(_WEEK), rng.choice((_WEEK // 2, _WEEK // 2 + 1))))
        first = [day in chosen for day in range(_WEEK)]
        acts += [*first, *(not one for one in first)]
    return tuple(acts)


def pairs_of(days: int) -> list[tuple[int, int]]:
    """Numbers of the two days of each pair, the earlier one first."""
    return [
        (begin + day, begin + day + _WEEK)
        for begin in range(0, days, FORTNIGHT)
        for day in range(_WEEK)
    ]


def midnights(after_s: float, days: int, zone: dt.tzinfo) -> tuple[float, ...]:
    """(days + 1,) Unix seconds of the next midnights after a moment, by a wall clock."""
    first = dt.datetime.fromtimestamp(after_s, zone).date() + dt.timedelta(days=1)
    return tuple(
        dt.datetime.combine(first + dt.timedelta(days=day), dt.time(), zone).timestamp()
        for day in range(days + 1)
    )


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What is registered before the first day, and not changed from then on.

    Attributes:
        registered_s: when, by the site's clock (Unix seconds, as all times here).
        policy: who acts.
        settings: that policy's.
        seed: of the draw of the days.
        midnights_s: (days + 1,) when each day begins, and the last one ends.
        acts: (days,) whether the policy acts on it.
        washout_s: after a change from acting to not acting or back, what begins within so many
            seconds counts for neither.
        measures: what is compared.
        stated: by measure, what the twin stated for this policy beforehand; empty: nothing.
        stated_as: ``next``: as a forecast; ``past``: as what would have been; empty: not at all.
        terms: digest of all in the configuration that must stay as it is.
    """

    registered_s: float
    policy: str
    settings: dict[str, Any]
    seed: int
    midnights_s: tuple[float, ...]
    acts: tuple[bool, ...]
    washout_s: float
    measures: tuple[str, ...]
    stated: dict[str, dict[str, float]] = {}
    stated_as: str = ""
    terms: str = ""

    @property
    def days(self) -> int:
        """How many there are."""
        return len(self.acts)

    @property
    def ends_s(self) -> float:
        """When its outcome is worked out: a day after its last one."""
        return self.midnights_s[-1] + RUNS_OUT_S

    def day_at(self, time_s: float) -> int | None:
        """The number of the day; None before the first and after the last."""
        day = bisect_right(self.midnights_s, time_s) - 1
        return day if 0 <= day < self.days else None

    def acts_at(self, time_s: float) -> bool:
        """Whether the policy acts at a moment."""
        day = self.day_at(time_s)
        return day is not None and self.acts[day]

    def counts_for(self, time_s: float) -> int | None:
        """The day for which what begins to wait now counts; None: for none, or washed out."""
        day = self.day_at(time_s)
        if day is None:
            return None
        acted_before = self.acts[day - 1] if day else False
        changed = self.acts[day] != acted_before
        if changed and time_s < self.midnights_s[day] + self.washout_s:
            return None
        return day

    def next_change_s(self, time_s: float) -> float | None:
        """When acting next begins or ends; None: it does not any more."""
        told = [False, *self.acts, False]
        changes = (
            midnight_s
            for midnight_s, (before, after) in zip(self.midnights_s, pairwise(told), strict=True)
            if before != after
        )
        return next((change_s for change_s in changes if change_s > time_s), None)
