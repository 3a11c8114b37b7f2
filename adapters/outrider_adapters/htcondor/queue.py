"""The schedd's queue beside the event log: it knows whose a job is, and what the log lost."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from outrider.api import JobSpec, NamedEvent, events
from outrider_adapters.htcondor.job_steps import (
    COMPLETED,
    HELD,
    IDLE,
    RUNNING,
    SUSPENDED,
    JobSpecs,
    dated,
    edited,
    entered_status_s,
    held,
    started,
)
from outrider_adapters.htcondor.pool_calls import (
    ID_ATTRIBUTES,
    AccessPoint,
    Ad,
    in_clusters,
    job_name,
    left_before,
    left_by_name,
    number,
)
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.readers.htcondor.job_ads import machine_of_slot

JOB_ATTRIBUTES: Final = (
    *ID_ATTRIBUTES,
    "JobStatus",
    "QDate",
    "EnteredCurrentStatus",
    "JobCurrentStartDate",
    "RemoteHost",
    "CpusProvisioned",
    "HoldReason",
)
"""Attributes of a job ad that are read here, beside those that say what it asks for."""

_ON_A_MACHINE: Final = frozenset({RUNNING, SUSPENDED})
_STATUS_AFTER: Final = {
    events.SUBMITTED: IDLE,
    events.STARTED: RUNNING,
    events.SUSPENDED: SUSPENDED,
    events.RESUMED: RUNNING,
    events.EVICTED: IDLE,
    events.HELD: HELD,
    events.RELEASED: IDLE,
}


class _Known(NamedTuple):
    """A job as it was last heard of; `spec` is None where its submission was not."""

    status: int
    since_s: float
    machine: str
    spec: JobSpec | None


class QueueWatch:
    """The jobs in the queue, by what the event log and the queue itself tell.

    Args:
        point: whose queue.
        settings: how it is watched.
        specs: makes what jobs ask for of their ads.
    """

    def __init__(self, point: AccessPoint, settings: WatchSettings, specs: JobSpecs) -> None:
        self._point = point
        self._settings = settings
        self._specs = specs
        self._known: dict[str, _Known] = {}
        self._undescribed: set[str] = set()
        self._answered: frozenset[str] = frozenset()  # of those, whom the last snapshot answers
        self._adopts = False

    def begin(self, resumed: bool) -> None:
        """Start afresh. `resumed`: the jobs of the first snapshot were told before."""
        self._known.clear()
        self._undescribed.clear()
        self._adopts = resumed

    # -- what the log tells -------------------------------------------------------------------

    def describe(self, told: list[NamedEvent]) -> list[NamedEvent]:
        """The events, where submissions say what the queue (or the history) knows of the jobs.

        Args:
            told: what the log told; at least one submission.

        Raises:
            HTCondorException: the schedd does not answer (`AccessPoint.failure`); what these jobs
                ask for is told by the next snapshot.
        """
        submitted_s = {event[2]: event[0] for event in told if event[1] == events.SUBMITTED}
        new = list(submitted_s)
        self._undescribed.update(new)
        ads = self._query(in_clusters(new))
        gone = [job for job in new if job not in ads]
        if gone:
            since = left_before(min(submitted_s[job] for job in gone))
            asked = self._specs.attributes(JOB_ATTRIBUTES)
            # a history that is refused takes nothing away from what the queue has said
            with suppress(self._point.failure):
                left = self._point.schedd.history(in_clusters(gone), asked, -1, since)
                ads |= left_by_name(left, self._point.name)
        self._undescribed.difference_update(new)
        described: list[NamedEvent] = []
        for event in told:
            time_s, kind, job, _ = event
            if kind != events.SUBMITTED or job not in ads:
                described.append(event)
                continue
            ad = ads[job]
            described.append((time_s, kind, job, self._specs.of(ad)))
            entered_s = number(ad, "EnteredCurrentStatus")
            if number(ad, "JobStatus") == HELD and entered_s == number(ad, "QDate"):
                # submitted on hold: for this HTCondor 23 writes no record of its own
                described.append(held(time_s, job, ad))
        return described

    def hear_history(self, told: Sequence[NamedEvent]) -> None:
        """Remember what the log told of the past; what its jobs ask for is known from it alone."""
        self._undescribed.update(event[2] for event in told if event[1] == events.SUBMITTED)
        self.hear(told)

    def hear(self, told: Iterable[NamedEvent]) -> dict[NamedEvent, str]:
        """Remember what the log told; returns on which machine each evicted run was.

        An empty name: the log told of no start of that run.
        """
        evicted: dict[NamedEvent, str] = {}
        for event in told:
            time_s, kind, job, extra = event
            if kind in (events.COMPLETED, events.REMOVED):
                self._known.pop(job, None)
                self._undescribed.discard(job)
                continue
            before = self._known.get(job)
            if kind == events.EVICTED and before is not None:
                evicted[event] = before.machine if before.status in _ON_A_MACHINE else ""
            machine = extra[0] if kind == events.STARTED else before.machine if before else ""
            spec = extra if kind == events.SUBMITTED else before.spec if before else None
            if kind in _STATUS_AFTER:
                self._known[job] = _Known(_STATUS_AFTER[kind], time_s, machine, spec)
        return evicted

    # -- what the queue says otherwise --------------------------------------------------------

    @property
    def is_needed(self) -> bool:
        """True if what some jobs ask for is not known, so that the queue is to be read at once."""
        return bool(self._undescribed)

    def snapshot(self) -> dict[str, Ad]:
        """Every job in the queue. Raises `HTCondorException` (`AccessPoint.failure`)."""
        found = self._query("true")
        self._answered = frozenset(self._undescribed)
        return found

    def mend(self, snapshot: Mapping[str, Ad], taken_s: float) -> list[NamedEvent]:
        """What the log should have told by now and has not, and what was edited in the queue.

        Args:
            snapshot: the queue, as it was before the log was read.
            taken_s: when.

        Raises:
            HTCondorException: the schedd does not answer when it is asked for the history.
        """
        settled_s = taken_s - self._settings.repair_after_s
        told: list[NamedEvent] = []
        for job, ad in snapshot.items():
            known = self._known.get(job)
            if known is None:
                told += self._unheard(job, ad, taken_s, settled_s)
            else:
                told += self._differing(job, ad, known, taken_s, settled_s)
        self._adopts = False
        # whom it does not hold has left; others came after it
        self._undescribed.difference_update(self._answered, snapshot)
        missing = [
            job
            for job, known in self._known.items()
            if job not in snapshot and known.since_s < settled_s
        ]
        told = dated([*told, *self._vanished(missing, taken_s)], taken_s)
        self.hear(told)
        return told

    def _unheard(self, job: str, ad: Ad, taken_s: float, settled_s: float) -> list[NamedEvent]:
        """A job that the log has not told of: told before a restart, or older than the log."""
        spec, entered_s = self._specs.of(ad), entered_status_s(ad, taken_s)
        if self._adopts:
            machine = machine_of_slot(str(ad.get("RemoteHost") or ""))
            self._known[job] = _Known(int(number(ad, "JobStatus")), entered_s, machine, spec)
            return []
        if entered_s >= settled_s:
            return []
        recalled = msgspec.structs.replace(spec, recalled=True)
        submitted: NamedEvent = (number(ad, "QDate"), events.SUBMITTED, job, recalled)
        return [submitted, *steps_to(job, IDLE, ad)]

    def _differing(
        self, job: str, ad: Ad, known: _Known, taken_s: float, settled_s: float
    ) -> list[NamedEvent]:
        """What is otherwise with a job that is known."""
        told: list[NamedEvent] = []
        entered_s = entered_status_s(ad, taken_s)
        if max(known.since_s, entered_s) < settled_s:
            told += steps_to(job, known.status, ad)
        spec, known_spec = self._specs.of(ad), known.spec or JobSpec()
        changed = edited(known_spec, spec, number(ad, "JobStatus") not in (IDLE, HELD))
        if not changed:
            return told
        if job in self._undescribed:  # no edit: it has asked for that since its submission
            self._known[job] = known._replace(spec=spec)
            first_s = min([taken_s, *(event[0] for event in told)])
            return [(first_s, events.CHANGED, job, changed), *told]
        # what was asked after the snapshot is newer than that
        if known.since_s < settled_s:
            self._known[job] = known._replace(spec=spec)
            told.append((taken_s, events.CHANGED, job, changed))
        return told

    def _vanished(self, jobs: list[str], taken_s: float) -> list[NamedEvent]:
        """Jobs that have left the queue without a word in the log."""
        if not jobs:
            return []
        since = left_before(min(self._known[job].since_s for job in jobs))
        found = self._point.schedd.history(in_clusters(jobs), list(END_ATTRIBUTES), -1, since)
        ends = left_by_name(found, self._point.name)
        told: list[NamedEvent] = []
        for job in jobs:
            known = self._known[job]
            told += end_of(job, known.status, known.since_s, ends.get(job), taken_s)
        return told

    def _query(self, constraint: str) -> dict[str, Ad]:
        return self._by_name(self._specs.query(self._point.schedd, constraint, JOB_ATTRIBUTES))

    def _by_name(self, ads: Iterable[Ad]) -> dict[str, Ad]:
        return {job_name(ad, self._point.name): ad for ad in ads}


# -- lost records ----------------------------------------------------------------------------------
# What an event log should have told and has not, by the ads of the queue and the history.

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
