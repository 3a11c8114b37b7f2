"""Estimates for each machine of how soon it is likely to interrupt a run."""

from collections.abc import Sequence
from itertools import chain
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import COMPLETED_RUN, Outcome, SiteView
from outrider_policies.survival.owner_return import WEEK_H, OwnerReturn
from outrider_policies.survival.prices import HOUR_S, group

# -- frailty ---------------------------------------------------------------------------------------
# Frailty: a machine's rate of interruptions relative to its cluster's.

Floats = NDArray[np.float64]


class Frailty:
    """Gamma frailty of each machine (shared-frailty model, Clayton 1978).

    The hazard of machine m is z_m times its cluster's, with a Gamma prior of mean 1 and shape
    `shape` on z_m. After n interruptions where E were expected from the cluster's hazard, the
    posterior mean is (shape + n) / (shape + E): below 1 for a machine that stays idle longer than
    others, far above 1 for a black hole that evicts one job after another. Both counts decay, so
    that an avoided machine is eventually tried again.

    Args:
        shape: of the prior; small where machines of one cluster differ much.

    Attributes:
        interruptions: (machines,) decayed count n.
        expected: (machines,) E: the cluster's hazard summed over the machine's exposure.
    """

    def __init__(self, shape: float) -> None:
        self._shape = shape
        self.interruptions = np.zeros(0)
        self.expected = np.zeros(0)

    def grow(self, machines: int) -> None:
        """Extend the arrays to this many machines; new ones have the prior's frailty 1."""
        more = machines - len(self.expected)
        if not more:
            return
        self.interruptions = np.pad(self.interruptions, (0, more))
        self.expected = np.pad(self.expected, (0, more))

    def forget(self, ratio: float) -> None:
        """Multiply all counts by `ratio`."""
        self.interruptions *= ratio
        self.expected *= ratio

    def means(self) -> Floats:
        """Return (machines,) the posterior mean of each frailty."""
        means: Floats = (self._shape + self.interruptions) / (self._shape + self.expected)
        return means

    def mean(self, machine: int) -> float:
        """Return the posterior mean of the frailty of one machine."""
        counted, expected = self.interruptions[machine], self.expected[machine]
        return float((self._shape + counted) / (self._shape + expected))

    def save(self) -> list[list[float]]:
        """Return the counts as plain data, by machine number."""
        return [self.interruptions.tolist(), self.expected.tolist()]

    def restore(self, saved: Any) -> None:
        """Restore what `save` returned."""
        self.interruptions = np.array(saved[0], dtype=np.float64)
        self.expected = np.array(saved[1], dtype=np.float64)


# -- faults ----------------------------------------------------------------------------------------
# Faults: machines that evict one job after another although no owner is logged in.


MEMORY_H: Final = 48.0
"""Decay time of fault counts, hours: a broken machine is repaired or reinstalled within days."""
PRIOR_H: Final = 1.0
"""Prior: hours of work without a fault that every machine is given at the beginning."""


class Faults:
    """Fault rate of each machine: faults per hour of work, both with exponential decay.

    After n faults in a short time the rate is about n per hour: one is bad luck, three are a
    *black hole*, a host that always seems free because every job fails there. With the decay the
    rate falls below one per hour again, and the machine is tried again.
    """

    def __init__(self) -> None:
        self._counted = np.zeros(0)
        self._worked_h = np.zeros(0)
        self._fading = float(np.exp(-1.0 / MEMORY_H))

    def grow(self, machines: int) -> None:
        """Extend the arrays to this many machines; new ones have no faults."""
        more = machines - len(self._counted)
        if not more:
            return
        self._counted = np.pad(self._counted, (0, more))
        self._worked_h = np.pad(self._worked_h, (0, more))

    def end_run(self, machine: int, hours: float, faulty: bool) -> None:
        """Count a run of so many hours; `faulty`: evicted by the machine for no known reason."""
        self._worked_h[machine] += hours
        if faulty:
            self._counted[machine] += 1.0

    def fade(self) -> None:
        """Apply one hour of decay."""
        self._counted *= self._fading
        self._worked_h *= self._fading

    def rates(self) -> Floats:
        """Return (machines,) the faults per hour of work."""
        rates: Floats = self._counted / (PRIOR_H + self._worked_h)
        return rates

    def save(self) -> list[list[float]]:
        """Return the counts as plain data, by machine number."""
        return [self._counted.tolist(), self._worked_h.tolist()]

    def restore(self, saved: Any) -> None:
        """Restore what `save` returned."""
        self._counted = np.array(saved[0], dtype=np.float64)
        self._worked_h = np.array(saved[1], dtype=np.float64)


# -- absence ---------------------------------------------------------------------------------------
# Log-ins and hours without an owner per machine, counted hour by hour.

