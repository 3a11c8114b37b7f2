"""Why runs were lost, by what the queue and the slots say soon after: an event log rarely tells."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.access_points import Look
from outrider_adapters.htcondor.bindings import quote
from outrider_adapters.htcondor.job_steps import has_begun, started
from outrider_adapters.htcondor.machines import MachineState, is_owned, told_s
from outrider_adapters.htcondor.pool_calls import (
    ID_ATTRIBUTES,
    AccessPoint,
    Ad,
    PoolCalls,
    in_clusters,
    job_name,
    number,
)
from outrider_adapters.htcondor.vacate_codes import NO_MATTER_OF_SLOTS, REASONS, UNSAID
from outrider_adapters.polling import Asking

_WITHIN_S: Final = 60.0
"""How long after an eviction the states of the job and its slot still tell why."""

_MOST_ASKED: Final = 500
"""Evictions of one look about which it is asked; of more, the machines' states alone tell."""

_CLOCKS_S: Final = 2.0
"""So far apart the log's, the queue's and a machine's time of the same moment may be."""

_AD_WITHIN_S: Final = 2.0
_PAUSE_S: Final = 0.5
_MOST_PAUSES: Final = 3
"""The ad of a slot that changed its state is at the collector a second later."""

_OWNER_WITHIN_S: Final = 10.0
"""A slot that became its owner's later than this after an eviction was not given up for him."""

_JOB_ATTRIBUTES: Final = (
    *ID_ATTRIBUTES, "User", "JobStatus", "VacateReasonCode", "LastVacateTime", "LastRemoteHost",
    "JobCurrentStartDate", "JobCurrentStartExecutingDate", "RequestCpus",
)  # fmt: skip
_PREEMPTIONS: Final = ("RecentJobRankPreemptions", "RecentJobUserPrioPreemptions")
_SLOT_ATTRIBUTES: Final = (
    "Name", "State", "EnteredCurrentState", "MyCurrentTime", "LastHeardFrom", "OwnerActive",
    "Draining", "RemoteOwner", "PreemptingUser", *_PREEMPTIONS,
)  # fmt: skip


class Causes:
    """Finds the causes of evictions.

    Args:
        calls: the pool.
        asking: asks, and notes who does not answer.
        pause: lets so many seconds pass.
    """

    def __init__(self, calls: PoolCalls, asking: Asking, pause: Callable[[float], None]) -> None:
        self._calls = calls
        self._asking = asking
        self._pause = pause

    def told(
        self, point: AccessPoint, look: Look, machines: Mapping[str, MachineState], now_s: float
    ) -> list[NamedEvent]:
        """The events of a look at an access point, evictions with their causes.

        A run of which no start was told has failed to begin. Where the queue knows on which slot,
        both are told; where it does not, neither: there is no run to be lost.

        Args:
            point: that was looked at.
            look: at it.
            machines: of the pool, as they are now.
            now_s: when it was looked at.
        """
        wanted = [event for event in look.batch.events if _is_open(event, now_s)][-_MOST_ASKED:]
        jobs = self._jobs(point, wanted, now_s) if wanted else {}
        slots = self._slots(jobs.values(), now_s) if jobs else {}
        told: list[NamedEvent] = []
        for event in look.batch.events:
            if not _is_open(event, now_s):
                told.append(event)
                continue
            ad = jobs.get(event[2])
            if look.evicted.get(event) == "":
                told += _unbegun(event, ad)
                continue
            slot = None if ad is None else slots.get(str(ad.get("LastRemoteHost")))
            machine = machines.get(look.evicted.get(event, ""))
            told.append((*event[:3], _cause(event, ad, slot, machine)))
        return told

    def _jobs(
        self, point: AccessPoint, wanted: Iterable[NamedEvent], now_s: float
    ) -> dict[str, Any]:
        """The ads of the jobs that are in the queue still, by name."""
        constraint = in_clusters(event[2] for event in wanted)
        ads = self._asking.ask(
            f"schedd {point.name}",
            now_s,
            lambda: point.schedd.query(constraint, list(_JOB_ATTRIBUTES)),
        )
        return {job_name(ad, point.name): ad for ad in ads or ()}

    def _slots(self, jobs: Collection[Ad], now_s: float) -> dict[str, Any]:
        """The slots on which jobs ran last, by name; also those that are parts of another."""
        names = {str(ad["LastRemoteHost"]) for ad in jobs if "LastRemoteHost" in ad}
        if not names:
            return {}
        constraint = f"member(Name, {{{','.join(map(quote, sorted(names)))}}})"
        slots: dict[str, Any] = {}
        for pauses in range(_MOST_PAUSES + 1):
            if pauses:
                self._pause(_PAUSE_S)
            ads = self._asking.ask("collector", now_s, lambda: self._query_slots(constraint))
            slots = {str(ad["Name"]): ad for ad in ads or ()}
            if ads is None or not any(_is_due(ad, slots, now_s) for ad in jobs):
                break
        return slots

    def _query_slots(self, constraint: str) -> Any:
        calls = self._calls
        return calls.collector.query(calls.slot_ads, constraint, list(_SLOT_ATTRIBUTES))


