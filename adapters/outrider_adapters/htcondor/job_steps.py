"""Convert two looks at a job's ad into the events between them.

The ad of a job has the times of its present or last run and the start of the one before it. So the
last two runs are reported exactly, however short they were. If there were more between two looks,
the earlier ones are lost; the event log has all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, inf
from typing import Any, Final, NamedTuple

import msgspec

from outrider.api import JobSpec, MachineSpec, NamedEvent, events
from outrider_adapters.htcondor.eligibility import EligibilityWatch
from outrider_adapters.htcondor.machines import AdCache
from outrider_adapters.htcondor.pool_calls import Ad, ScheddCalls, number
from outrider_adapters.readers.htcondor.event_mapping import hold_reason
from outrider_adapters.readers.htcondor.job_ads import (
    ACCESS_POINT,
    SPEC_ATTRIBUTES,
    UNKNOWN_HOST,
    access_point,
    job_spec,
    machine_of_slot,
    slot_of,
)

IDLE, RUNNING, REMOVED, COMPLETED, HELD, TRANSFERRING, SUSPENDED = range(1, 8)
"""Values of `JobStatus`. A job that transfers its output still runs."""
STEP_ATTRIBUTES: Final = (
    "JobStatus", "JobUniverse", "QDate", "EnteredCurrentStatus", "NumShadowStarts",
    "NumJobReconnects", "JobRunCount", "JobCurrentStartDate", "JobCurrentStartExecutingDate",
    "JobLastStartDate", "LastVacateTime", "VacateReasonCode", "CompletionDate", "RemoteHost",
    "LastRemoteHost", "CpusProvisioned", "RequestCpus", "HoldReason", "JobCurrentReconnectAttempt",
    "JobDisconnectedDate", "LastJobLeaseRenewal",
)  # fmt: skip
"""Attributes of a job ad that are read here."""
DISCONNECTED: Final = "JobCurrentReconnectAttempt > 0"
"""Constraint for jobs with a run to which their access point tries to reconnect."""
_ACCESS_POINT_SPEC: Final = MachineSpec(cluster="access points", inferred=True, usable=False)
_MAX_CPUS: Final = 1e6
_MAX_PAST_S: Final = 10 * 365 * 86_400.0
_MAX_FUTURE_S: Final = 86_400.0
"""Largest plausible difference between two clocks, in seconds."""
ON_A_MACHINE: Final = frozenset({RUNNING, TRANSFERRING, SUSPENDED})
_SCHEDULER, _GRID, _LOCAL = 7, 9, 12
"""Values of `JobUniverse`: DAGMan and others beside the schedd, jobs of another batch system."""


class SeenJob(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A job at the moment of a look.

    Attributes:
        status: `JobStatus`.
        runs: number of runs that have begun; a reconnection is not a new run.
        machine: the machine that it runs on, else empty.
        start_s: start of its present or last run, Unix seconds; 0: unknown.
        away: its access point has lost the connection to its run, and tries to reconnect.
    """

    status: int
    runs: int
    machine: str = ""
    start_s: float = 0.0
    away: bool = False

    @property
    def is_running(self) -> bool:
        """True if it is on a machine; a job that never began is not, even after an edit."""
        return self.runs > 0 and self.status in ON_A_MACHINE


class LostRun(NamedTuple):
    """A run that an eviction ended.

    Attributes:
        machine: the machine that it was on; empty: no start of it was reported.
        queued_start_s: its start by the queue, which counts a run before its program begins; Unix
            seconds. None: it is certain whether the program began.
    """

    machine: str
    queued_start_s: float | None = None


NEW: Final = SeenJob(IDLE, 0)
"""A job as it is submitted."""


def seen(ad: Ad, before: SeenJob | None = None) -> SeenJob:
    """Return the state of a job that has to be remembered.

    Args:
        ad: the job's ad.
        before: its state at the last look; None: unknown.
    """
    status = int(number(ad, "JobStatus"))
    start_s = number(ad, "JobCurrentStartDate")
    runs = max(0, int(number(ad, "NumShadowStarts") - number(ad, "NumJobReconnects")))
    if int(number(ad, "JobUniverse")) in (_SCHEDULER, _GRID):  # no shadow counts their starts
        runs = max(int(number(ad, "JobRunCount")), status in ON_A_MACHINE)
    if before is not None and before.runs and before.start_s:
        # a reconnected run is counted as a new one until its shadow updates the queue
        last_s = number(ad, "JobLastStartDate")
        if last_s < start_s == before.start_s:
            runs = before.runs
        elif last_s == before.start_s < start_s:
            runs = before.runs + 1
    if status not in ON_A_MACHINE:
        return SeenJob(status, runs, "", start_s if runs else 0.0)
    machine = machine_of_slot(str(ad.get("RemoteHost") or ""))
    return SeenJob(status, runs, machine, start_s, is_disconnected(ad))


