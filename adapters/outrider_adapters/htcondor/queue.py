"""Complement an event log by the schedd's queue: job owners and lost records."""

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
    LostRun,
    access_point_of,
    dated,
    edited,
    entered_status_s,
    held,
    is_local,
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
    "JobUniverse",
    "QDate",
    "EnteredCurrentStatus",
    "JobCurrentStartDate",
    "NumShadowStarts",
    "RemoteHost",
    "CpusProvisioned",
    "HoldReason",
)
"""Attributes of a job ad that are read here, besides those of its specification."""

_NO_RUN: Final = LostRun("")
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
    """Last known state of a job.

    Attributes:
        status: its ``JobStatus``.
        since_s: when it entered that status, Unix seconds.
        run: its present or last run; no machine: none is known.
        spec: its specification; None: its submission was not seen.
    """

    status: int
    since_s: float
    run: LostRun
    spec: JobSpec | None


class QueueWatch:
    """The jobs in a queue, known from the event log and the queue itself.

    Args:
        point: the access point of the queue.
        settings: settings for watching it.
        specs: makes job specifications from ads.
    """

    def __init__(self, point: AccessPoint, settings: WatchSettings, specs: JobSpecs) -> None:
        self._point = point
        self._settings = settings
        self._specs = specs
        self._known: dict[str, _Known] = {}
        self._local: set[str] = set()
        self._undescribed: set[str] = set()
        self._answered: frozenset[str] = frozenset()  # those that the last snapshot describes
        self._adopts = False

    def begin(self, resumed: bool) -> None:
        """Start with no known jobs. `resumed`: jobs of the first snapshot were reported before."""
        self._known.clear()
        self._undescribed.clear()
        self._adopts = resumed

    # -- events of the log --------------------------------------------------------------------

    def describe(self, new_events: list[NamedEvent]) -> list[NamedEvent]:
        """Return the events, with job specifications from the queue or history in submissions.

        Args:
            new_events: events of the log, with at least one submission.

        Raises:
            HTCondorException: the schedd does not answer (`AccessPoint.failure`). The next snapshot
                supplies the specifications of these jobs.
        """
        submitted_s = {event[2]: event[0] for event in new_events if event[1] == events.SUBMITTED}
        new = list(submitted_s)
        self._undescribed.update(new)
        ads = self._query(in_clusters(new))
        gone = [job for job in new if job not in ads]
        if gone:
            since = left_before(min(submitted_s[job] for job in gone))
            asked = self._specs.attributes(JOB_ATTRIBUTES)
            # a history that is refused does not affect the answer of the queue
            with suppress(self._point.failure):
                left = self._point.schedd.history(in_clusters(gone), asked, -1, since)
                ads |= left_by_name(left, self._point.name)
        self._undescribed.difference_update(new)
        self._local.update(job for job, ad in ads.items() if is_local(ad))
        described: list[NamedEvent] = []
        for event in new_events:
            time_s, kind, job, _ = event
            if kind != events.SUBMITTED or job not in ads:
                described.append(event)
                continue
            ad = ads[job]
            described.append((time_s, kind, job, self._specs.of(ad)))
            if was_submitted_on_hold(ad):
                # HTCondor 23 writes no separate record of that
                described.append(held(time_s, job, ad))
        return described

    def placed(self, event: NamedEvent) -> NamedEvent:
        """Return an event; a job that runs beside its schedd starts on its access point.

        The log names the host, whose slots such a job does not use.
        """
        time_s, kind, job, extra = event
        if kind != events.STARTED or job not in self._local:
            return event
        return time_s, kind, job, (access_point_of(job), extra[1])

    def record_history(self, new_events: Sequence[NamedEvent]) -> None:
        """Store past events of the log, the only source of these jobs' specifications."""
        self._undescribed.update(event[2] for event in new_events if event[1] == events.SUBMITTED)
        self.record(new_events)

    def record(
        self, new_events: Iterable[NamedEvent], by_queue: bool = False
    ) -> dict[NamedEvent, LostRun]:
        """Store events and return each evicted run, without a machine if it has no start.

        Args:
            new_events: events of one source, in order.
            by_queue: True: the queue shows them; False: the log, which has a start once the
                program of the job began.
        """
        evicted: dict[NamedEvent, LostRun] = {}
        for event in new_events:
            time_s, kind, job, extra = event
            if kind in (events.COMPLETED, events.REMOVED):
                self._known.pop(job, None)
                self._undescribed.discard(job)
                continue
            before = self._known.get(job)
            if kind == events.EVICTED and before is not None:
                evicted[event] = before.run if before.status in _ON_A_MACHINE else _NO_RUN
            run = before.run if before else _NO_RUN
            if kind == events.STARTED:
                run = LostRun(extra[0], time_s if by_queue else None)
            spec = extra if kind == events.SUBMITTED else before.spec if before else None
            if kind in _STATUS_AFTER:
                self._known[job] = _Known(_STATUS_AFTER[kind], time_s, run, spec)
        return evicted

    # -- corrections by the queue -------------------------------------------------------------

    @property
    def is_needed(self) -> bool:
        """True if a job's specification is unknown, so that the queue has to be read now."""
        return bool(self._undescribed)

    def snapshot(self) -> dict[str, Ad]:
        """Return every job in the queue. Raises `HTCondorException` (`AccessPoint.failure`)."""
        found = self._query("true")
        self._answered = frozenset(self._undescribed)
        self._local = {job for job, ad in found.items() if is_local(ad)}
        return found

    def repair(self, snapshot: Mapping[str, Ad], taken_s: float) -> list[NamedEvent]:
        """Return events that the log lacks, and edits of jobs in the queue.

        Args:
            snapshot: the queue before the log was read.
            taken_s: time of the snapshot.

        Raises:
            HTCondorException: the schedd does not answer a query for the history.
        """
        settled_s = taken_s - self._settings.repair_after_s
        new_events: list[NamedEvent] = []
        for job, ad in snapshot.items():
            known = self._known.get(job)
            if known is None:
                new_events += self._unheard(job, ad, taken_s, settled_s)
            else:
                new_events += self._differing(job, ad, known, taken_s, settled_s)
        self._adopts = False
        # those that it lacks have left; others came after it
        self._undescribed.difference_update(self._answered, snapshot)
        missing = [
            job
            for job, known in self._known.items()
            if job not in snapshot and known.since_s < settled_s
        ]
        new_events = dated([*new_events, *self._vanished(missing, taken_s)], taken_s)
        self.record(new_events, by_queue=True)
        return new_events

    def _unheard(self, job: str, ad: Ad, taken_s: float, settled_s: float) -> list[NamedEvent]:
        """Return events of a job missing in the log, unless it was reported before a restart."""
        spec, entered_s = self._specs.of(ad), entered_status_s(ad, taken_s)
        if self._adopts:
            machine = machine_of_slot(str(ad.get("RemoteHost") or ""))
            run = LostRun(machine, number(ad, "JobCurrentStartDate"))
            self._known[job] = _Known(int(number(ad, "JobStatus")), entered_s, run, spec)
            return []
        if entered_s >= settled_s:
            return []
        recalled = msgspec.structs.replace(spec, recalled=True)
        submitted: NamedEvent = (number(ad, "QDate"), events.SUBMITTED, job, recalled)
        return [submitted, *steps_to(job, IDLE, ad)]

    def _differing(
        self, job: str, ad: Ad, known: _Known, taken_s: float, settled_s: float
    ) -> list[NamedEvent]:
        """Return events by which the queue differs from the known state of a job."""
        new_events: list[NamedEvent] = []
        entered_s = entered_status_s(ad, taken_s)
        if max(known.since_s, entered_s) < settled_s:
            new_events += steps_to(job, known.status, ad)
        spec, known_spec = self._specs.of(ad), known.spec or JobSpec()
        changed = edited(known_spec, spec, number(ad, "JobStatus") not in (IDLE, HELD))
        if not changed:
            return new_events
        if job in self._undescribed:  # no edit: it has asked for that since its submission
            self._known[job] = known._replace(spec=spec)
            first_s = min([taken_s, *(event[0] for event in new_events)])
            return [(first_s, events.CHANGED, job, changed), *new_events]
        # a specification read after the snapshot is newer
        if known.since_s < settled_s:
            self._known[job] = known._replace(spec=spec)
            new_events.append((taken_s, events.CHANGED, job, changed))
        return new_events

    def _vanished(self, jobs: list[str], taken_s: float) -> list[NamedEvent]:
        """Return the ends of jobs that left the queue without a record in the log."""
        if not jobs:
            return []
        since = left_before(min(self._known[job].since_s for job in jobs))
        found = self._point.schedd.history(in_clusters(jobs), list(END_ATTRIBUTES), -1, since)
        ends = left_by_name(found, self._point.name)
        new_events: list[NamedEvent] = []
        for job in jobs:
            known = self._known[job]
            new_events += end_of(job, known.status, known.since_s, ends.get(job), taken_s)
        return new_events

    def _query(self, constraint: str) -> dict[str, Ad]:
        return self._by_name(self._specs.query(self._point.schedd, constraint, JOB_ATTRIBUTES))

    def _by_name(self, ads: Iterable[Ad]) -> dict[str, Ad]:
        return {job_name(ad, self._point.name): ad for ad in ads}


