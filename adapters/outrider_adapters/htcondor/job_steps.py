"""Two looks at a job's ad made into the events that lie between them.

The ad of a job has the times of its present or last run and the start of the one before it, so the
last two runs are told exactly, however short they were. If there were more between two looks, the
earlier ones are lost; the event log has every one.
"""

from typing import Any, Final

import msgspec

from outrider.api import JobSpec, NamedEvent, events
from outrider_adapters.htcondor.pool_calls import Ad, number
from outrider_adapters.htcondor.vacate_codes import REASONS, UNSAID
from outrider_adapters.readers.htcondor.event_mapping import hold_reason
from outrider_adapters.readers.htcondor.hosts import UNKNOWN_HOST, machine_of_slot, slot_of

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
        """Whether it is on a machine; one that never began is not, whatever its user edited."""
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
    """Whether the last run of a job that is not running was one; else no machine got it going.

    A shadow that gives up before the job executes leaves neither mark.
    """
    return _had_begun(ad, number(ad, "JobCurrentStartDate"))


def _had_begun(ad: Ad, start_s: float) -> bool:
    """Whether a run of a start, or one after it, left a mark."""
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
    """When the last run began."""
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
    """When a job entered its status; 0 where what its ad says of that cannot be."""
    time_s = number(ad, "EnteredCurrentStatus")
    return time_s if time_s <= now_s + _FARTHEST_AHEAD_S else 0.0
