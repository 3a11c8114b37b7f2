"""Two looks at a job's ad made into the events that lie between them.

The ad of a job has the times of its present or last run and the start of the one before it, so the
last two runs are told exactly, however short they were. If there were more between two looks, the
earlier ones are lost; the event log has every one.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any, Final

import msgspec

from outrider.api import JobSpec, NamedEvent, events
from outrider_adapters.htcondor.eligibility import EligibilityWatch
from outrider_adapters.htcondor.machines import MadeOfAds
from outrider_adapters.htcondor.pool_calls import Ad, ScheddCalls, number
from outrider_adapters.readers.htcondor.event_mapping import hold_reason
from outrider_adapters.readers.htcondor.job_ads import (
    SPEC_ATTRIBUTES,
    UNKNOWN_HOST,
    job_spec,
    machine_of_slot,
    slot_of,
)

IDLE, RUNNING, REMOVED, COMPLETED, HELD, TRANSFERRING, SUSPENDED = range(1, 8)
"""`JobStatus`. One that transfers hands over its output: it still runs."""
STEP_ATTRIBUTES: Final = (
    "JobStatus", "QDate", "EnteredCurrentStatus", "NumShadowStarts", "NumJobReconnects",
    "JobCurrentStartDate", "JobCurrentStartExecutingDate", "JobLastStartDate", "LastVacateTime",
    "VacateReasonCode", "CompletionDate", "RemoteHost", "LastRemoteHost", "CpusProvisioned",
    "RequestCpus", "HoldReason",
)  # fmt: skip
"""Attributes of a job ad that are read here."""
_MOST_CPUS: Final = 1e6
_LONGEST_AGO_S: Final = 10 * 365 * 86_400.0
_FARTHEST_AHEAD_S: Final = 86_400.0
"""Clocks may differ by hours; by a day one is wrong."""
_ON_A_MACHINE: Final = frozenset({RUNNING, TRANSFERRING, SUSPENDED})


class SeenJob(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A job at the moment of a look.

    Attributes:
        status: `JobStatus`.
        runs: how many it has begun; taking up a connection again is no other run.
        machine: where it runs, else empty.
        start_s: since when it is on a machine, Unix seconds; 0: it is on none, or that is not
            known.
    """

    status: int
    runs: int
    machine: str = ""
    start_s: float = 0.0

    @property
    def is_running(self) -> bool:
        """True if it is on a machine; one that never began is not, whatever its user edited."""
        return self.runs > 0 and self.status in _ON_A_MACHINE


NEW: Final = SeenJob(IDLE, 0)
"""A job as it is submitted."""


def seen(ad: Ad) -> SeenJob:
    """What there is to remember of an ad."""
    status = int(number(ad, "JobStatus"))
    runs = number(ad, "NumShadowStarts") - number(ad, "NumJobReconnects")
    if status not in _ON_A_MACHINE:
        return SeenJob(status, max(0, int(runs)))
    machine = machine_of_slot(str(ad.get("RemoteHost") or ""))
    return SeenJob(status, max(0, int(runs)), machine, number(ad, "JobCurrentStartDate"))


def steps(job: str, before: SeenJob | None, ad: Ad, spec: JobSpec) -> list[NamedEvent]:
    """What happened to a job since it was seen before, in order.

    Args:
        job: its name.
        before: as it was then; None: it is new.
        ad: of now, of the queue or, once it has left that, of the history.
        spec: what its ad says it asks for.
    """
    told: list[NamedEvent] = []
    if before is None:
        told.append((number(ad, "QDate"), events.SUBMITTED, job, spec))
        before = NEW
    now = seen(ad)
    if before.status in (COMPLETED, REMOVED):
        return told
    began = now.runs - before.runs
    entered_s = number(ad, "EnteredCurrentStatus")
    runs = _runs(job, before, now, ad, began)
    if before.status == HELD and (runs or now.status not in (HELD, REMOVED)):
        released_s = runs[0][0] if runs else entered_s
        told.append((released_s, events.RELEASED, job, None))
    return [*told, *runs, *_present(job, before, now, began, entered_s, ad)]


