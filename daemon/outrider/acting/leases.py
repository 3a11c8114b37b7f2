"""What stands at a batch system, job by job, and what is to be done about it next. Pure code.

A decision that was carried out stands until the policy decides otherwise, or its job runs, leaves
or is held. For so long its lease is renewed; when nobody renews it, the batch system forgets it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from math import inf
from typing import Final, NamedTuple

import msgspec

from outrider.engine.scheduling.deferral_limit import DeferralLimit
from outrider.model.decisions import DEFER, DecisionRow

MOST_AT_ONCE: Final = 1_000
"""Jobs in one call of a lever, so that it can be stopped between two."""
_RENEW_AFTER: Final = 1.0 / 3.0
"""Of a lease: two renewals may fail before it lapses."""


class LeaseBounds(NamedTuple):
    """How much may be changed.

    Attributes:
        acts_per_minute: most changes within any 60 seconds, one for each job; renewals count.
        deferred_at_once: most jobs that are kept in the queue at one time.
        longest_deferral_s: for how long a job is kept in the queue at most, all together.
    """

    acts_per_minute: float = inf
    deferred_at_once: float = inf
    longest_deferral_s: float = inf


UNBOUNDED: Final = LeaseBounds()


class Due(NamedTuple):
    """What is to be done now.

    Attributes:
        apply: decisions to carry out, or to renew.
        withdraw: jobs for which what stands is to be taken back.
    """

    apply: Sequence[DecisionRow]
    withdraw: Sequence[str]


class _Lease(msgspec.Struct, gc=False):
    """One decision that is to be carried out, or stands.

    Attributes:
        renew_s: when it is to be carried out next.
        lapses_s: when the batch system forgets it; 0: it does not know it yet.
    """

    decision: DecisionRow
    renew_s: float
    lapses_s: float = 0.0


class Leases:
    """The decisions that are to stand at a batch system. All times by one clock, seconds.

    Args:
        lease_s: how long a change lasts that is not renewed.
        bounds: how much may be changed.

    Attributes:
        counts: ``too_many`` deferrals at once, and ``too_long``: deferrals that were ended.
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
        """The decisions that the batch system knows, and has not forgotten, by job."""
        return {job: one.decision for job, one in self._leases.items() if one.lapses_s > now_s}

    def want(self, decision: DecisionRow, now_s: float) -> None:
        """From now this decision is to stand, in place of what stood for its job."""
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
        """The policy wants it no more: what stands for the job is to be taken back."""
        if (lease := self._drop(job)) is not None and lease.lapses_s:
            self._to_withdraw[job] = None

    def forget(self, job: str, takes_back: bool = False) -> None:
        """The job runs or is gone: what stands may lapse, or is to be taken back all the same."""
        self._to_withdraw.pop(job, None)
        if takes_back:
            self.give_back(job)
        self._drop(job)
        self._limit.end(job)

    def _drop(self, job: str) -> _Lease | None:
        self._deferred.discard(job)
        return self._leases.pop(job, None)

    def due(self, now_s: float, is_fresh: bool = True) -> Due:
        """What is to be done now, and is counted as being done.

        Args:
            now_s: by the clock of all times here.
            is_fresh: whether what is known of the site is young enough to act on; if not, nothing
                is applied, and what stands lapses by itself.
        """
        for job in self._deferred_too_long(now_s):
            self.counts["too_long"] += 1
            self.give_back(job)
        withdraw = list(self._to_withdraw)[:MOST_AT_ONCE]
        most = max(0, self._acts_left(now_s) - len(withdraw)) if is_fresh else 0
        due = (lease.decision for lease in self._leases.values() if lease.renew_s <= now_s)
        apply = list(islice(due, most))
        if apply or withdraw:
            self._acts.append((now_s, len(apply) + len(withdraw)))
        return Due(apply, withdraw)

    def _deferred_too_long(self, now_s: float) -> list[str]:
        return [job for job in self._deferred if self._limit.left_s(job, now_s) <= 0.0]

    def _acts_left(self, now_s: float) -> int:
        self._acts = [(at_s, n) for at_s, n in self._acts if at_s > now_s - 60.0]
        left = self._bounds.acts_per_minute - sum(n for _, n in self._acts)
        return int(min(left, MOST_AT_ONCE))

    def applied(self, decisions: Iterable[DecisionRow], began_s: float) -> None:
        """These were carried out, by a call that began then."""
        lapses_s = began_s + self._lease_s
        for decision in decisions:
            lease = self._leases.get(decision.job)
            if lease is None:  # given back or forgotten during the call
                self._to_withdraw[decision.job] = None
                continue
            lease.lapses_s = lapses_s
            if lease.decision is decision:  # another one, that came meanwhile, is due as it was
                lease.renew_s = began_s + _RENEW_AFTER * self._lease_s

    def withdrawn(self, jobs: Iterable[str]) -> None:
        """What stood for these was taken back."""
        for job in jobs:
            self._to_withdraw.pop(job, None)

    def refused(self, jobs: Iterable[str]) -> None:
        """The batch system refuses these: they are not asked for until it is decided anew.

        What stood for them before is not what is wanted now.
        """
        for job in jobs:
            self.give_back(job)

    def failed(self, decisions: Iterable[DecisionRow], now_s: float, again_in_s: float) -> None:
        """Nobody answered: these are due again a little later, and a part may have been done."""
        for decision in decisions:
            lease = self._leases.get(decision.job)
            if lease is None:
                continue
            lease.renew_s = max(lease.renew_s, now_s + again_in_s)
            lease.lapses_s = lease.lapses_s or now_s + self._lease_s

    def end(self) -> list[str]:
        """Nothing is wanted any more: the jobs for which something may stand."""
        lasting = [job for job, lease in self._leases.items() if lease.lapses_s]
        lasting += self._to_withdraw
        self._leases.clear()
        self._deferred.clear()
        self._to_withdraw.clear()
        return lasting
