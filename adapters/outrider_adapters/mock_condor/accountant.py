"""Fair-share accounting of HTCondor's negotiator.

Source: HTCondor manual, "User Priorities and Negotiation". Of each user u, with r(u) the slots in
use weighted by their CPUs, and h the half-life:

    real priority       p(t) = b p(t - d) + (1 - b) r(t),  b = 0.5 ** (d / h),  never below 0.5
    effective priority  p(t) x factor
    share               of the pool, in inverse proportion to the effective priority
"""

from collections.abc import Iterable

from outrider_adapters.htcondor.pool_calls import ClassAd

DEFAULT_FACTOR = 1000.0
"""Default of HTCondor's ``DEFAULT_PRIO_FACTOR``."""
LEAST_PRIORITY = 0.5
NO_CEILING = -1


class _Account:
    def __init__(self, now_s: float) -> None:
        self.real = LEAST_PRIORITY
        self.factor = DEFAULT_FACTOR
        self.ceiling = NO_CEILING
        self.slots = 0
        self.weight = 0.0
        self.used_s = 0.0
        self.since_s = now_s
        self.settled_s = now_s

    def settle(self, now_s: float, halflife_s: float) -> None:
        """Update usage and priority to now; the slots in use did not change since `settled_s`."""
        elapsed_s = now_s - self.settled_s
        kept = 0.5 ** (elapsed_s / halflife_s)
        self.real = max(LEAST_PRIORITY, kept * self.real + (1.0 - kept) * self.weight)
        self.used_s += elapsed_s * self.weight
        self.settled_s = now_s


class Accountant:
    """Usage and priorities of all submitters.

    Args:
        halflife_s: ``PRIORITY_HALFLIFE``.
    """

    def __init__(self, halflife_s: float) -> None:
        self._halflife_s = halflife_s
        self._accounts: dict[str, _Account] = {}

    def claim_slot(self, submitter: str, weight: float, now_s: float) -> None:
        """Account for a slot, of this weight (CPUs), that a submitter claims."""
        account = self._settled(submitter, now_s)
        account.slots += 1
        account.weight += weight

    def release_slot(self, submitter: str, weight: float, now_s: float) -> None:
        """Account for a slot, of this weight (CPUs), that a submitter releases."""
        account = self._settled(submitter, now_s)
        account.slots -= 1
        account.weight -= weight

    def priority(self, submitter: str, now_s: float) -> float:
        """Return the effective user priority; lower is better."""
        account = self._settled(submitter, now_s)
        return account.real * account.factor

    def shares(self, submitters: Iterable[str], now_s: float) -> dict[str, float]:
        """Return each submitter's share of the pool, summing to 1; best priority first."""
        worth = {name: 1.0 / self.priority(name, now_s) for name in submitters}
        total = sum(worth.values())
        best_first = sorted(worth, key=lambda name: (-worth[name], name))
        return {name: worth[name] / total for name in best_first}

    def weight_in_use(self, submitter: str) -> float:
        """Return the weight (CPUs) of the slots that a submitter uses now."""
        account = self._accounts.get(submitter)
        return account.weight if account else 0.0

    def below_ceiling(self, submitter: str) -> bool:
        """Return whether a submitter may use one more slot."""
        account = self._accounts.get(submitter)
        return account is None or account.ceiling < 0 or account.slots < account.ceiling

    def set_real_priority(self, submitter: str, priority: float, now_s: float) -> None:
        """Set a submitter's real priority."""
        self._settled(submitter, now_s).real = max(LEAST_PRIORITY, priority)

    def set_factor(self, submitter: str, factor: float, now_s: float) -> None:
        """Set a submitter's priority factor."""
        self._settled(submitter, now_s).factor = factor

    def set_ceiling(self, submitter: str, ceiling: int, now_s: float) -> None:
        """Set the maximum number of slots of a submitter; negative: no limit."""
        self._settled(submitter, now_s).ceiling = ceiling

    def ads(self, now_s: float) -> list[ClassAd]:
        """Return one accounting ad per submitter."""
        return [self._ad(name, now_s) for name in sorted(self._accounts)]

    def _ad(self, name: str, now_s: float) -> ClassAd:
        account = self._settled(name, now_s)
        return ClassAd(
            {
                "Name": name,
                "Priority": account.real * account.factor,
                "PriorityFactor": account.factor,
                "ResourcesUsed": account.slots,
                "WeightedResourcesUsed": account.weight,
                "WeightedAccumulatedUsage": account.used_s,
                "BeginUsageTime": int(account.since_s),
                "LastUsageTime": int(account.settled_s),
                "Ceiling": account.ceiling,
                "IsAccountingGroup": False,
            }
        )

    def _settled(self, submitter: str, now_s: float) -> _Account:
        account = self._accounts.get(submitter)
        if account is None:
            account = self._accounts[submitter] = _Account(now_s)
        account.settle(now_s, self._halflife_s)
        return account
