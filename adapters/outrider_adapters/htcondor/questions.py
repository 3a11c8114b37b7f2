"""Queries to a pool that explain why a job waits."""

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from outrider.api import PeerError, WaitingReason
from outrider_adapters.htcondor.eligibility.matching import Matching
from outrider_adapters.htcondor.job_steps import is_local
from outrider_adapters.htcondor.lease_edits import HOLD, UNTIL
from outrider_adapters.htcondor.pool_calls import (
    ID_ATTRIBUTES,
    AccessPoint,
    Ad,
    PoolCalls,
    job_name,
    number,
    quote,
)
from outrider_adapters.htcondor.pool_watch import PoolWatch
from outrider_adapters.htcondor.reasons import (
    LEASE_ENDS,
    REASON_ATTRIBUTES,
    Now,
    Obstacle,
    Turn,
    is_idle,
    utc,
    waiting_reason,
)
from outrider_adapters.htcondor.slots import CLOSED_SLOTS, WHOLE_SLOTS
from outrider_adapters.readers.htcondor.event_mapping import hold_reason
from outrider_adapters.readers.htcondor.job_ads import machine_of_slot

TURN_ATTRIBUTES: Final = ("ClusterId", "ProcId", "User", "AccountingGroup", "JobPrio")
"""Attributes of a job ad that are read here."""
ACCOUNT_ATTRIBUTES: Final = (
    "Name", "Priority", "AccountingGroup", "IsAccountingGroup", "Ceiling", "EffectiveQuota",
    "SurplusPolicy", "WeightedResourcesUsed",
)  # fmt: skip
"""Attributes of an account that are read here."""
_NAME: Final = re.compile(r"(?P<schedd>.+)#(?P<cluster>\d{1,18})\.(?P<proc>\d{1,18})")
_ATTRIBUTES: Final = dict.fromkeys([*ID_ATTRIBUTES, *REASON_ATTRIBUTES, *TURN_ATTRIBUTES])
_DRAINED: Final = "DrainReason =!= undefined && DynamicSlot =!= true"
_MAX_REASONS: Final = 3
_MAX_REASON_CHARS: Final = 80
_UNCLAIMED: Final = 'State == "Unclaimed" && DynamicSlot =!= true && Cpus > 0'


def ask_why(watch: PoolWatch, calls: PoolCalls, job: str) -> WaitingReason | None:
    """Return why a job is not running, or that it runs by now.

    None: it is over, or belongs to another access point.

    Args:
        watch: the watch on the pool.
        calls: calls to the pool.
        job: the job's name (`job_name`).

    Raises:
        PeerError: the pool does not answer.
    """
    found = _NAME.fullmatch(job)
    if found is None:
        return None
    constraint = f"ClusterId == {found['cluster']} && ProcId == {found['proc']}"
    try:
        for point in _points(calls, found["schedd"]):
            for ad in _ask(watch, point, constraint):
                if job_name(ad, point.name) == job:
                    if not is_idle(ad):
                        return waiting_reason(ad, point.name, None, Now(0, 0))
                    matching = watch.eligibility.matching(ad)
                    now = _now(watch, calls, matching)
                    problem = watch.negotiator.problem
                    accounts = accounts_of(calls, submitter_of(ad), asks_negotiator=not problem)
                    turn = turn_of(calls, point, ad, accounts)
                    obstacle = obstacle_of(calls, ad, watch.now_s, accounts, problem)
                    return waiting_reason(ad, point.name, matching, now, turn, obstacle)
    except calls.failure as error:
        raise PeerError(f"the pool does not answer: {error}") from error
    return None


def _points(calls: PoolCalls, schedd: str) -> list[AccessPoint]:
    """Return the access point of this name; all if none has it, since names may change."""
    named = [point for point in calls.access_points if point.name == schedd]
    return named or list(calls.access_points)


def _ask(watch: PoolWatch, point: AccessPoint, constraint: str) -> Any:
    return watch.eligibility.ask(
        lambda names: point.schedd.query(constraint, names), list(_ATTRIBUTES)
    )


def _now(watch: PoolWatch, calls: PoolCalls, matching: Matching | None) -> Now:
    if matching is None or not matching.machines:
        return Now(free=0, owned=0)
    # what is left of a partitionable slot may be too little for this job
    constraint = f"{_UNCLAIMED} && {matching.fits}"
    ads = calls.collector.query(calls.slot_ads, constraint, ["Name"])
    free = {machine_of_slot(str(ad["Name"])) for ad in ads}
    seen = watch.slots.machines
    states = {name: seen[name] for name in matching.machines if name in seen}
    owned = {name for name, state in states.items() if state.owner}
    drained = {name for name, state in states.items() if state.draining} - owned
    asleep = {name for name, state in states.items() if state.asleep} - owned - drained
    closed = {name for name, state in states.items() if not state.usable}
    closed -= owned | drained | asleep
    return Now(
        free=len((matching.machines & free) - drained - closed - asleep),
        owned=len(owned),
        drained=len(drained),
        drain_reasons=_drain_reasons(calls, drained) if drained else (),
        closed=len(closed),
        asleep=len(asleep),
        starts=_starts(calls, closed) if closed else (),
    )


