"""Operations on ClassAds that several modules use."""

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from outrider_adapters.htcondor.pool_calls import ClassAd, ExprTree

_CLOCK: Final = re.compile(r"\btime\(\)", re.IGNORECASE)


def copied(ad: ClassAd) -> ClassAd:
    """Return a copy of the ad with the same expressions."""
    return ClassAd(repr(ad))


def projected(ad: ClassAd, names: Iterable[str]) -> ClassAd:
    """Return a copy of the ad with these attributes only; all if `names` is empty."""
    wanted = [name for name in names if name in ad]
    if not wanted and not list(names):
        return copied(ad)
    part = ClassAd()
    for name in wanted:
        part[name] = ad.lookup(name)
    return part


def as_of(ad: ClassAd, now_s: float) -> ClassAd:
    """Return the ad with ``time()`` replaced by the pool's time, not the real clock's."""
    text = repr(ad)
    return ClassAd(at_time(text, now_s)) if _CLOCK.search(text) else ad


def at_time(expression: str, now_s: float) -> str:
    """Return the expression with ``time()`` replaced by the pool's time."""
    return _CLOCK.sub(str(int(now_s)), expression)


def holds(condition: ExprTree, ad: ClassAd) -> bool:
    """Return whether the condition is true for the ad; undefined and error are not."""
    found = condition.eval(scope=ad)
    return found is True or (type(found) in (int, float) and found != 0)


def number(value: Any, otherwise: float) -> float:
    """Return an expression's value as float; `otherwise` if it is not a number."""
    return float(value) if type(value) in (int, float, bool) else otherwise


# -- config ----------------------------------------------------------------------------------------
# The part of HTCondor's configuration that the mock pool supports.

PRE_JOB_RANK: Final = (
    "(10000000 * My.Rank) + (1000000 * (RemoteOwner is undefined)) - (100000 * Cpus) - Memory"
)
"""HTCondor's default ``NEGOTIATOR_PRE_JOB_RANK``: machines' ``RANK`` first, then small slots."""


class PoolConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a pool; times have HTCondor's defaults.

    Attributes:
        uid_domain: domain in the names of users (``UID_DOMAIN``).
        negotiator_interval_s: seconds between negotiation cycles (``NEGOTIATOR_INTERVAL``).
        update_interval_s: seconds between a startd's updates of the keyboard's idle time, its
            slots and its ads; changes are advertised immediately (``UPDATE_INTERVAL``).
        priority_halflife_s: half-life of a user's past usage (``PRIORITY_HALFLIFE``).
        pre_job_rank: ``NEGOTIATOR_PRE_JOB_RANK``.
        most_history: number of past jobs that `Schedd.history` keeps, the newest; a real pool
            is limited likewise (``MAX_HISTORY_LOG``).
        superusers: users, without domain, who may change others' jobs and priorities
            (``QUEUE_SUPER_USERS``).
    """

    uid_domain: str = "mock.local"
    negotiator_interval_s: float = 60.0
    update_interval_s: float = 300.0
    priority_halflife_s: float = 86_400.0
    pre_job_rank: str = PRE_JOB_RANK
    most_history: int = 20_000
    superusers: tuple[str, ...] = ("condor",)