def is_disconnected(ad: Ad) -> bool:
    """Return whether an access point tries to reconnect to the run of a job.

    The time of the disconnection stays in the ad after that.
    """
    is_away = number(ad, "JobCurrentReconnectAttempt") > 0
    return is_away and int(number(ad, "JobStatus")) in ON_A_MACHINE


def seen_at(ad: Ad, time_s: float) -> SeenJob:
    """Return the state that a job had at a past time, as far as its ad shows it."""
    now, began_s = seen(ad), number(ad, "JobCurrentStartDate")
    if number(ad, "EnteredCurrentStatus") < time_s:
        return now
    if now.runs and began_s < time_s:
        slot = str(ad.get("RemoteHost") or ad.get("LastRemoteHost") or "")
        return SeenJob(RUNNING, now.runs, machine_of_slot(slot), began_s)
    return SeenJob(IDLE, max(0, now.runs - 1))


def steps(job: str, before: SeenJob | None, ad: Ad, spec: JobSpec) -> list[NamedEvent]:
    """Return what happened to a job since the last look, in order.

    Args:
        job: the job's name.
        before: its state at the last look; None: it is new.
        ad: its current ad from the queue or, once it has left, from the history.
        spec: its specification from the ad.
    """
    new_events: list[NamedEvent] = []
    if before is None:
        new_events.append((number(ad, "QDate"), events.SUBMITTED, job, spec))
        before = NEW
    now = seen(ad, before)
    if before.status in (COMPLETED, REMOVED):
        return new_events
    began = now.runs - before.runs
    entered_s = number(ad, "EnteredCurrentStatus")
    runs = _runs(job, before, now, ad, began)
    if before.status == HELD and (runs or now.status not in (HELD, REMOVED)):
        released_s = runs[0][0] if runs else entered_s
        new_events.append((released_s, events.RELEASED, job, None))
    return [*new_events, *runs, *_to_current(job, before, now, began, entered_s, ad)]


def _runs(job: str, before: SeenJob, now: SeenJob, ad: Ad, began: int) -> list[NamedEvent]:
    """Return the runs that began since the last look, and the ends of all but the last."""
    if began <= 0:
        return []
    new_events: list[NamedEvent] = []
    start_s, vacated_s = _start_s(ad), number(ad, "LastVacateTime")
    previous_s = number(ad, "JobLastStartDate")
    if before.is_running or began > 1:  # a run went before the last one
        if not before.is_running and previous_s:
            # once the last run is over, the machine of the run before it is unknown
            where = str(ad.get("LastRemoteHost") or "") if now.is_running else ""
            new_events.append(started(job, previous_s, where, ad))
        if before.is_running or new_events:
            run_s = (before.start_s if before.is_running else 0.0) or previous_s
            # the time of an eviction after the last start is that of the last run
            ended_s = vacated_s if max(run_s, 1.0) <= vacated_s <= start_s else start_s
            # `JobStatus` is "running" even if the shadow's program never began
            failed = not had_begun(ad, run_s)
            new_events.append(
                (ended_s, events.EVICTED, job, "failed_start" if failed else UNKNOWN_REASON)
            )
    last = "RemoteHost" if now.is_running else "LastRemoteHost"
    new_events.append(started(job, start_s, str(ad.get(last) or ""), ad))
    return new_events


def _to_current(
    job: str, before: SeenJob, now: SeenJob, began: int, entered_s: float, ad: Ad
) -> list[NamedEvent]:
    """Return the events that led to the job's current status."""
    ran = before.is_running or began > 0
    if now.status == COMPLETED:
        return [(number(ad, "CompletionDate") or entered_s, events.COMPLETED, job, None)]
    if now.status == REMOVED:
        return [(entered_s, events.REMOVED, job, "removed")]
    if now.status == HELD:
        why = REASONS.get(int(number(ad, "VacateReasonCode"))) if ran else None
        lost: list[NamedEvent] = [(entered_s, events.EVICTED, job, why)] if why else []
        return [] if before.status == HELD and not ran else [*lost, held(entered_s, job, ad)]
    if now.status == IDLE:
        return [_lost(job, entered_s, ad)] if ran else []
    if not now.runs:
        return []
    new_events: list[NamedEvent] = []
    was_suspended = before.status == SUSPENDED and began <= 0
    if (now.status == SUSPENDED) != was_suspended:
        kind = events.RESUMED if was_suspended else events.SUSPENDED
        new_events.append((entered_s, kind, job, None))
    was_away = before.away and began <= 0
    if now.away and not was_away:
        new_events.append((number(ad, "JobDisconnectedDate"), events.DISCONNECTED, job, None))
    elif was_away and not now.away:
        new_events.append((number(ad, "LastJobLeaseRenewal"), events.RECONNECTED, job, None))
    return new_events


