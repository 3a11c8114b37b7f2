"""Queries to a pool that explain why a job waits."""

import re
from typing import Any, Final

from outrider.api import PeerError, WaitingReason
from outrider_adapters.htcondor.eligibility.matching import Matching
from outrider_adapters.htcondor.pool_calls import ID_ATTRIBUTES, AccessPoint, PoolCalls, job_name
from outrider_adapters.htcondor.pool_watch import PoolWatch
from outrider_adapters.htcondor.reasons import (
    REASON_ATTRIBUTES,
    TURN_ATTRIBUTES,
    Now,
    is_idle,
    turn_of,
    waiting_reason,
)
from outrider_adapters.readers.htcondor.job_ads import machine_of_slot

_NAME: Final = re.compile(r"(?P<schedd>.+)#(?P<cluster>\d{1,18})\.(?P<proc>\d{1,18})")
_ATTRIBUTES: Final = dict.fromkeys([*ID_ATTRIBUTES, *REASON_ATTRIBUTES, *TURN_ATTRIBUTES])
_UNCLAIMED: Final = 'State == "Unclaimed" && DynamicSlot =!= true && Cpus > 0'


def ask_why(watch: PoolWatch, calls: PoolCalls, job: str) -> WaitingReason | None:
    """Return why a job is not running.

    None: it runs, has left the queue, or belongs to another access point.

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
                    matching = watch.eligibility.matching(ad)
                    now = _now(watch, calls, matching)
                    turn = turn_of(calls, point, ad) if is_idle(ad) else None
                    problem = watch.negotiator.problem
                    return waiting_reason(ad, point.name, matching, now, turn, problem)
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
    owned = {name for name in matching.machines if name in seen and seen[name].owner}
    return Now(free=len(matching.machines & free), owned=len(owned))
