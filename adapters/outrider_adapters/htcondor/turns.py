"""Whose turn it is: users' priorities and the jobs of those who come before."""

from collections import Counter
from typing import Any, Final, NamedTuple

from outrider_adapters.htcondor.bindings import quote
from outrider_adapters.htcondor.pool_calls import AccessPoint, Ad, PoolCalls, number

TURN_ATTRIBUTES: Final = ("ClusterId", "ProcId", "User", "AccountingGroup", "JobPrio")
"""Attributes of a job ad that are read here."""


class Turn(NamedTuple):
    """Who comes before a job, as the negotiator goes through users and their jobs.

    Attributes:
        priority: of its user, effective; a smaller one is better.
        users: that are of better priority and have idle jobs.
        theirs: how many idle jobs they have.
        own: idle jobs of its own user that come before it.
    """

    priority: float
    users: int
    theirs: int
    own: int

    @property
    def ahead(self) -> int:
        """How many idle jobs come before it."""
        return self.theirs + self.own


def turn_of(calls: PoolCalls, point: AccessPoint, ad: Ad) -> Turn | None:
    """Who comes before an idle job; None where the collector does not tell priorities.

    Args:
        calls: the pool.
        point: whose job it is.
        ad: of the job, with `TURN_ATTRIBUTES`.

    Raises:
        HTCondorException: the pool does not answer (`PoolCalls.failure`).
    """
    if calls.accounting_ads is None or calls.submitter_ads is None:
        return None
    query = calls.collector.query
    ads = query(calls.accounting_ads, "IsAccountingGroup =!= true", ["Name", "Priority"])
    priorities = {str(one.get("Name")): number(one, "Priority") for one in ads}
    submitter = submitter_of(ad)
    if submitter not in priorities:
        return None
    idle: Counter[str] = Counter()
    for one in query(calls.submitter_ads, "IdleJobs > 0", ["Name", "IdleJobs"]):
        idle[str(one.get("Name"))] += int(number(one, "IdleJobs"))  # at each access point
    better = {
        name: n for name, n in idle.items()
        if priorities.get(name, 0.0) < priorities[submitter] and name != submitter
    }  # fmt: skip
    own = len(point.schedd.query(_own_before(ad), ["ClusterId"]))
    return Turn(priorities[submitter], len(better), sum(better.values()), own)


def submitter_of(ad: Ad) -> str:
    """Under which name the negotiator accounts for a job: its group and user, else its user.

    >>> submitter_of({"User": "ann@site.org"})
    'ann@site.org'
    >>> submitter_of({"User": "ann@site.org", "AccountingGroup": "physics.ann"})
    'physics.ann@site.org'
    """
    user = str(ad.get("User") or "")
    group = ad.get("AccountingGroup")
    if not isinstance(group, str) or not group:
        return user
    return f"{group}@{user.partition('@')[2]}"


def _own_before(ad: Any) -> str:
    """The constraint for idle jobs of the same submitter that come before a job."""
    prio, cluster, proc = (int(number(ad, name)) for name in ("JobPrio", "ClusterId", "ProcId"))
    group = ad.get("AccountingGroup")
    theirs = quote(group) if isinstance(group, str) else "undefined"
    same = f"User == {quote(str(ad.get('User') or ''))} && AccountingGroup =?= {theirs}"
    earlier = f"ClusterId < {cluster} || (ClusterId == {cluster} && ProcId < {proc})"
    before = f"JobPrio > {prio} || (JobPrio == {prio} && ({earlier}))"
    return f"JobStatus == 1 && {same} && ({before})"