def _lost(job: str, entered_s: float, ad: Ad) -> NamedEvent:
    """Return the end of the last run of a job that is idle again."""
    if not has_begun(ad):
        return entered_s, events.EVICTED, job, "failed_start"
    vacated_s = number(ad, "LastVacateTime")
    ended_s = vacated_s if vacated_s >= _start_s(ad) else entered_s
    return (
        ended_s,
        events.EVICTED,
        job,
        REASONS.get(int(number(ad, "VacateReasonCode")), UNKNOWN_REASON),
    )


def has_begun(ad: Ad) -> bool:
    """Return whether the last run of a job that is not running really began executing.

    A shadow that gives up before the job executes leaves neither mark.
    """
    return had_begun(ad, number(ad, "JobCurrentStartDate"))


def had_begun(ad: Ad, start_s: float, before_s: float = inf) -> bool:
    """Return whether a run of a start, or one after it up to a time, left a mark.

    Jobs that run on their access point leave none.
    """
    if is_local(ad):
        return True
    marks = number(ad, "JobCurrentStartExecutingDate"), number(ad, "LastVacateTime")
    return any(start_s <= mark < before_s for mark in marks)


def held(time_s: float, job: str, ad: Ad) -> NamedEvent:
    """Return the hold event of a job, with the reason from its ad."""
    return time_s, events.HELD, job, hold_reason(str(ad.get("HoldReason") or "")) or None


def is_local(ad: Ad) -> bool:
    """Return whether a job runs on its access point, beside the schedd, and uses no slot."""
    return int(number(ad, "JobUniverse")) in (_SCHEDULER, _LOCAL)


def access_point_of(job: str) -> str:
    """Return the name of an access point as a machine, from a job of it.

    >>> access_point_of("ap1.site.org#12.0")
    'access point ap1.site.org'
    """
    return access_point(job.rpartition("#")[0])


def access_points_of(new_events: Iterable[NamedEvent]) -> list[NamedEvent]:
    """Return what introduces the access points on which runs begin: nothing is free there."""
    found: dict[str, NamedEvent] = {}
    for time_s, kind, _, extra in new_events:
        if kind == events.STARTED and extra[0].startswith(ACCESS_POINT):
            found.setdefault(extra[0], (time_s, events.JOINED, extra[0], _ACCESS_POINT_SPEC))
    return list(found.values())


def started(job: str, time_s: float, slot: str, ad: Ad) -> NamedEvent:
    """Return the start of a run on a slot (empty: unknown), with the CPUs in the ad."""
    new_events = number(ad, "CpusProvisioned") or number(ad, "RequestCpus")
    cpus = int(new_events) if 1.0 <= new_events <= _MAX_CPUS else 1
    if is_local(ad):
        return time_s, events.STARTED, job, (access_point_of(job), cpus)
    machine, part = machine_of_slot(slot) or UNKNOWN_HOST, slot_of(slot)
    place: tuple[Any, ...] = (machine, cpus, part) if part else (machine, cpus)
    return time_s, events.STARTED, job, place


def _start_s(ad: Ad) -> float:
    """Return when the last run began."""
    return number(ad, "JobCurrentStartDate") or number(ad, "EnteredCurrentStatus")


def dated(new_events: list[NamedEvent], now_s: float) -> list[NamedEvent]:
    """Return events with implausible times replaced, since users can edit the times in ads.

    An impossible time becomes the time of the job's next event; for its last event, now.
    """
    first_s, last_s = now_s - _MAX_PAST_S, now_s + _MAX_FUTURE_S
    next_s: dict[str, float] = {}
    found: list[NamedEvent] = []
    for event in reversed(new_events):
        time_s, _, job, _ = event
        if not first_s <= time_s <= last_s:
            time_s = next_s.get(job, now_s)
        next_s[job] = time_s
        found.append((time_s, *event[1:]))
    return found[::-1]


def entered_status_s(ad: Ad, now_s: float) -> float:
    """Return when a job entered its status; 0 if the time in its ad is implausible."""
    time_s = number(ad, "EnteredCurrentStatus")
    return time_s if time_s <= now_s + _MAX_FUTURE_S else 0.0


# -- job specs -------------------------------------------------------------------------------------
# Job specifications from ads in the queue.

