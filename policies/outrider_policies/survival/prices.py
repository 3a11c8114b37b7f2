"""Expected energy per completed job on each group of machines, at one time."""

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api import NOWHERE
from outrider_policies.survival.job_length import BINS, EDGES_S, MIDDLES_S, Lengths
from outrider_policies.survival.owner_return import cumulative

Floats = NDArray[np.float64]
HOUR_S: Final = 3600.0
_WIDTHS_S: Final = np.diff(EDGES_S)
MIN_CHANCE: Final = 1e-9
"""Minimum chance of completing: keeps prices finite where the reboot comes first."""


# -- groups ----------------------------------------------------------------------------------------
# Groups of machines of one cluster with similar frailty, which are treated as equal.

Numbers = NDArray[np.intp]


class Groups(NamedTuple):
    """Groups of machines, sorted by cluster and frailty.

    Attributes:
        cluster: (groups,) cluster number.
        clusters: the same as a list, faster to index one at a time.
        populated: clusters that have machines.
        first_groups: the first group of each of these.
        frailty: (groups,) mean frailty of the group's machines.
        machines: machine numbers by group, the least frail first.
        of_machine: group by machine number; `NOWHERE` if the machine left.
    """

    cluster: Numbers
    clusters: list[int]
    populated: list[int]
    first_groups: Numbers
    frailty: Floats
    machines: list[list[int]]
    of_machine: list[int]


