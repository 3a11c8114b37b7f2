"""Leases of the decisions active at a batch system, by job, and the next changes. Pure code.

A decision that was applied stays active until the policy decides otherwise, or its job runs, leaves
or is held. Until then its lease is renewed. Without renewals the batch system drops the decision.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from math import inf
from typing import Final, NamedTuple

import msgspec

from outrider.engine.scheduling.deferral_limit import DeferralLimit
from outrider.model.decisions import DEFER, DecisionRow

MAX_BATCH: Final = 1_000
"""Maximal number of jobs in one call of a lever, so that it can be stopped between two."""
_RENEW_AFTER: Final = 1.0 / 3.0
"""Fraction of a lease until its renewal: two renewals may fail before it expires."""


class LeaseBounds(NamedTuple):
    """Bounds of the changes at a batch system.

    Attributes:
        acts_per_minute: maximal changes within any 60 seconds, one for each job; renewals count.
        deferred_at_once: maximal number of jobs that are kept in the queue at one time.
        longest_deferral_s: maximal total time for which a job is kept in the queue.
    """

    acts_per_minute: float = inf
    deferred_at_once: float = inf
    longest_deferral_s: float = inf


UNBOUNDED: Final = LeaseBounds()


class Due(NamedTuple):
    """Changes that are due now.

    Attributes:
        apply: decisions to apply, or to renew.
        withdraw: jobs whose active decision is to be reverted.
    """

    apply: Sequence[DecisionRow]
    withdraw: Sequence[str]


class _Lease(msgspec.Struct, gc=False):
    """One decision that is active, or is to be applied.

    Attributes:
        renew_s: when it is applied next.
        lapses_s: when the batch system drops it; 0: it was not applied yet.
    """

    decision: DecisionRow
    renew_s: float
    lapses_s: float = 0.0


class Leases:
    """Decisions that are wanted at a batch system. All times are seconds of one clock.

    Args:
        lease_s: how long a change lasts without renewal.
        bounds: how much may be changed.

    Attributes:
        counts: ``too_many``: deferrals beyond the limit; ``too_long``: deferrals that were ended.
    """

    def __init__(self, lease_s: float, bounds: LeaseBounds) -> None:
        self.counts: Counter[str] = Counter()
        self._lease_s = lease_s
        self._bounds = bounds
        self._leases: dict[str, _Lease] = {}
        self._to_withdraw: dict[str, None] = {}
        self._deferred: set[str] = set()
        self._limit: DeferralLimit[str] = DeferralLimit(bounds.longest_deferral_s)
        self._acts: list[tuple[float, int]] = []

    def standing(self, now_s: float) -> dict[str, DecisionRow]:
        """Return the decisions that are active at the batch system, by job."""
        return {job: one.decision for job, one in self._leases.items() if one.lapses_s > now_s}

    def kept(self, now_s: float) -> dict[str, tuple[DecisionRow, float]]:
        """Return the active deferrals by job, each with the seconds for which it may last yet."""
        return {
            job: (decision, self._limit.left_s(job, now_s))
            for job, decision in self.standing(now_s).items()
            if decision.action == DEFER
        }

    def want(self, decision: DecisionRow, now_s: float) -> None:
        """Want this decision from now on, instead of any earlier one for its job."""
        job = decision.job
        known = self._leases.get(job)
        self._deferred.discard(job)
        if decision.action == DEFER:
            too_many = len(self._deferred) >= self._bounds.deferred_at_once
            if too_many or self._limit.left_s(job, now_s) <= 0.0:
                self.counts["too_many" if too_many else "too_long"] += 1
                self.give_back(job)
                return
            self._limit.keep(job, now_s)
            self._deferred.add(job)
        self._to_withdraw.pop(job, None)
        self._leases[job] = _Lease(decision, now_s, 0.0 if known is None else known.lapses_s)

    def give_back(self, job: str) -> None:
        """Stop wanting a decision for the job: an active one is to be reverted."""
        if (lease := self._drop(job)) is not None and lease.lapses_s:
            self._to_withdraw[job] = None

    def forget(self, job: str, reverts: bool = False) -> None:
        """Drop a job that runs or is gone: its decision expires, or is reverted if `reverts`."""
        self._to_withdraw.pop(job, None)
        if reverts:
            self.give_back(job)
        self._drop(job)
        self._limit.end(job)

    def _drop(self, job: str) -> _Lease | None:
        self._deferred.discard(job)
        return self._leases.pop(job, None)

    def due(self, now_s: float, is_fresh: bool = True) -> Due:
        """Return the changes that are due now, and count them as done.

        Args:
            now_s: by the clock of all times here.
            is_fresh: whether the site's input is fresh enough to act on; if not, nothing is
                applied, and active decisions expire.
        """
        for job in self._deferred_too_long(now_s):
            self.counts["too_long"] += 1
            self.give_back(job)
        withdraw = list(self._to_withdraw)[:MAX_BATCH]
        max_applied = max(0, self._acts_left(now_s) - len(withdraw)) if is_fresh else 0
        due = (lease.decision for lease in self._leases.values() if lease.renew_s <= now_s)
        apply = list(islice(due, max_applied))
        if apply or withdraw:
            self._acts.append((now_s, len(apply) + len(withdraw)))
        return Due(apply, withdraw)

    def _deferred_too_long(self, now_s: float) -> list[str]:
        return [job for job in self._deferred if self._limit.left_s(job, now_s) <= 0.0]

    def _acts_left(self, now_s: float) -> int:
        self._acts = [(at_s, n) for at_s, n in self._acts if at_s > now_s - 60.0]
        left = self._bounds.acts_per_minute - sum(n for _, n in self._acts)
        return int(min(left, MAX_BATCH))

    def applied(self, decisions: Iterable[DecisionRow], began_s: float) -> None:
        """Record that these decisions were applied, by a call that began at `began_s`."""
        lapses_s = began_s + self._lease_s
        for decision in decisions:
            lease = self._leases.get(decision.job)
            if lease is None:  # withdrawn or dropped during the call
                self._to_withdraw[decision.job] = None
                continue
            lease.lapses_s = lapses_s
            if lease.decision is decision:  # a newer one keeps its own time
                lease.renew_s = began_s + _RENEW_AFTER * self._lease_s

    def withdrawn(self, jobs: Iterable[str]) -> None:
        """Record that the decisions for these jobs were reverted."""
        for job in jobs:
            self._to_withdraw.pop(job, None)

    def refused(self, jobs: Iterable[str]) -> None:
        """Drop the decisions that the batch system refused, until the policy decides again.

        Earlier decisions for these jobs are not wanted any more, either.
        """
        for job in jobs:
            self.give_back(job)

    def failed(self, decisions: Iterable[DecisionRow], now_s: float, again_in_s: float) -> None:
        """Record that a call failed: its decisions are due again later, some may be active."""
        for decision in decisions:
            lease = self._leases.get(decision.job)
            if lease is None:
                continue
            lease.renew_s = max(lease.renew_s, now_s + again_in_s)
            lease.lapses_s = lease.lapses_s or now_s + self._lease_s

    def end(self) -> list[str]:
        """Drop all decisions; return the jobs for which one may be active."""
        lasting = [job for job, lease in self._leases.items() if lease.lapses_s]
        lasting += self._to_withdraw
        self._leases.clear()
        self._deferred.clear()
        self._to_withdraw.clear()
        return lasting