def _drain_reasons(calls: PoolCalls, machines: set[str]) -> tuple[str, ...]:
    """Return what administrators said when they drained these machines, a few at most."""
    ads = calls.collector.query(calls.slot_ads, _DRAINED, ["Name", "DrainReason"])
    found = {
        hold_reason(str(ad.get("DrainReason") or ""))[:_MAX_REASON_CHARS]
        for ad in ads
        if machine_of_slot(str(ad["Name"])) in machines
    }
    return tuple(sorted(found - {""})[:_MAX_REASONS])


def _starts(calls: PoolCalls, machines: set[str]) -> tuple[str, ...]:
    """Return the expressions of START that are false now on these machines, a few at most."""
    ads = calls.collector.query(
        calls.slot_ads, f"{WHOLE_SLOTS} && {CLOSED_SLOTS}", ["Name", "Start"]
    )
    found = {
        hold_reason(str(ad.get("Start")))
        for ad in ads
        if machine_of_slot(str(ad["Name"])) in machines
    }
    return tuple(sorted(found - {"", "false", "False", "None"})[:_MAX_REASONS])


# -- turns -----------------------------------------------------------------------------------------
# User priorities, and the number of queued jobs that come first.


def accounts_of(calls: PoolCalls, submitter: str, asks_negotiator: bool = True) -> dict[str, Ad]:
    """Return the accounts of groups and users by name, with `ACCOUNT_ATTRIBUTES`.

    The collector has none of users without usage; the negotiator has.

    Args:
        calls: calls to the pool.
        submitter: the account that is needed (`submitter_of`).
        asks_negotiator: whether the negotiator is asked for it, if the collector has none.

    Raises:
        HTCondorException: the collector does not answer (`PoolCalls.failure`).
    """
    if calls.accounting_ads is None:
        return {}
    ads = calls.collector.query(calls.accounting_ads, "true", list(ACCOUNT_ATTRIBUTES))
    known = {str(one.get("Name")): one for one in ads}
    if submitter not in known and asks_negotiator and calls.accounts is not None:
        with suppress(calls.failure):  # it answers nothing during a cycle
            known = {str(one.get("Name")): one for one in calls.accounts()} | known
    return known


def turn_of(
    calls: PoolCalls, point: AccessPoint, ad: Ad, accounts: Mapping[str, Ad]
) -> Turn | None:
    """Count the jobs before an idle job; None if the priority of its user is unknown.

    Args:
        calls: calls to the pool.
        point: access point of the job.
        ad: ad of the job, with `TURN_ATTRIBUTES`.
        accounts: see `accounts_of`.

    Raises:
        HTCondorException: the pool does not answer (`PoolCalls.failure`).
    """
    submitter = submitter_of(ad)
    if calls.submitter_ads is None or submitter not in accounts:
        return None
    priorities = {
        name: number(one, "Priority")
        for name, one in accounts.items()
        if one.get("IsAccountingGroup") is not True
    }
    idle: Counter[str] = Counter()
    for one in calls.collector.query(calls.submitter_ads, "IdleJobs > 0", ["Name", "IdleJobs"]):
        idle[str(one.get("Name"))] += int(number(one, "IdleJobs"))  # at each access point
    better = {
        name: n for name, n in idle.items()
        if priorities.get(name, 0.0) < priorities[submitter] and name != submitter
    }  # fmt: skip
    own = len(point.schedd.query(_own_before(ad), ["ClusterId"]))
    return Turn(priorities[submitter], len(better), sum(better.values()), own)