class Prices:
    """Prices of a completion on every group, for jobs of each key.

    A key is the bin of a job's longest lost run x `BINS` + the bin of its age. With T the time
    until the host interrupts and S its survival function, L the length of a good job given that it
    is longer than the run it lost, K the time until a bad job of its age is removed:

        P     = E S(L)                      chance that a good job completes
        price = W (E min(T, L) + odds E min(T, K)) / P + delay (1 / P - 1)

    That is the expected cost per completion of repeated tries on such machines: watt-hours of
    runs, good and bad, and `delay` watt-hours for each good run that is lost. Without that term
    hosts that interrupt soon would look cheap, because bad jobs end sooner there. A reboot
    interrupts with certainty.

    Args:
        groups: the groups of machines.
        watts: (groups,) of a busy machine.
        lengths: distributions of job lengths.
        levels, regime: (clusters, 168) and (clusters,) hazards, see `OwnerReturn`.
        from_h: present time, hours since Monday 00:00.
        reboot_h: hours from then until the reboot.
        delay_wh: price of a good run that is lost, watt-hours.
    """

    def __init__(
        self, groups: Groups, watts: Floats, lengths: Lengths, levels: Floats, regime: Floats,
        from_h: float, reboot_h: float, delay_wh: float,
    ) -> None:  # fmt: skip
        edges_h = np.minimum(EDGES_S / HOUR_S, reboot_h)
        width_h = edges_h[1:] - edges_h[:-1]
        in_time = width_h / _WIDTHS_S * HOUR_S
        hazard = cumulative(levels, from_h, edges_h) * regime[:, None]
        survival = np.exp(-hazard[groups.cluster] * groups.frailty[:, None])
        survives = (survival[:, 1:] + survival[:, :-1]) / 2.0
        through_h = survives * width_h
        runs_h = (np.cumsum(through_h, axis=1) - through_h / 2.0).T
        ends = (survives * in_time).T
        self.groups = groups
        self._lengths = lengths
        self._ends = ends
        self._completes = np.maximum(lengths.good @ ends, MIN_CHANCE)
        self._tries = 1.0 / self._completes
        good_h, bad_h = lengths.good @ runs_h, lengths.bad @ runs_h
        self._good_wh = watts * good_h * self._tries + delay_wh * (self._tries - 1.0)
        self._bad_wh = watts * bad_h
        self._min_good_wh = self._good_wh.min(axis=1, initial=np.inf)
        self._min_tries = self._tries.min(axis=1, initial=np.inf)
        self._min_bad_wh = self._bad_wh.min(axis=1, initial=np.inf)
        self._offers: dict[int, Offer] = {}

    def offer(self, key: int) -> "Offer":
        """Return the prices for jobs of a key, cached."""
        offer = self._offers.get(key)
        if offer is None:
            offer = self._offers[key] = Offer(self, key)
        return offer

    def bound_wh(self, key: int) -> float:
        """Return a lower bound of all groups' prices: fast, and enough to defer most jobs."""
        lost, age = divmod(key, BINS)
        bad_wh = self._lengths.odds[lost, age] * self._min_bad_wh[age]
        return float(self._min_good_wh[lost] + bad_wh * self._min_tries[lost])

    def of(self, key: int) -> Floats:
        """Return (groups,) the price on each group, watt-hours."""
        lost, age = divmod(key, BINS)
        bad_wh = self._lengths.odds[lost, age] * self._bad_wh[age]
        prices: Floats = self._good_wh[lost] + bad_wh * self._tries[lost]
        return prices

    def good_ratio(self, key: int) -> float:
        """Return the probability that a job is good: that it ever completes."""
        lost, age = divmod(key, BINS)
        return 1.0 / (1.0 + self._lengths.odds.item(lost, age))

    def completes_ratio(self, key: int, at: int) -> float:
        """Return the probability that a run of a good job on group `at` completes it."""
        return float(self._completes[key // BINS, at])

    def predict(self, key: int, at: int) -> tuple[float, float]:
        """Predict a run on group `at`.

        Returns:
            the probability that it is evicted, given that its job is not removed during the run,
            and its expected length in seconds if it completes.
        """
        lost, age = divmod(key, BINS)
        good = self.good_ratio(key)
        completes = good * self._completes.item(lost, at)
        evicted = good - completes + (1.0 - good) * self._not_removed.item(age, at)
        return evicted / (evicted + completes), self._completed_s.item(lost, at)

    @cached_property
    def _not_removed(self) -> Floats:
        """(BINS, groups): probability that a bad job of an age is evicted before it is removed."""
        not_removed: Floats = 1.0 - self._lengths.bad @ self._ends
        return not_removed

    @cached_property
    def _completed_s(self) -> Floats:
        """(BINS, groups): mean length, seconds, of good jobs that lost such a run and complete."""
        weighed = self._lengths.good @ (MIDDLES_S[:, None] * self._ends)
        completed_s: Floats = weighed * self._tries
        return completed_s


class Offer:
    """Prices of a completion for jobs of one key.

    Attributes:
        key: see `Prices`.
        prices: the prices from which this is taken.
        bound_wh: lower bound of all groups' prices.
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
        """Prices in ascending order, and the group of each."""
        order = self._prices_wh.argsort(kind="stable")
        return self._prices_wh[order].tolist(), order.tolist()

    @cached_property
    def ranked_clusters(self) -> list[tuple[float, int]]:
        """(price of the cluster's cheapest group, cluster), the cheapest first."""
        groups = self.prices.groups
        least_wh = np.minimum.reduceat(self._prices_wh, groups.first_groups).tolist()
        return sorted(zip(least_wh, groups.populated, strict=True))


FRAILTY_STEPS: Final = np.array([0.35, 0.6, 1.0, 1.7, 4.0])
"""Machines of one cluster whose frailties lie between the same two steps form a group."""


def group(machine: Numbers, cluster: Numbers, frailties: Floats) -> Groups:
    """Group the machines of each cluster by frailty.

    Args:
        machine: (n,) machine numbers.
        cluster: (n,) the cluster of each.
        frailties: by machine number.
    """
    # complex numbers sort by real, then imaginary part: three times as fast as lexsort
    order = (cluster + 1j * frailties[machine]).argsort(kind="stable")
    machine, cluster = machine[order], cluster[order]
    frailty = frailties[machine]
    step = np.searchsorted(FRAILTY_STEPS, frailty)
    # slices, not `diff`, `append` and `unique`: this is done for every run that ends
    begin = np.ones(len(machine), dtype=bool)
    begin[1:] = (step[1:] != step[:-1]) | (cluster[1:] != cluster[:-1])
    begins = np.flatnonzero(begin)
    of_cluster = cluster[begins]
    is_first = np.ones(len(begins), dtype=bool)
    is_first[1:] = of_cluster[1:] != of_cluster[:-1]
    first_groups = np.flatnonzero(is_first)
    ends = np.empty_like(begins)
    ends[:-1], ends[-1:] = begins[1:], len(machine)
    numbers = machine.tolist()
    machines = [numbers[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
    of_machine = np.full(len(frailties), NOWHERE)
    of_machine[machine] = np.repeat(np.arange(len(begins)), ends - begins)
    return Groups(
        of_cluster,
        of_cluster.tolist(),
        of_cluster[first_groups].tolist(),
        first_groups,
        np.add.reduceat(frailty, begins) / (ends - begins),
        machines,
        of_machine.tolist(),
    )
