"""When owners come back: the hazard of a log-in by cluster and hour of the week."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WEEK_H: Final = 168
PRIOR_PER_H: Final = 0.1
"""Hazard that is assumed before anybody came: log-ins per machine and hour."""

_HOURS = np.arange(WEEK_H)
_KIND: Final = _HOURS % 24 + 24 * (_HOURS >= 5 * 24)
"""Of each hour of the week: the same hour of any weekday, or of any day of a weekend, is akin."""
_OF_KIND: Final = (_KIND[:, None] == np.arange(48)) * 1.0


class OwnerReturn:
    """Hazard of an owner's return: a level by cluster and hour of the week x a regime.

    Log-ins and *exposure* (machine-hours without an owner) are counted by cluster and hour of the
    week, and fade by `forgetting` from week to week. A level with little exposure is drawn to that
    of its cluster's akin hours, these to the site's, and these to the mean of all hours; each of
    these priors weighs `shrinkage_h`. The regime (term, vacation, a busy week) is the ratio of
    log-ins to those expected over the last days: the site's, to which each cluster's own is drawn.
    Exposure is counted in units of the regime, so that a vacation does not wash out what the
    weeks of a term look like.

    Args:
        forgetting: worth of last week's counts this week, in (0, 1].
        shrinkage_h: machine-hours that a prior weighs.
        regime_h: mean memory of the regime, hours.

    Attributes:
        came: (clusters, 168) log-ins.
        exposed_h: (clusters, 168) exposure, machine-hours in a regime of 1.
        seen: (clusters,) log-ins of late.
        expected: (clusters,) what the levels led to expect of late.
    """

    def __init__(self, forgetting: float, shrinkage_h: float, regime_h: float) -> None:
        self._forgetting = forgetting
        self._shrinkage_h = shrinkage_h
        self._fading = float(np.exp(-1.0 / regime_h))
        self.came = np.zeros((0, WEEK_H))
        self.exposed_h = np.zeros((0, WEEK_H))
        self.seen = np.zeros(0)
        self.expected = np.zeros(0)

    def grow(self, clusters: int) -> None:
        """There are so many clusters now; of new ones nothing is known."""
        more = clusters - len(self.came)
        if not more:
            return
        self.came = np.pad(self.came, ((0, more), (0, 0)))
        self.exposed_h = np.pad(self.exposed_h, ((0, more), (0, 0)))
        self.seen = np.pad(self.seen, (0, more))
        self.expected = np.pad(self.expected, (0, more))

    def take(self, hour: int, came: Floats, exposed_h: Floats, level: Floats) -> None:
        """Count an hour that is over.

        Args:
            hour: of the week, 0 to 167.
            came: (clusters,) log-ins.
            exposed_h: (clusters,) machine-hours without an owner.
            level: (clusters,) what `levels` said of this hour.
        """
        regime = self.regime()
        self.came[:, hour] = self._forgetting * self.came[:, hour] + came
        self.exposed_h[:, hour] = self._forgetting * self.exposed_h[:, hour] + exposed_h * regime
        self.seen = self._fading * self.seen + came
        self.expected = self._fading * self.expected + level * exposed_h

    def regime(self) -> Floats:
        """(clusters,) how much more, or less, owners come of late than the levels say."""
        site = (self.seen.sum() + 1.0) / (self.expected.sum() + 1.0)
        weight = self._shrinkage_h * PRIOR_PER_H
        regime: Floats = (self.seen + weight * site) / (self.expected + weight)
        return regime

    def levels(self) -> Floats:
        """(clusters, 168) hazard per hour in a regime of 1."""
        came, exposed_h, prior_h = self.came, self.exposed_h, self._shrinkage_h
        mean = (came.sum() + 1.0) / (exposed_h.sum() + 1.0 / PRIOR_PER_H)
        akin, akin_h = came @ _OF_KIND, exposed_h @ _OF_KIND
        site = (akin.sum(0) + prior_h * mean) / (akin_h.sum(0) + prior_h)
        own = (akin + prior_h * site) / (akin_h + prior_h)
        levels: Floats = (came + prior_h * own[:, _KIND]) / (exposed_h + prior_h)
        return levels

    def save(self) -> dict[str, Any]:
        """Counts as plain data, cluster by cluster."""
        names = ("came", "exposed_h", "seen", "expected")
        return {name: getattr(self, name).tolist() for name in names}

    def restore(self, saved: dict[str, Any], clusters: list[int], n: int) -> None:
        """Go on from `save`; `clusters[i]` is today's number of saved cluster i, of `n` in all."""
        for name, counts in saved.items():
            width = (WEEK_H,) if name in ("came", "exposed_h") else ()
            today = np.zeros((n, *width))
            today[clusters] = np.reshape(counts, (len(clusters), *width))
            setattr(self, name, today)


def cumulative(levels: Floats, from_h: float, ahead_h: Floats) -> Floats:
    """Integral of weekly levels, from a moment of the week over so many hours ahead.

    Args:
        levels: (clusters, 168) hazard per hour.
        from_h: hours since Monday 00:00.
        ahead_h: (n,) hours from there, finite.

    Returns:
        (clusters, n) log-ins to be expected on a free machine in a regime of 1.
    """
    knots = np.concatenate([[from_h], from_h + ahead_h])
    whole = np.floor(knots)
    weeks, hour = np.divmod(whole.astype(np.intp), WEEK_H)
    sums = np.cumsum(levels, axis=1)
    at_hour = levels[:, hour]
    before = sums[:, hour] - at_hour
    reached = before + weeks * sums[:, -1:] + (knots - whole) * at_hour
    total: Floats = reached[:, 1:] - reached[:, :1]
    return total