Numbers = NDArray[np.intp]


class Absence:
    """Records of log-ins and log-outs, summed up at the end of each hour.

    Recording only appends: a large campus has two million log-ins and log-outs a year.
    """

    def __init__(self) -> None:
        self._times_s: list[float] = []
        self._notes: list[int] = []  # machine number at a log-in, its complement (~) at a log-out
        self._present = np.zeros(0, dtype=bool)

    def note(self, time_s: float, machine: int, came: bool) -> None:
        """Record a log-in (`came`) or log-out at a machine."""
        self._times_s.append(time_s)
        self._notes.append(machine if came else ~machine)

    def noted(self) -> Numbers:
        """Return the machine of each log-in and log-out recorded in the present hour."""
        notes = np.fromiter(self._notes, np.intp, len(self._notes))
        return np.maximum(notes, ~notes)

    def is_present(self, machine: int) -> bool:
        """Return True if an owner is logged in there now."""
        of_it = (machine, ~machine)
        for note in reversed(self._notes):
            if note in of_it:
                return note == machine
        return machine < len(self._present) and bool(self._present[machine])

    def add_up(self, start_s: float, end_s: float, machines: int) -> tuple[Floats, Floats]:
        """Sum up an interval that is over, and begin the next.

        Args:
            start_s: begin of the interval.
            end_s: its end; everything recorded lies between.
            machines: number of machines.

        Returns:
            (machines,) log-ins, and (machines,) hours without an owner.
        """
        present = np.zeros(machines, dtype=bool)
        present[: len(self._present)] = self._present
        absent_s = np.where(present, 0.0, end_s - start_s)
        logins = np.zeros(machines)
        if self._notes:
            who = self.noted()
            came = np.fromiter(self._notes, np.intp, len(self._notes)) >= 0
            remaining_s = end_s - np.fromiter(self._times_s, np.float64, len(self._times_s))
            absent_s += np.bincount(who, np.where(came, -remaining_s, remaining_s), machines)
            logins += np.bincount(who[came], minlength=machines)
            present[who] = came  # the last record of a machine wins
            self._times_s.clear()
            self._notes.clear()
        self._present = present
        return logins, np.clip(absent_s, 0.0, end_s - start_s) / 3600.0

    def save(self) -> dict[str, Any]:
        """Return records of the present hour, and where owners were logged in when it began."""
        return {
            "notes": [
                [time_s, max(note, ~note), note >= 0]
                for time_s, note in zip(self._times_s, self._notes, strict=True)
            ],
            "present": self._present.tolist(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned."""
        self._times_s.clear()
        self._notes.clear()
        for time_s, machine, came in saved["notes"]:
            self.note(time_s, machine, came)
        self._present = np.array(saved["present"], dtype=bool)


# -- hosts -----------------------------------------------------------------------------------------

UNRELATED_REASONS: Final = frozenset(
    {"reboot", "preempted", "drained", "removed", "held", "killed"}
)
"""Reasons of a run's end that say nothing about the machine."""


class Hosts:
    """Counts of interruptions and exposure, and hazards estimated from them.

    In a cluster with owner events, log-ins are the interruptions, and every hour without an owner
    is exposure, whether a job ran or not. In others (known from an event log alone) an eviction
    is counted as a log-in and only runs are exposure, weighted by the machine's frailty as in the
    likelihood of a frailty model. An eviction without a log-in, or a machine's second within an
    hour, is a fault of the machine (`Faults`): it says nothing about other machines.

    Owner events are counted per hour of the site's clock. Estimates change only in `revise`, so
    that they are the same after a restart. It runs every few hours, and immediately (`is_stale`)
    after a fault and an eviction in a cluster without owner events, because a black hole would take
    the same job again within a minute. A completed run can wait: a busy pool has several a second.

    Attributes:
        owners, frailty: the counts.
        absence: records of owners in the present hour.
        faults: fault counts of machines.
        levels: (clusters, 168) hazard per hour by hour of the week, at the last revision.
        frailties: (machines,) hazard relative to the cluster's, faults included, at the last
            revision.
        groups: groups of similar machines, at the last revision.
        hour_ends_s: event time at which the present hour ends; minus infinity before the first.
        is_stale: True if a revision is due that cannot wait: for a fault, an eviction, or machines
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
        """Return (machines,) frailty plus fault rate relative to the cluster's mean hazard."""
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
        """Count the hours that are over; revise first if stale. Return their number.

        Of a gap of more than a week only the first week counts, because nothing was observed later.
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
            # a machine that evicts immediately was at risk the whole hour, however short the run
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
        """Return counts and estimates as plain data, by cluster and machine number."""
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
        """Restore what `save` returned; `clusters[i]` is the present number of saved cluster i."""
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
