"""Hazard of owners' returns: log-ins by cluster and hour of the week."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WEEK_H: Final = 168
PRIOR_PER_H: Final = 0.1
"""Prior hazard: log-ins per machine and hour."""

_HOURS = np.arange(WEEK_H)
_KIND: Final = _HOURS % 24 + 24 * (_HOURS >= 5 * 24)
"""Kind of each hour of the week: hour of day on weekdays (0-23) or at weekends (24-47)."""
_IS_OF_KIND: Final = (_KIND[:, None] == np.arange(48)) * 1.0


class OwnerReturn:
    """Hazard of an owner's return: a level by cluster and hour of the week, times a regime.

    Log-ins and *exposure* (machine-hours without an owner) are counted by cluster and hour of the
    week, and decay by `forgetting` from week to week. A level with little exposure is shrunk
    towards that of its cluster's hours of the same kind, these towards the site's, and these
    towards the mean of all hours; each prior weighs `shrinkage_h`. The regime (term, vacation, a
    busy week) is the ratio of log-ins to expected log-ins over the last days; each cluster's is
    shrunk towards the site's. Exposure is counted in units of the regime, so that a vacation does
    not change the levels learned in term.

    Args:
        forgetting: factor on the counts from one week to the next, in (0, 1].
        shrinkage_h: weight of a prior, machine-hours.
        regime_h: decay time of the regime, hours.

    Attributes:
        came: (clusters, 168) decayed count of log-ins.
        exposed_h: (clusters, 168) decayed exposure, machine-hours in a regime of 1.
        seen: (clusters,) recent log-ins, decayed by `regime_h`.
        expected: (clusters,) log-ins that the levels predict for the same hours, same decay.
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
        """Extend the arrays to this many clusters; new ones have no counts."""
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
            level: (clusters,) the column of `levels` for this hour.
        """
        regime = self.regime()
        self.came[:, hour] = self._forgetting * self.came[:, hour] + came
        self.exposed_h[:, hour] = self._forgetting * self.exposed_h[:, hour] + exposed_h * regime
        self.seen = self._fading * self.seen + came
        self.expected = self._fading * self.expected + level * exposed_h

    def regime(self) -> Floats:
        """Return (clusters,) the ratio of recent log-ins to those that the levels predict."""
        weight = self._shrinkage_h * PRIOR_PER_H
        prior = weight * self._regime_of_site()
        regime: Floats = (self.seen + prior) / (self.expected + weight)
        return regime

    def regime_of(self, cluster: int) -> float:
        """Return the `regime` of one cluster, in a third of the time."""
        weight = self._shrinkage_h * PRIOR_PER_H
        seen, expected = self.seen.item(cluster), self.expected.item(cluster)
        return (seen + weight * self._regime_of_site()) / (expected + weight)

    def _regime_of_site(self) -> float:
        return (float(self.seen.sum()) + 1.0) / (float(self.expected.sum()) + 1.0)

    def levels(self) -> Floats:
        """Return (clusters, 168) the hazard per hour in a regime of 1."""
        came, exposed_h, prior_h = self.came, self.exposed_h, self._shrinkage_h
        mean = (came.sum() + 1.0) / (exposed_h.sum() + 1.0 / PRIOR_PER_H)
        of_kind, of_kind_h = came @ _IS_OF_KIND, exposed_h @ _IS_OF_KIND
        site = (of_kind.sum(0) + prior_h * mean) / (of_kind_h.sum(0) + prior_h)
        own = (of_kind + prior_h * site) / (of_kind_h + prior_h)
        levels: Floats = (came + prior_h * own[:, _KIND]) / (exposed_h + prior_h)
        return levels

    def save(self) -> dict[str, Any]:
        """Return the counts as plain data, cluster by cluster."""
        names = ("came", "exposed_h", "seen", "expected")
        return {name: getattr(self, name).tolist() for name in names}

    def restore(self, saved: dict[str, Any], clusters: list[int], n: int) -> None:
        """Restore what `save` returned; saved cluster i now is `clusters[i]` of `n`."""
        for name, counts in saved.items():
            width = (WEEK_H,) if name in ("came", "exposed_h") else ()
            today = np.zeros((n, *width))
            today[clusters] = np.reshape(counts, (len(clusters), *width))
            setattr(self, name, today)


def cumulative(levels: Floats, from_h: float, ahead_h: Floats) -> Floats:
    """Return the integral of weekly levels from a time of the week over so many hours ahead.

    Args:
        levels: (clusters, 168) hazard per hour.
        from_h: hours since Monday 00:00.
        ahead_h: (n,) hours from there, finite.

    Returns:
        (clusters, n) expected log-ins at a machine without an owner, in a regime of 1.
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
