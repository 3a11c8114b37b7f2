"""What an event log should have told and has not, by the ads of the queue and the history."""

from typing import Final

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.job_steps import (
    COMPLETED,
    HELD,
    IDLE,
    RUNNING,
    SUSPENDED,
    held,
    started,
)
from outrider_adapters.htcondor.pool_calls import ID_ATTRIBUTES, Ad, number
from outrider_adapters.readers.htcondor.hosts import machine_of_slot

END_ATTRIBUTES: Final = (
    *ID_ATTRIBUTES, "JobStatus", "EnteredCurrentStatus", "CompletionDate", "JobCurrentStartDate",
    "LastRemoteHost", "CpusProvisioned", "RequestCpus",
)  # fmt: skip
"""Attributes of a job that has left which `end_of` reads."""


def end_of(
    job: str, status: int, since_s: float, ad: Ad | None, taken_s: float
) -> list[NamedEvent]:
    """How a job left the queue, with its last run if the log told of none.

    Args:
        job: its name.
        status: ``JobStatus`` as the log told it last.
        since_s: and when.
        ad: of the history, with `END_ATTRIBUTES`; None: it is not there.
        taken_s: when the job was missed.
    """
    if ad is None:
        return [(taken_s, events.REMOVED, job, "removed")]
    at_s = number(ad, "CompletionDate") or number(ad, "EnteredCurrentStatus")
    began_s, slot = number(ad, "JobCurrentStartDate"), str(ad.get("LastRemoteHost") or "")
    told: list[NamedEvent] = []
    if status not in (RUNNING, SUSPENDED) and slot and began_s > since_s - 1.0:
        told.append(started(job, began_s, slot, ad))
    if number(ad, "JobStatus") == COMPLETED:
        return [*told, (at_s, events.COMPLETED, job, None)]
    return [*told, (number(ad, "EnteredCurrentStatus"), events.REMOVED, job, "removed")]


def steps_to(job: str, status: int, ad: Ad) -> list[NamedEvent]:
    """The events that lead from a status to that of the ad, at the times the ad tells."""
    now, at_s = int(number(ad, "JobStatus")), number(ad, "EnteredCurrentStatus")
    if now == status or now not in (IDLE, RUNNING, HELD):
        return []
    if now == HELD:
        return [held(at_s, job, ad)]
    if now == IDLE:
        left = (events.RELEASED, None) if status == HELD else (events.EVICTED, "unknown")
        return [(at_s, left[0], job, left[1])]
    name = str(ad.get("RemoteHost") or "")
    began_s = number(ad, "JobCurrentStartDate") or at_s
    return [started(job, began_s, name, ad)] if machine_of_slot(name) else []
