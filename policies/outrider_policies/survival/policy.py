"""Policy ``survival``: starts a job where a completion is cheapest, if it is cheap enough."""

from bisect import bisect_right
from collections.abc import Sequence
from copy import copy, deepcopy
from math import inf, isfinite
from typing import Annotated, Any, Final, Self

import numpy as np
from msgspec import Meta

from outrider.api import (
    COMPLETED_RUN,
    EVICTED_RUN,
    NOWHERE,
    Choice,
    Groups,
    Job,
    Learns,
    Listens,
    Outcome,
    Policy,
    PolicySettings,
    Prediction,
    Predicts,
    SiteView,
    events,
)
from outrider_policies.survival.hosts import Hosts
from outrider_policies.survival.job_length import BINS, EDGES_S, JobLength
from outrider_policies.survival.owner_return import WEEK_H
from outrider_policies.survival.prices import HOUR_S, Offer, Prices

# -- settings --------------------------------------------------------------------------------------
# Settings of the survival index.


class SurvivalSettings(PolicySettings, frozen=True):
    """Settings of the highest price of a completion, and of the adaptation of estimates."""

    worth_ratio: Annotated[
        float,
        Meta(
            gt=0,
            description="What a completion may cost when a job begins to wait, in units of the "
            "energy of an uninterrupted job of mean length on the machine of lowest watts. Less "
            "saves more energy and defers more jobs.",
        ),
    ] = 10.0
    patience_h: Annotated[
        float,
        Meta(
            gt=0,
            description="Hours of waiting since the last run after which a completion may cost "
            "twice as much; the limit grows linearly.",
        ),
    ] = 36.0
    lost_run_ratio: Annotated[
        float,
        Meta(
            ge=0,
            description="Price of a good run that is lost, besides its watt-hours, in the unit of "
            "worth_ratio. More prefers machines with rare log-ins over those of low watts.",
        ),
    ] = 3.0
    forgetting_ratio: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="Factor by which counts of job lengths, log-ins and interruptions decay "
            "per week. 1 never forgets.",
        ),
    ] = 0.9
    shrinkage_h: Annotated[
        float,
        Meta(
            gt=0,
            description="Weight of a prior, machine-hours: with less exposure than this, the "
            "hazard of a cluster's hour is mostly that of similar hours and clusters.",
        ),
    ] = 20.0
    regime_h: Annotated[
        float,
        Meta(
            gt=0,
            description="Decay time, in hours, of the ratio of recent to usual log-ins, which "
            "follows terms and vacations.",
        ),
    ] = 72.0
    frailty_shape: Annotated[
        float,
        Meta(
            gt=0,
            description="Shape of the Gamma prior of a machine's frailty: the number of expected "
            "interruptions at which prior and observation weigh the same.",
        ),
    ] = 1.3
    max_defer_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Starvation guard: longest time a job is deferred, seconds.",
        ),
    ] = 604_800.0


# -- policy ----------------------------------------------------------------------------------------

REVISE_H: Final = 6
"""Hours between revisions of the estimates. Prices change every hour, with the owners' hazards."""

_CAME: Final = events.OWNER_CAME
_OWNER_KINDS: Final = frozenset({events.OWNER_CAME, events.OWNER_WENT})
_EDGES: Final = EDGES_S[1:BINS].tolist()
"""Edges between bins; values beyond the last edge are in the last bin."""
_DAY_S: Final = 86_400.0
_SHOWN: Final = 4


