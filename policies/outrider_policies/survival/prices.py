"""What a completion would cost on each group of alike machines, at one moment."""

from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider_policies.survival.groups import Groups
from outrider_policies.survival.job_length import BINS, EDGES_S, MIDDLES_S, Lengths
from outrider_policies.survival.owner_return import cumulative

Floats = NDArray[np.float64]

HOUR_S: Final = 3600.0
LEAST_CHANCE: Final = 1e-9
"""Of completing; prices stay finite where the reboot comes first."""


class Prices:
    """Prices of a completion on every group, for jobs of each key.

    A key is the bin of a job's longest lost run x `BINS` + the bin of its age. With T the time
    until the host interrupts and S its survival function, L the length of a good job that is
    longer than the run it lost, K the time until a bad job of its age is removed:

        P     = E S(L)                      chance that it completes, if it is good
        price = W (E min(T, L) + odds E min(T, K)) / P + delay (1 / P - 1)

    That is what trying again and again on such machines would spend per completion: watt-hours of
    runs, good and bad, and `delay` watt-hours for each good run that is thrown away. Without that
    term hosts that interrupt soon would look cheap, for bad jobs die sooner there. A reboot
    interrupts for certain.

    Args:
        groups: the machines.
        watts: (groups,) of a busy machine.
        lengths: what is known of jobs.
        levels, regime: (clusters, 168) and (clusters,) hazards, see `OwnerReturn`.
        from_h: the moment, hours since Monday 00:00.
        reboot_h: hours from there until the reboot.
        delay_wh: price of a good run that is thrown away.
    """

    def __init__(
        self, groups: Groups, watts: Floats, lengths: Lengths, levels: Floats, regime: Floats,
        from_h: float, reboot_h: float, delay_wh: float,
    ) -> None:  # fmt: skip
        edges_h = np.minimum(EDGES_S / HOUR_S, reboot_h)
        width_h = np.diff(edges_h)
        in_time = width_h / np.diff(EDGES_S) * HOUR_S
        hazard = cumulative(levels, from_h, edges_h) * regime[:, None]
        survival = np.exp(-hazard[groups.cluster] * groups.frailty[:, None])
        survives = (survival[:, 1:] + survival[:, :-1]) / 2.0
        through_h = survives * width_h
        runs_h = (np.cumsum(through_h, axis=1) - through_h / 2.0).T
        ends = (survives * in_time).T
        self.groups = groups
        self._lengths = lengths
        self._ends = ends
        self._completes = np.maximum(lengths.good @ ends, LEAST_CHANCE)
        self._tries = 1.0 / self._completes
        good_h, bad_h = lengths.good @ runs_h, lengths.bad @ runs_h
        self._good_wh = watts * good_h * self._tries + delay_wh * (self._tries - 1.0)
        self._bad_wh = watts * bad_h
        self._least_good_wh = self._good_wh.min(axis=1, initial=np.inf)
        self._least_tries = self._tries.min(axis=1, initial=np.inf)
        self._least_bad_wh = self._bad_wh.min(axis=1, initial=np.inf)
        self._offers: dict[int, Offer] = {}

    def offer(self, key: int) -> "Offer":
        """What the groups offer to jobs of a key."""
        offer = self._offers.get(key)
        if offer is None:
            offer = self._offers[key] = Offer(self, key)
        return offer

    def bound_wh(self, key: int) -> float:
        """A price below which no group's lies: quick, and enough for most jobs that are held."""
        lost, age = divmod(key, BINS)
        bad_wh = self._lengths.odds[lost, age] * self._least_bad_wh[age]
        return float(self._least_good_wh[lost] + bad_wh * self._least_tries[lost])

    def of(self, key: int) -> Floats:
        """(groups,) price on each group, watt-hours."""
        lost, age = divmod(key, BINS)
        bad_wh = self._lengths.odds[lost, age] * self._bad_wh[age]
        prices: Floats = self._good_wh[lost] + bad_wh * self._tries[lost]
        return prices

    def good_ratio(self, key: int) -> float:
        """Chance that a job is good: that it ever completes."""
        lost, age = divmod(key, BINS)
        return 1.0 / (1.0 + self._lengths.odds.item(lost, age))

    def completes_ratio(self, key: int, at: int) -> float:
        """Chance that a run of a good job on group `at` completes it."""
        return float(self._completes[key // BINS, at])

    def predict(self, key: int, at: int) -> tuple[float, float]:
        """What is to be expected of a run on group `at`.

        Returns:
            the chance that it is evicted, given that nobody removes its job meanwhile, and the
            seconds that it runs if it completes.
        """
        lost, age = divmod(key, BINS)
        good = self.good_ratio(key)
        completes = good * self._completes.item(lost, at)
        evicted = good - completes + (1.0 - good) * self._not_removed.item(age, at)
        return evicted / (evicted + completes), self._completed_s.item(lost, at)

    @cached_property
    def _not_removed(self) -> Floats:
        """(BINS, groups): chance that a bad job of an age is evicted before it is removed."""
        not_removed: Floats = 1.0 - self._lengths.bad @ self._ends
        return not_removed

    @cached_property
    def _completed_s(self) -> Floats:
        """(BINS, groups): mean length of good jobs that lost such a run and complete there."""
        weighed = self._lengths.good @ (MIDDLES_S[:, None] * self._ends)
        completed_s: Floats = weighed * self._tries
        return completed_s


class Offer:
    """Prices of a completion for jobs of one key.

    Attributes:
        key: theirs.
        prices: whose offer it is.
        bound_wh: no group's price is less.
    """

    def __init__(self, prices: Prices, key: int) -> None:
        self.key = key
        self.prices = prices
        self.bound_wh = prices.bound_wh(key)

    @cached_property
    def _prices_wh(self) -> Floats:
        return self.prices.of(self.key)

    @cached_property
    def ranked(self) -> tuple[list[float], list[int]]:
        """Price of each group, the cheapest first; and its number, in the same order."""
        order = self._prices_wh.argsort(kind="stable")
        return self._prices_wh[order].tolist(), order.tolist()

    @cached_property
    def ranked_clusters(self) -> list[tuple[float, int]]:
        """Price of the cheapest group of each cluster, and the cluster: the cheapest first."""
        groups = self.prices.groups
        least_wh = np.minimum.reduceat(self._prices_wh, groups.firsts).tolist()
        return sorted(zip(least_wh, groups.peopled, strict=True))