def _runs(job: str, before: SeenJob, now: SeenJob, ad: Ad, began: int) -> list[NamedEvent]:
    """The runs that began since, and the end of those that another one followed."""
    if began <= 0:
        return []
    told: list[NamedEvent] = []
    start_s, vacated_s = _start_s(ad), number(ad, "LastVacateTime")
    previous_s = number(ad, "JobLastStartDate")
    if before.is_running or began > 1:  # a run went before the last one
        if not before.is_running and previous_s:
            # once the last run is over, nothing tells where the one before it was
            where = str(ad.get("LastRemoteHost") or "") if now.is_running else ""
            told.append(started(job, previous_s, where, ad))
        if before.is_running or told:
            run_s = before.start_s or previous_s
            # the time of an eviction after the last start is that of the last run
            ended_s = vacated_s if max(run_s, 1.0) <= vacated_s <= start_s else start_s
            # `JobStatus` says "running" of a shadow, too, whose program never began
            failed = not _had_begun(ad, run_s)
            told.append((ended_s, events.EVICTED, job, "failed_start" if failed else UNSAID))
    last = "RemoteHost" if now.is_running else "LastRemoteHost"
    told.append(started(job, start_s, str(ad.get(last) or ""), ad))
    return told


def _present(
    job: str, before: SeenJob, now: SeenJob, began: int, entered_s: float, ad: Ad
) -> list[NamedEvent]:
    """How it came to be as it is now."""
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
    was_suspended = before.status == SUSPENDED and began <= 0
    if (now.status == SUSPENDED) == was_suspended:
        return []
    return [(entered_s, events.RESUMED if was_suspended else events.SUSPENDED, job, None)]


def _lost(job: str, entered_s: float, ad: Ad) -> NamedEvent:
    """The end of the last run of a job that is idle again."""
    if not has_begun(ad):
        return entered_s, events.EVICTED, job, "failed_start"
    vacated_s = number(ad, "LastVacateTime")
    ended_s = vacated_s if vacated_s >= _start_s(ad) else entered_s
    return ended_s, events.EVICTED, job, REASONS.get(int(number(ad, "VacateReasonCode")), UNSAID)


def has_begun(ad: Ad) -> bool:
    """Return whether the last run of a job that is not running was one; else no machine got it going.

    A shadow that gives up before the job executes leaves neither mark.
    """
    return _had_begun(ad, number(ad, "JobCurrentStartDate"))


def _had_begun(ad: Ad, start_s: float) -> bool:
    """Return whether a run of a start, or one after it, left a mark."""
    marks = number(ad, "JobCurrentStartExecutingDate"), number(ad, "LastVacateTime")
    return max(marks) >= start_s


def held(time_s: float, job: str, ad: Ad) -> NamedEvent:
    """The hold of a job, and why, as its ad says it."""
    return time_s, events.HELD, job, hold_reason(str(ad.get("HoldReason") or "")) or None


def started(job: str, time_s: float, slot: str, ad: Ad) -> NamedEvent:
    """The start of a run on a slot (empty: not known), with as many CPUs as the ad tells."""
    told = number(ad, "CpusProvisioned") or number(ad, "RequestCpus")
    cpus = int(told) if 1.0 <= told <= _MOST_CPUS else 1
    machine, part = machine_of_slot(slot) or UNKNOWN_HOST, slot_of(slot)
    place: tuple[Any, ...] = (machine, cpus, part) if part else (machine, cpus)
    return time_s, events.STARTED, job, place


def _start_s(ad: Ad) -> float:
    """Return when the last run began."""
    return number(ad, "JobCurrentStartDate") or number(ad, "EnteredCurrentStatus")