class Survival(Groups, Learns, Listens, Predicts, Policy[SurvivalSettings]):
    """Policy that starts a job where a completion is expected to cost least, if within a limit.

    It learns how long jobs run (`JobLength`), when owners come back and which machines are
    interrupted more than others (`Hosts`); `Prices` computes what follows from them. The limit is
    `worth_ratio` times the cost of an uninterrupted job of mean length on the machine of
    lowest watts, and grows with the time that the job has waited since its last run. If no free
    machine is that cheap, the job is deferred. So a job that lost long runs, and therefore probably
    never ends, waits until its user removes it or a quiet night makes a try cheap.

    Nothing learned depends on who placed the jobs: in shadow it learns as much as when it acts.
    Before anything is learned hazards are equal and jobs are assumed to be long, so it chooses the
    lowest watts. Machines of unknown watts are given the highest that is known.
    """

    name = "survival"
    description = "learns job lengths and owners' returns; starts where a completion costs least"
    api_version = 1
    features = ("longest lost run", "age")
    subscribes = _OWNER_KINDS | {events.JOINED, events.LEFT}

    def __init__(self, settings: SurvivalSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self.max_defer_s = settings.max_defer_s
        self._worth_ratio: float = settings.worth_ratio
        self._patience_s = settings.patience_h * HOUR_S
        self._hosts = Hosts(
            settings.forgetting_ratio,
            settings.shrinkage_h,
            settings.regime_h,
            settings.frailty_shape,
        )
        self._jobs = JobLength()
        self._lengths = self._jobs.estimate()
        self._completed_s: list[float] = []
        self._removed_s: list[float] = []
        self._submitted_s: dict[int, float] = {}
        self._evicted_s: dict[int, float] = {}
        self._hours_to_revision = 0
        self._prices: Prices | None = None
        self._sent: set[int] = set()
        self._sent_s = -inf
        self._prices_end_s = -inf
        self._unit_wh = 0.0

    # -- learning -----------------------------------------------------------------------------

    def on_machine_event(self, kind: int, machine: int, view: SiteView) -> None:
        """Record owners who come and go, and note machines that joined or left."""
        if kind in _OWNER_KINDS:
            now, hosts = view.now, self._hosts
            if now >= hosts.hour_ends_s:
                self._close_hours(view)
            hosts.absence.note(now, machine, kind == _CAME)
        else:
            self._hosts.is_stale = True

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> tuple[()]:
        """Record a completed job's length, a removed job's age, and the end of the run."""
        if view.now >= self._hosts.hour_ends_s:
            self._close_hours(view)
        if outcome.machine != NOWHERE:
            self._hosts.end_run(outcome, view)
        if outcome.ending is EVICTED_RUN:
            self._evicted_s[outcome.job] = outcome.end_s
            return ()
        self._evicted_s.pop(outcome.job, None)
        submitted_s = self._submitted_s.pop(outcome.job, None)
        if outcome.ending is COMPLETED_RUN:
            self._completed_s.append(outcome.run_s)
        elif submitted_s is not None:
            self._removed_s.append(view.now - submitted_s)
        return ()

    def _close_hours(self, view: SiteView) -> None:
        self._hours_to_revision -= self._hosts.close_hours(view)
        if self._hours_to_revision <= 0:
            self._hours_to_revision = REVISE_H
            self._hosts.is_stale = True
            self._jobs.forget(self.settings.forgetting_ratio ** (REVISE_H / WEEK_H))
            self._jobs.take(self._completed_s, self._removed_s)
            self._lengths = self._jobs.estimate()
            self._completed_s.clear()
            self._removed_s.clear()

    # -- deciding -----------------------------------------------------------------------------

    def group_key(self, job: Job, view: SiteView) -> int:
        """Return the key of `Prices`: bin of the longest lost run x BINS + bin of the age."""
        submitted_s = self._submitted_s.get(job.number)
        if submitted_s is None:
            submitted_s = self._submitted_s[job.number] = (
                view.now if job.submit_s is None else job.submit_s
            )
        lost = bisect_right(_EDGES, job.consumed_s)
        return lost * BINS + bisect_right(_EDGES, view.now - submitted_s)

    def evaluate_group(self, key: Any, view: SiteView) -> Offer:
        """Return the machines' offer to jobs of a key, at this hour's prices."""
        prices = self._prices
        if prices is None or view.now >= self._prices_end_s or self._hosts.is_stale:
            prices = self._prices = self._price(view)
        return prices.offer(key)

    def _price(self, view: SiteView) -> Prices:
        """Return prices for the middle of the hour, or of its part before the reboot.

        They do not depend on when in the hour they are computed, so a restart changes nothing.
        """
        hosts, now = self._hosts, view.now
        if now >= hosts.hour_ends_s:
            self._close_hours(view)
        if hosts.is_stale:
            hosts.revise(view.members)
        reboot_s = view.next_reboot_s()
        begin_s = max(hosts.hour_ends_s - HOUR_S, reboot_s - _DAY_S if reboot_s < inf else 0.0)
        self._prices_end_s = min(hosts.hour_ends_s, reboot_s)
        middle_s = (begin_s + self._prices_end_s) / 2.0
        known = [w for w in view.active_w if w is not None]
        highest = max(known, default=1.0)
        watts = np.array([highest if w is None else w for w in view.active_w])
        self._unit_wh = min(known, default=1.0) * self._lengths.mean_s / HOUR_S
        return Prices(
            hosts.groups,
            watts[hosts.groups.cluster],
            self._lengths,
            hosts.levels,
            hosts.owners.regime(),
            (view.week_second() + middle_s - now) / HOUR_S % WEEK_H,
            (reboot_s - middle_s) / HOUR_S,
            self._unit_wh * self.settings.lost_run_ratio,
        )

    def worth_wh(self, job: Job, view: SiteView) -> float:
        """Return the limit on the cost of a completion of this job now, watt-hours."""
        number = job.number
        since_s = self._evicted_s.get(number, self._submitted_s[number])
        waited = (view.now - since_s) / self._patience_s
        return self._unit_wh * self._worth_ratio * (1.0 + waited)

    def choose(self, job: Job, evaluation: Offer, view: SiteView, may_defer: bool) -> Choice:
        """Choose the free machine where a completion costs least, or the queue above the limit."""
        worth_wh = self.worth_wh(job, view) if may_defer else inf
        scores = self._top(evaluation, view) if self.wants_scores else None
        if evaluation.bound_wh <= worth_wh:
            free_n, none_free = view.free_n, view.free_since.keys().isdisjoint
            groups = evaluation.prices.groups
            clusters, machines = groups.clusters, groups.machines
            for price_wh, at in zip(*evaluation.ranked, strict=True):
                if price_wh > worth_wh:
                    break
                if free_n[clusters[at]] and not none_free(machines[at]):
                    machine = self._spread(machines[at], view)
                    if machine != NOWHERE:
                        return Choice(machine, "cheapest", 1.0, scores)
        return Choice(NOWHERE, "too_dear", 1.0, scores)

    def _spread(self, machines: Sequence[int], view: SiteView) -> int:
        """Return a free machine of a group; use each once before any is used twice at one time.

        Otherwise a black hole with many CPUs would get that many jobs before the first one fails.
        """
        if view.now > self._sent_s:
            self._sent_s = view.now
            self._sent.clear()
        again = NOWHERE
        for machine in machines:
            if view.is_free(machine):  # not reserved in this pass
                if machine not in self._sent:
                    self._sent.add(machine)
                    return machine
                again = machine if again == NOWHERE else again
        return again

    # -- explaining ---------------------------------------------------------------------------

    def _top(self, offer: Offer, view: SiteView) -> dict[str, float]:
        """Return the price in watt-hours on the cheapest few clusters with a free machine."""
        names, free_n = view.cluster_names, view.free_n
        top: dict[str, float] = {}
        for price_wh, cluster in offer.ranked_clusters:
            if free_n[cluster]:
                top[names[cluster]] = price_wh
                if len(top) == _SHOWN:
                    break
        return top

    def scores(self, key: Any, view: SiteView) -> dict[str, float]:
        """Return the watt-hours per completion, on the best machines of each cluster."""
        ranked = self._copy_for_reading().evaluate_group(key, view).ranked_clusters
        return {view.cluster_names[cluster]: price_wh for price_wh, cluster in ranked}

    def predict(self, job: Job, machine: int, view: SiteView) -> Prediction | None:
        """Return a prediction from the same hazards and lengths as its prices."""
        offer = self.evaluate_group(self.group_key(job, view), view)
        of_machine = offer.prices.groups.of_machine
        if machine >= len(of_machine) or of_machine[machine] == NOWHERE:
            return None
        return Prediction(*offer.prices.predict(offer.key, of_machine[machine]))

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the lost runs, the chances, and the cost of a completion against its limit."""
        copied = self._copy_for_reading()
        offer = copied.evaluate_group(copied.group_key(job, view), view)
        return why(job, offer, copied.worth_wh(job, view), view)

    def _copy_for_reading(self) -> Self:
        """Return a copy of the policy: pricing and closing hours there changes nothing here."""
        copied = copy(self)
        copied._hosts, copied._jobs = deepcopy(self._hosts), deepcopy(self._jobs)
        copied._completed_s, copied._removed_s = self._completed_s.copy(), self._removed_s.copy()
        copied._submitted_s = self._submitted_s.copy()
        return copied

    def learned(self, view: SiteView) -> dict[str, Any]:
        """Return the log-ins per machine and hour expected on a weekday, by cluster and hour."""
        levels = self._hosts.levels * self._hosts.owners.regime()[:, None]
        by_hour = levels[:, : 5 * 24].reshape(len(levels), 5, 24).mean(axis=1)
        return {
            "title": "owners' returns on weekdays, as busy as recently",
            "unit": "log-ins per machine and hour",
            "columns": [f"{hour:02d}" for hour in range(24)],
            "rows": [
                {"label": name, "values": row.tolist()}
                for name, row in zip(view.cluster_names, by_hour, strict=False)
            ],
        }

    # -- state --------------------------------------------------------------------------------

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return counts, estimates and records since; clusters by name, machines by number."""
        return {
            "clusters": list(view.cluster_names),
            "hosts": self._hosts.save(),
            "jobs": self._jobs.save(),
            "completed_s": list(self._completed_s),
            "removed_s": list(self._removed_s),
            "submitted_s": [list(pair) for pair in self._submitted_s.items()],
            "evicted_s": [list(pair) for pair in self._evicted_s.items()],
            "hours_to_revision": self._hours_to_revision,
            "sent": sorted(self._sent),
            "sent_s": None if self._sent_s == -inf else self._sent_s,
        }

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned; clusters are matched by name."""
        self._jobs.restore(saved["jobs"])
        names = list(view.cluster_names)
        self._hosts.restore(saved["hosts"], [names.index(n) for n in saved["clusters"]], view)
        self._lengths = self._jobs.estimate()
        self._completed_s = list(saved["completed_s"])
        self._removed_s = list(saved["removed_s"])
        self._submitted_s = dict(saved["submitted_s"])
        self._evicted_s = dict(saved["evicted_s"])
        self._hours_to_revision = saved["hours_to_revision"]
        self._prices = None
        self._sent = set(saved.get("sent", ()))
        sent_s = saved.get("sent_s")
        self._sent_s = -inf if sent_s is None else sent_s


# -- explanations ----------------------------------------------------------------------------------
# Explanations of why a job is deferred or would start.


def why(job: Job, offer: Offer, worth_wh: float, view: SiteView) -> str:
    """Describe a job's lost runs, its chances, and the best price against its limit."""
    prices, clusters = offer.prices, offer.prices.groups.clusters
    good = prices.good_ratio(offer.key)
    lost = (
        f"its longest lost run took {job.consumed_s / HOUR_S:.1f} h"
        if job.consumed_s
        else "it has lost no run"
    )
    chance = f"{lost}; it ever completes with probability {good:.2f}"
    ranked = zip(*offer.ranked, strict=True)
    best = next((each for each in ranked if view.free_n[clusters[each[1]]]), None)
    if best is None:
        return f"no machine is free; {chance}"
    price_wh, at = best
    return (
        f"{'deferred' if price_wh > worth_wh else 'would start'}: {chance}. Best now is "
        f"{view.cluster_names[clusters[at]]}: it completes there{_before_reboot(view)} with "
        f"probability {good * prices.completes_ratio(offer.key, at):.2f}, at "
        f"{_energy(price_wh)} per completion (limit {_energy(worth_wh)})"
    )


def _before_reboot(view: SiteView) -> str:
    reboot_s = view.next_reboot_s()
    if not isfinite(reboot_s):
        return ""
    minute = int((view.week_second() + reboot_s - view.now) // 60)
    return f" before {minute // 60 % 24:02d}:{minute % 60:02d}"


def _energy(energy_wh: float) -> str:
    return f"{energy_wh / 1000.0:.3g} kWh" if energy_wh >= 1000.0 else f"{energy_wh:.3g} Wh"
