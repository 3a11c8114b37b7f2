"""Estimates for each machine of how soon it is likely to interrupt a run."""

from collections.abc import Sequence
from itertools import chain
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import COMPLETED_RUN, Outcome, SiteView
from outrider_policies.survival.absence import Absence
from outrider_policies.survival.faults import Faults
from outrider_policies.survival.frailty import Frailty
from outrider_policies.survival.groups import group
from outrider_policies.survival.owner_return import WEEK_H, OwnerReturn
from outrider_policies.survival.prices import HOUR_S

Floats = NDArray[np.float64]

UNRELATED_REASONS: Final = frozenset(
    {"reboot", "preempted", "drained", "removed", "held", "killed"}
)
"""Reasons of a run's end that say nothing about the machine."""


class Hosts:
    """Counts interruptions and exposure, and estimates hazards from them.

    In a cluster with owner events, log-ins are the interruptions, and every hour without an owner
    is exposure, whether a job ran or not. In others (known from an event log alone) an eviction
    stands for a log-in and only runs are exposure, weighted by the machine's frailty as in the
    likelihood of a frailty model. An eviction without a log-in, or a machine's second within an
    hour, is a fault of the machine (`Faults`): it says nothing about other machines.

    Owner events are counted per hour of the site's clock. Estimates change only in `revise`, so
    that they are the same after a restart: every few hours, and at once (`is_stale`) after a fault
    and an eviction in a cluster without owner events, because a black hole would take the same job
    again within a minute. A completed run can wait: a busy pool has several a second.

    Attributes:
        owners, frailty: the counts.
        absence: records of owners in the present hour.
        faults: fault counts of machines.
        levels: (clusters, 168) hazard per hour by hour of the week, at the last revision.
        frailties: (machines,) hazard relative to the cluster's, faults included, at the last
            revision.
        groups: groups of similar machines, at the last revision.
        hour_ends_s: event time at which the present hour ends; minus infinity before the first.
        is_stale: whether a revision is due that cannot wait: for a fault, an eviction, or machines
            that joined or left.
    """

    def __init__(
        self, forgetting: float, shrinkage_h: float, regime_h: float, frailty_shape: float
    ) -> None:
        self.owners = OwnerReturn(forgetting, shrinkage_h, regime_h)
        self.frailty = Frailty(frailty_shape)
        self.faults = Faults()
        self.absence = Absence()
        self.levels = self.owners.levels()
        self.frailties = self.frailty.means()
        self._machines = self._clusters = np.zeros(0, dtype=np.intp)  # those of the site
        self.groups = group(self._machines, self._clusters, self.frailties)
        self.hour_ends_s = -inf
        self.is_stale = True
        self._hour = 0
        self._forgetting_an_hour = forgetting ** (1.0 / WEEK_H)
        self._evicted_this_hour: set[int] = set()
        self._watched = np.zeros(0, dtype=bool)
        self._cluster = np.zeros(0, dtype=np.intp)

    def revise(self, members: Sequence[Sequence[int]], known: int = 0) -> None:
        """Estimate everything from the counts, for machine numbers below at least `known`.

        Machines that have left keep their numbers.
        """
        self._assign_clusters(members, known)
        self.levels = self.owners.levels()
        self.frailties = self._hazard_ratios()
        self.groups = group(self._machines, self._clusters, self.frailties)
        self.is_stale = False

    def _hazard_ratios(self) -> Floats:
        """(machines,) frailty plus fault rate relative to the cluster's mean hazard."""
        usual = np.append(self.levels.mean(axis=1) * self.owners.regime(), 1.0)
        ratios: Floats = self.frailty.means() + self.faults.rates() / usual[self._cluster]
        return ratios

    def _assign_clusters(self, members: Sequence[Sequence[int]], known: int) -> None:
        """Set each machine's cluster; machines that left get a cluster number beyond the last."""
        sizes = [len(there) for there in members]
        self._machines = np.fromiter(chain.from_iterable(members), np.intp, sum(sizes))
        self._clusters = np.repeat(np.arange(len(members)), sizes)
        numbers_seen = 1 + max(
            numbers.max(initial=-1) for numbers in (self._machines, self.absence.noted())
        )
        known = max(known, len(self._cluster), numbers_seen)
        self._cluster = np.full(known, len(members), dtype=np.intp)
        self._cluster[self._machines] = self._clusters
        self.owners.grow(len(members))
        self.frailty.grow(len(self._cluster))
        self.faults.grow(len(self._cluster))
        watched, self._watched = self._watched, np.zeros(len(members), dtype=bool)
        self._watched[: len(watched)] = watched

    # -- owners -------------------------------------------------------------------------------

    def close_hours(self, view: SiteView) -> int:
        """Count the hours that are over; revise first if stale. Returns their number.

        Of a gap of more than a week only the first week counts: nothing was observed later.
        """
        if self.is_stale:
            self.revise(view.members)
        hours = 0
        while hours < WEEK_H and -inf < self.hour_ends_s <= view.now:
            self._close_hour()
            self._evicted_this_hour.clear()
            self.hour_ends_s += HOUR_S
            self._hour = (self._hour + 1) % WEEK_H
            hours += 1
        week_s = view.week_second()
        self.hour_ends_s = view.now - week_s % HOUR_S + HOUR_S
        self._hour = int(week_s // HOUR_S)
        return hours

    def _close_hour(self) -> None:
        clusters, place = len(self._watched), self._cluster
        noted = place[self.absence.noted()]
        self._watched[noted[noted < clusters]] = True
        logins, absent_h = self.absence.add_up(
            self.hour_ends_s - HOUR_S, self.hour_ends_s, len(place)
        )
        at_risk = np.append(self._watched, False)[place]
        logins, absent_h = logins * at_risk, absent_h * at_risk
        level = self.levels[:, self._hour]
        hazard = np.append(level * self.owners.regime(), 0.0)[place]
        self.frailty.forget(self._forgetting_an_hour)
        self.faults.fade()
        self.frailty.interruptions += logins
        self.frailty.expected += hazard * absent_h
        self.owners.take(
            self._hour,
            np.bincount(place, logins, clusters + 1)[:clusters].astype(np.float64),
            np.bincount(place, absent_h, clusters + 1)[:clusters].astype(np.float64),
            level,
        )

    # -- runs ---------------------------------------------------------------------------------

    def end_run(self, outcome: Outcome, view: SiteView) -> None:
        """Learn about a machine from a run's end. Past hours must have been closed before."""
        machine, cluster = outcome.machine, outcome.cluster
        if machine >= len(self._cluster) or cluster >= len(self._watched):
            self.revise(view.members, machine + 1)  # it joined a moment ago
        interrupted = (
            outcome.ending is not COMPLETED_RUN and outcome.reason not in UNRELATED_REASONS
        )
        faulty = False
        if not self._watched[cluster]:
            faulty = interrupted and machine in self._evicted_this_hour
            self._count_run(outcome, interrupted and not faulty)
        elif interrupted and outcome.reason != "owner":
            faulty = not self.absence.is_present(machine)
        self.faults.end_run(machine, outcome.run_s / HOUR_S, faulty)
        self.is_stale = self.is_stale or faulty

    def _count_run(self, outcome: Outcome, by_owner: bool) -> None:
        """Count a run as evidence of owners, in a cluster without owner events."""
        self._count_exposure(outcome)
        machine, cluster, hour = outcome.machine, outcome.cluster, self._hour
        if by_owner:
            self._evicted_this_hour.add(machine)
            self.frailty.interruptions[machine] += 1.0
            self.owners.came[cluster, hour] += 1.0
            self.owners.seen[cluster] += 1.0
            # a machine that evicts at once was at risk for the whole hour, however short the run
            self.owners.exposed_h[cluster, hour] += 1.0
            self.owners.expected[cluster] += float(self.levels[cluster, hour])
            self.is_stale = True

    def _count_exposure(self, outcome: Outcome) -> None:
        """Count the hours of a run as exposure, in a cluster without owner events."""
        machine, cluster = outcome.machine, outcome.cluster
        regime = self.owners.regime_of(cluster)
        frailty = max(1.0, self.frailty.mean(machine))
        begin_s, end_s, hour = self.hour_ends_s - HOUR_S, outcome.end_s, self._hour
        while end_s > outcome.start_s:
            begin_s = max(begin_s, outcome.start_s)
            hours = (end_s - begin_s) / HOUR_S
            expected = hours * float(self.levels[cluster, hour])
            self.owners.exposed_h[cluster, hour] += hours * regime * frailty
            self.owners.expected[cluster] += expected * frailty
            self.frailty.expected[machine] += expected * regime
            begin_s, end_s, hour = begin_s - HOUR_S, begin_s, (hour - 1) % WEEK_H

    # -- state --------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Counts and estimates as plain data, by cluster and machine number."""
        return {
            "owners": self.owners.save(),
            "frailty": self.frailty.save(),
            "faults": self.faults.save(),
            "absence": self.absence.save(),
            "watched": self._watched.tolist(),
            "levels": self.levels.tolist(),
            "frailties": self.frailties.tolist(),
            "hour_ends_s": self.hour_ends_s,
            "hour": self._hour,
            "evicted_this_hour": sorted(self._evicted_this_hour),
            "is_stale": self.is_stale,
        }

    def restore(self, saved: dict[str, Any], clusters: list[int], view: SiteView) -> None:
        """Go on from `save`; `clusters[i]` is today's number of saved cluster i."""
        n, known = len(view.cluster_names), clusters[: len(saved["watched"])]
        self.owners.restore(saved["owners"], known, n)
        self.frailty.restore(saved["frailty"])
        self.faults.restore(saved["faults"])
        self.absence.restore(saved["absence"])
        self._watched = np.zeros(n, dtype=bool)
        self._watched[known] = saved["watched"]
        self.hour_ends_s, self._hour = saved["hour_ends_s"], saved["hour"]
        self._cluster = np.zeros(len(saved["frailties"]), dtype=np.intp)
        self.revise(view.members)
        self.levels[known] = np.reshape(saved["levels"], (len(known), WEEK_H))
        self.frailties[: len(saved["frailties"])] = saved["frailties"]
        self.groups = group(self._machines, self._clusters, self.frailties)
        self._evicted_this_hour = set(saved["evicted_this_hour"])
        self.is_stale = saved["is_stale"]