def dated(told: list[NamedEvent], now_s: float) -> list[NamedEvent]:
    """Events by the times of ads; users may write these, too.

    One at a time that cannot be is told as of the next of its job, the last of them as of now.
    """
    first_s, last_s = now_s - _LONGEST_AGO_S, now_s + _FARTHEST_AHEAD_S
    next_s: dict[str, float] = {}
    found: list[NamedEvent] = []
    for event in reversed(told):
        time_s, _, job, _ = event
        if not first_s <= time_s <= last_s:
            time_s = next_s.get(job, now_s)
        next_s[job] = time_s
        found.append((time_s, *event[1:]))
    return found[::-1]


def entered_status_s(ad: Ad, now_s: float) -> float:
    """Return when a job entered its status; 0 where what its ad says of that cannot be."""
    time_s = number(ad, "EnteredCurrentStatus")
    return time_s if time_s <= now_s + _FARTHEST_AHEAD_S else 0.0


# -- job specs -------------------------------------------------------------------------------------
# What a job asks for, by its ad in the queue.

_AMOUNTS: Final = ("RequestCpus", "RequestMemory", "RequestGPUs")
_FIELDS: Final = ("user", "vo", "cpus", "estimate_s")
_REFERRED_TO: Final = ("MemoryUsage", "ImageSize", "ResidentSetSize")
"""Without a request of the user's own, ``RequestMemory`` is an expression of these."""
_UNASKED: Final = "ServerTime"
"""A schedd adds it to every answer: no two ads would be alike."""


class JobSpecs:
    """Job ads made into what the jobs ask for.

    Args:
        estimate_attribute: of the user's estimate of the run time, seconds; None: there is none.
        eligibility: tells which machines a job may use.
    """

    def __init__(self, estimate_attribute: str | None, eligibility: EligibilityWatch) -> None:
        self._estimate_attribute = estimate_attribute
        self._eligibility = eligibility
        estimate = [estimate_attribute] if estimate_attribute else []
        self._beside = [*SPEC_ATTRIBUTES, *_REFERRED_TO, *estimate]
        self._made = MadeOfAds(self._make)
        self._version = eligibility.version

    def attributes(self, beside: Iterable[str]) -> list[str]:
        """What to ask a history for: these, and what `of` reads of jobs that have left."""
        return list(dict.fromkeys([*beside, *self._beside]))

    def query(self, schedd: ScheddCalls, constraint: str, beside: Iterable[str]) -> Sequence[Any]:
        """The ads of jobs in a queue, with these attributes and all that `of` reads.

        Raises:
            HTCondorException: the schedd does not answer (`AccessPoint.failure`).
        """

        def ask(names: list[str]) -> Sequence[Any]:
            ads = schedd.query(constraint, names)
            for ad in ads:
                ad.pop(_UNASKED, None)
            return ads

        return self._eligibility.ask(ask, self.attributes(beside))

    def of(self, ad: Ad) -> JobSpec:
        """The specification of a job, from its ad."""
        if self._version != self._eligibility.version:
            self._version = self._eligibility.version
            self._made.clear()
        spec = self._made.of(ad)
        self._eligibility.saw(spec.eligible)
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
    """The fields that somebody changed.

    What a running job requests may be an expression of what it has used so far; that is no edit.
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
# What HTCondor's ``VacateReasonCode`` means to Outrider.
#
# Version 23 gives 1005 to most evictions, which says nothing; later ones tell them apart.

UNSAID: Final = "unknown"
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
"""Codes that say why by themselves."""
NO_MATTER_OF_SLOTS: Final = frozenset(
    {
        1004,  # UserVacateJob
        1008,  # ReconnectFailed: nobody knows what became of the run
        1010,  # StartdVacateCommand
        1017,  # StartdReleaseCommand
        1022,  # ScheddVacate
    }
)
"""Codes of runs that were given up at a request, or lost from sight.

Whoever has the slot afterwards was not the cause; what was, is not known.
"""