def _is_due(job: Ad, slots: Mapping[str, Any], now_s: float) -> bool:
    """Whether a slot that was given up a moment ago will soon tell what became of it."""
    vacated_s = number(job, "LastVacateTime")
    slot = slots.get(str(job.get("LastRemoteHost")))
    return slot is not None and now_s - vacated_s < _AD_WITHIN_S and told_s(slot) <= vacated_s


def _is_open(event: NamedEvent, now_s: float) -> bool:
    """Whether an event is an eviction of which more may be known."""
    is_recent = now_s - event[0] <= _WITHIN_S
    return event[1] == events.EVICTED and event[3] in (UNSAID, "held") and is_recent


def _unbegun(event: NamedEvent, ad: Any) -> list[NamedEvent]:
    """What is told of a run that the log ends and never began."""
    slot = "" if ad is None or has_begun(ad) else str(ad.get("LastRemoteHost") or "")
    begun_s = 0.0 if ad is None else number(ad, "JobCurrentStartDate")
    if not slot or begun_s > event[0]:  # that is the next attempt
        return []
    if begun_s == int(event[0]):
        begun_s = event[0]
    return [started(event[2], begun_s, slot, ad), (*event[:3], "failed_start")]


def _cause(event: NamedEvent, ad: Any, slot: Any, machine: MachineState | None) -> str:
    """Why a run was lost: by the job's own code, else by its slot, else by its machine."""
    said = str(event[3])
    vacated_s = 0.0 if ad is None else number(ad, "LastVacateTime")
    if abs(vacated_s - event[0]) > _CLOCKS_S:  # its last run is another one
        ad = slot = None
    code = -1 if ad is None else int(number(ad, "VacateReasonCode"))
    if code in REASONS:
        return REASONS[code]
    if said != UNSAID or code in NO_MATTER_OF_SLOTS:
        return said
    if slot is not None and told_s(slot) >= vacated_s:
        return _cause_by_slot(slot, str(ad.get("User") or ""), vacated_s)
    if machine is None or not (machine.owner or machine.draining):
        return said
    return "drained" if machine.draining else "owner"


def _cause_by_slot(slot: Any, user: str, vacated_s: float) -> str:
    """Why a run was lost on a slot, by the slot's ad of afterwards."""
    entered_s = number(slot, "EnteredCurrentState")
    if slot.get("Draining") is True or slot.get("State") == "Drained":
        return "drained"
    if is_owned(slot):
        return "owner" if entered_s <= vacated_s + _OWNER_WITHIN_S else UNSAID
    if slot.get("State") == "Preempting" and "PreemptingUser" in slot:
        return "preempted"
    if slot.get("State") != "Claimed" or abs(entered_s - vacated_s) >= _CLOCKS_S:
        return UNSAID
    if any(name in slot for name in _PREEMPTIONS):
        return "preempted" if any(number(slot, name) for name in _PREEMPTIONS) else UNSAID
    return "preempted" if str(slot.get("RemoteOwner") or user) != user else UNSAID