_AMOUNTS: Final = ("RequestCpus", "RequestMemory", "RequestGPUs")
_FIELDS: Final = ("user", "vo", "cpus", "estimate_s")
_REFERRED_TO: Final = ("MemoryUsage", "ImageSize", "ResidentSetSize")
"""Attributes that ``RequestMemory`` is an expression of, if the user requests no memory."""
_ADDED_BY_SCHEDD: Final = "ServerTime"
"""Attribute that a schedd adds to every answer; with it no two ads would be the same."""


class JobSpecs:
    """Converter of job ads into job specifications.

    Args:
        estimate_attribute: attribute with the user's run-time estimate in seconds; None: none.
        eligibility: finds the machines that a job may use.
    """

    def __init__(self, estimate_attribute: str | None, eligibility: EligibilityWatch) -> None:
        self._estimate_attribute = estimate_attribute
        self._eligibility = eligibility
        estimate = [estimate_attribute] if estimate_attribute else []
        self._spec_attributes = [*SPEC_ATTRIBUTES, *_REFERRED_TO, *estimate]
        self._made = AdCache(self._make)
        self._version = eligibility.version

    def attributes(self, extra: Iterable[str]) -> list[str]:
        """Return the attributes to query a history for: `extra`, and those that `of` reads."""
        return list(dict.fromkeys([*extra, *self._spec_attributes]))

    def query(self, schedd: ScheddCalls, constraint: str, extra: Iterable[str]) -> Sequence[Any]:
        """Return the ads of jobs in a queue, with these attributes and all that `of` reads.

        Raises:
            HTCondorException: the schedd does not answer (`AccessPoint.failure`).
        """

        def ask(names: list[str]) -> Sequence[Any]:
            ads = schedd.query(constraint, names)
            for ad in ads:
                ad.pop(_ADDED_BY_SCHEDD, None)
            return ads

        return self._eligibility.ask(ask, self.attributes(extra))

    def of(self, ad: Ad) -> JobSpec:
        """Return the specification of a job, from its ad."""
        if self._version != self._eligibility.version:
            self._version = self._eligibility.version
            self._made.clear()
        spec = self._made.of(ad)
        self._eligibility.mark_seen(spec.eligible)
        return spec

    def _make(self, ad: Ad) -> JobSpec:
        facts = {name: str(ad[name]) for name in SPEC_ATTRIBUTES if name in ad}
        amounts = {name: f"{ceil(amount)}" for name in _AMOUNTS if (amount := number(ad, name)) > 0}
        spec = job_spec(facts | amounts)
        changes: dict[str, Any] = {}
        if eligible := self._eligibility.class_of(ad):
            changes["eligible"] = eligible
        given = ad.get(self._estimate_attribute) if self._estimate_attribute else None
        if isinstance(given, (int, float)) and given > 0:
            changes["estimate_s"] = float(given)
        return msgspec.structs.replace(spec, **changes) if changes else spec


def edited(before: JobSpec, after: JobSpec, is_running: bool) -> dict[str, Any]:
    """Return the fields that were edited.

    The request of a running job may be an expression of its use so far; that is no edit.
    """
    if after is before:  # its ad is as it was
        return {}
    fields = _FIELDS if is_running else (*_FIELDS, "resources", "eligible")
    return {
        field: getattr(after, field)
        for field in fields
        if getattr(after, field) != getattr(before, field)
    }


# -- vacate codes ----------------------------------------------------------------------------------
# Meaning of HTCondor's ``VacateReasonCode`` for Outrider.
#
# Version 23 gives 1005 to most evictions, which has no meaning; later versions distinguish them.

UNKNOWN_REASON: Final = "unknown"
_COULD_NOT_BEGIN: Final = (
    6,  # FailedToCreateProcess: the executable cannot be run there
    1003,  # JobNotStarted: a step of its set-up failed
    1006,  # FailedToActivateClaim
    *range(1026, 1037),  # ActivationRefused...
)
REASONS: Final[Mapping[int, str]] = {
    **dict.fromkeys(_COULD_NOT_BEGIN, "failed_start"),
    1014: "drained",  # StartdDraining
    1018: "preempted",  # StartdPreemptingClaimRank
    1019: "preempted",  # StartdPreemptingClaimUserPrio
    1023: "removed",  # JobRemoved
}
"""Eviction reason of each code that determines it."""
NOT_CAUSED_BY_SLOT: Final = frozenset(
    {
        1004,  # UserVacateJob
        1008,  # ReconnectFailed: the outcome of the run is unknown
        1010,  # StartdVacateCommand
        1017,  # StartdReleaseCommand
        1022,  # ScheddVacate
    }
)
"""Codes of runs that were vacated on request, or lost contact.

The next user of the slot was not the cause; the cause is unknown.
"""