# -- lost records ----------------------------------------------------------------------------------
# Events that an event log lacks, from the ads of the queue and the history.

END_ATTRIBUTES: Final = (
    *ID_ATTRIBUTES, "JobStatus", "JobUniverse", "EnteredCurrentStatus", "CompletionDate",
    "JobCurrentStartDate", "LastRemoteHost", "CpusProvisioned", "RequestCpus",
)  # fmt: skip
"""Attributes of a job that has left which `end_of` reads."""


def end_of(
    job: str, status: int, since_s: float, ad: Ad | None, taken_s: float
) -> list[NamedEvent]:
    """Return how a job left the queue, with its last run if the log has none.

    Args:
        job: the job's name.
        status: the last ``JobStatus`` known from the log.
        since_s: when it entered that status.
        ad: its ad in the history, with `END_ATTRIBUTES`; None: it is not there.
        taken_s: when the job was found missing.
    """
    if ad is None:
        return [(taken_s, events.REMOVED, job, "removed")]
    at_s = number(ad, "CompletionDate") or number(ad, "EnteredCurrentStatus")
    began_s, slot = number(ad, "JobCurrentStartDate"), str(ad.get("LastRemoteHost") or "")
    new_events: list[NamedEvent] = []
    if status not in (RUNNING, SUSPENDED) and slot and began_s > since_s - 1.0:
        new_events.append(started(job, began_s, slot, ad))
    if number(ad, "JobStatus") == COMPLETED:
        return [*new_events, (at_s, events.COMPLETED, job, None)]
    return [*new_events, (number(ad, "EnteredCurrentStatus"), events.REMOVED, job, "removed")]


def was_submitted_on_hold(ad: Ad) -> bool:
    """Return whether a job was on hold from its submission on.

    A job that ran and was held within the second of its submission has the same times. It has had
    a shadow, and the log has its start and its hold.
    """
    entered_s, submitted_s = number(ad, "EnteredCurrentStatus"), number(ad, "QDate")
    is_held = number(ad, "JobStatus") == HELD
    return is_held and entered_s == submitted_s and number(ad, "NumShadowStarts") == 0


def steps_to(job: str, status: int, ad: Ad) -> list[NamedEvent]:
    """Return the events that lead from a status to that of the ad, with the ad's times."""
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
    is_placed = is_local(ad) or bool(machine_of_slot(name))
    return [started(job, began_s, name, ad)] if is_placed else []