def submitter_of(ad: Ad) -> str:
    """Return the negotiator's accounting name of a job: its group and user, else its user.

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
    """Return the constraint for idle jobs of the same submitter that come before a job."""
    prio, cluster, proc = (int(number(ad, name)) for name in ("JobPrio", "ClusterId", "ProcId"))
    group = ad.get("AccountingGroup")
    theirs = quote(group) if isinstance(group, str) else "undefined"
    same = f"User == {quote(str(ad.get('User') or ''))} && AccountingGroup =?= {theirs}"
    earlier = f"ClusterId < {cluster} || (ClusterId == {cluster} && ProcId < {proc})"
    before = f"JobPrio > {prio} || (JobPrio == {prio} && ({earlier}))"
    return f"JobStatus == 1 && {same} && ({before})"


# -- obstacles -------------------------------------------------------------------------------------
# Causes for which the negotiator does not match a job, though machines may run it.

_GRID, _PARALLEL = 9, 11
_CRON: Final = ("CronMinute", "CronHour", "CronDayOfMonth", "CronMonth", "CronDayOfWeek")


def obstacle_of(
    calls: PoolCalls,
    ad: Ad,
    now_s: float,
    accounts: Mapping[str, Ad],
    negotiator_problem: str = "",
) -> Obstacle | None:
    """Return why an idle job is not matched now, apart from the machines; None: unknown.

    Args:
        calls: calls to the pool.
        ad: ad of the job, with `REASON_ATTRIBUTES` and `TURN_ATTRIBUTES`.
        now_s: Unix seconds.
        accounts: see `accounts_of`.
        negotiator_problem: see `NegotiatorWatch`.

    Raises:
        HTCondorException: the pool does not answer (`PoolCalls.failure`).
    """
    if is_local(ad):
        sentence = "it runs on its access point, once the schedd there starts it"
        return Obstacle(sentence, "see START_LOCAL_UNIVERSE and START_SCHEDULER_UNIVERSE", True)
    universe = int(number(ad, "JobUniverse"))
    if universe == _GRID:
        return _grid(ad)
    if universe == _PARALLEL:
        return _parallel(calls, ad)
    if negotiator_problem:
        sentence, _, remedy = negotiator_problem.rpartition("; ")
        return Obstacle(sentence, remedy)
    if number(ad, UNTIL) > now_s and ad.get(HOLD) is True:
        sentence = (
            f"Outrider keeps it in the queue until {utc(number(ad, UNTIL))} UTC, and longer if "
            "its policy renews that"
        )
        return Obstacle(sentence, LEASE_ENDS)
    return _not_yet(ad, now_s) or _at_its_limit(accounts, ad)


def _grid(ad: Ad) -> Obstacle:
    resource = hold_reason(str(ad.get("GridResource") or "")) or "another batch system"
    sentence = f"it is for {resource}: no machine of the pool runs it"
    away_s = number(ad, "GridResourceUnavailableTime")
    if away_s:
        sentence += f", and {resource} has not answered since {utc(away_s)} UTC"
    return Obstacle(sentence, "see GridmanagerLog of its access point, and that system", True)


def _parallel(calls: PoolCalls, ad: Ad) -> Obstacle:
    scheduler = str(ad.get("Scheduler") or "")
    constraint = f"DedicatedScheduler =?= {quote(scheduler)}"
    slots = len(calls.collector.query(calls.slot_ads, constraint, ["Name"]))
    n = int(number(ad, "MaxHosts"))
    sentence = (
        f"it is of the parallel universe and needs {n:,} slots together; {slots:,} slots of the "
        f"pool serve its dedicated scheduler {scheduler}"
    )
    if slots < n:
        return Obstacle(sentence, "set DedicatedScheduler on more execute nodes", True)
    return Obstacle(sentence, "wait until as many of these slots are free together", True)


def _not_yet(ad: Ad, now_s: float) -> Obstacle | None:
    """Return the deferral of a job to a time that its user set."""
    at_s = number(ad, "DeferralTime")
    if at_s - number(ad, "DeferralPrepTime") <= now_s:
        return None
    is_cron = any(name in ad for name in _CRON)
    what = "the next time of its cron_ settings" if is_cron else "its deferral_time"
    return Obstacle(f"it starts at {utc(at_s)} UTC at the earliest, {what}", "wait until then")


def _at_its_limit(known: Mapping[str, Ad], ad: Ad) -> Obstacle | None:
    """Return the ceiling of a job's submitter, or the quota of its group, that is used up."""
    more = max(1.0, number(ad, "RequestCpus"))
    submitter = submitter_of(ad)
    own = known.get(submitter)
    if own is not None:
        used, most = number(own, "WeightedResourcesUsed"), own.get("Ceiling")
        if isinstance(most, (int, float)) and 0 <= most < used + more:
            sentence = f"{submitter} uses {used:g} of at most {most:g} CPUs (its ceiling)"
            return Obstacle(sentence, _within(submitter, "ceiling", most >= more))
    group = _group_of(ad, own)
    while group:
        found = known.get(group)
        if found is not None and found.get("SurplusPolicy") == "no":
            used, most = number(found, "WeightedResourcesUsed"), number(found, "EffectiveQuota")
            if used + more > most:
                sentence = f"its accounting group {group} uses {used:g} CPUs of a quota of {most:g}"
                return Obstacle(sentence, _within(group, "quota", most >= more))
        group = group.rpartition(".")[0]
    return None


def _within(whose: str, what: str, helps: bool) -> str:
    """Return the remedy for a limit; to wait only helps if the limit is large enough."""
    wait = f"wait until jobs of {whose} have ended, or " if helps else ""
    return f"{wait}have the {what} of {whose} raised"


def _group_of(ad: Ad, submitter: Any) -> str:
    """Return a job's accounting group, by the negotiator or else by the job; empty: none."""
    if submitter is not None and isinstance(submitter.get("AccountingGroup"), str):
        name = str(submitter["AccountingGroup"])
        return "" if name == "<none>" else name
    named = ad.get("AccountingGroup")
    return named.rpartition(".")[0] if isinstance(named, str) else ""
