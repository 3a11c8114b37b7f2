"""Watches on one access point: by its event log and its queue, or by its queue alone."""

import time
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from outrider.api import Batch, JobSpec, NamedEvent, events
from outrider_adapters.htcondor.job_steps import (
    COMPLETED,
    DISCONNECTED,
    NEW,
    REMOVED,
    STEP_ATTRIBUTES,
    JobSpecs,
    LostRun,
    SeenJob,
    dated,
    edited,
    seen,
    seen_at,
    steps,
)
from outrider_adapters.htcondor.pool_calls import (
    CLOCKS_DIFFER_S,
    ID_ATTRIBUTES,
    AccessPoint,
    Ad,
    in_clusters,
    is_of,
    job_name,
    left_before,
    left_by_name,
    number,
    short_id,
)
from outrider_adapters.htcondor.queue import QueueWatch
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.htcondor.slots import ClaimedSlots
from outrider_adapters.logtail import LogFollower, LogtailSettings
from outrider_adapters.polling import Asking

LOG: Final = "log"
QUEUE: Final = "queue"
"""Sources of an access point's jobs; a cursor belongs to one of them."""


class Look(NamedTuple):
    """Result of one look at an access point.

    Attributes:
        batch: events and state of the source; its cursor is that of the access point, by source,
            and `seen_until_s` is None where more can be read immediately.
        evicted: the run that each eviction among the events ended, where known.
    """

    batch: Batch
    evicted: dict[NamedEvent, LostRun]


class AccessPointWatch(Protocol):
    """Interface of a watch that polls one access point."""

    def start(self, cursors: Mapping[str, Any], looked_s: float) -> None:
        """Begin at the cursor of an earlier look, or at the beginning.

        A cursor of the other source says what was reported before: this one takes over from it.

        Args:
            cursors: cursors by source, `LOG` or `QUEUE`; empty: at the beginning.
            looked_s: when they were made, Unix seconds; minus infinity: unknown.

        Raises:
            KeyError, TypeError, ValueError, msgspec.ValidationError: it is not a cursor of a
                watch.
        """
        ...

    def look(self, now_s: float) -> Look:
        """Return what happened since the last look."""
        ...

    def repair(self) -> list[NamedEvent]:
        """Return events that correct the last look by the queue, if there are two sources."""
        ...

    def close(self) -> None:
        """Close the files that were opened."""
        ...


class LoggedAccessPoint:
    """Jobs from the event log; the queue supplies their owners and lost records.

    Args:
        point: the access point.
        log: location of its event log, and settings for reading it.
        settings: settings for watching it.
        specs: makes job specifications from ads.
        asking: makes the queries and records peers that do not answer.
        slots: checks which jobs slots run.
        file_clock: Unix seconds now by the file system of the log.
    """

    def __init__(
        self,
        point: AccessPoint,
        log: LogtailSettings,
        settings: WatchSettings,
        specs: JobSpecs,
        asking: Asking,
        slots: ClaimedSlots,
        file_clock: Callable[[], float] = time.time,
    ) -> None:
        self._who = f"schedd {point.name}"
        self._prefix = f"{point.name}#"
        self._asking = asking
        self._slots = slots
        self._settings = settings
        self._log = LogFollower(msgspec.structs.replace(log, system=point.name), file_clock)
        self._queue = QueueWatch(point, settings, specs)
        self._takeover = Takeover(QueueAlone(point, settings, specs))
        self._snapshot: Any = None
        self._taken_s = -inf
        self._snapshot_due_s = -inf

    def start(self, cursors: Mapping[str, Any], looked_s: float) -> None:
        """Begin at a cursor; see `AccessPointWatch.start`."""
        self._log.start(cursors.get(LOG))
        self._takeover.start(None if LOG in cursors else cursors.get(QUEUE))
        self._queue.begin(resumed=any(cursor is not None for cursor in cursors.values()))
        self._snapshot_due_s = -inf

    def close(self) -> None:
        """Close the event log."""
        self._log.close()

    def look(self, now_s: float) -> Look:
        """Return the events of the log, even if the queue does not answer."""
        self._snapshot, self._taken_s = None, now_s
        if self._takeover.is_due:
            return self._take_over(now_s)
        if self._is_due(now_s):  # before the log is read: later records are no contradiction
            self._snapshot = self._asking.ask(self._who, now_s, self._queue.snapshot)
        batch, _ = self._log.read()
        new_events = [self._queue.placed(self._own(event)) for event in batch.events]
        cursor: dict[str, Any] = {LOG: batch.cursor}
        new_events = self._takeover.without_reported(new_events)
        if self._takeover.is_pending:
            batch = msgspec.structs.replace(batch, history=False)
            if batch.seen_until_s is None:
                cursor = {QUEUE: self._takeover.save()}
            else:
                self._takeover.is_pending = False
        batch = msgspec.structs.replace(batch, cursor=cursor)
        if batch.history:
            self._queue.record_history(new_events)
            return Look(msgspec.structs.replace(batch, events=new_events), {})
        if any(event[1] == events.SUBMITTED for event in new_events):
            news = new_events
            new_events = (
                self._asking.ask(self._who, now_s, lambda: self._queue.describe(news)) or new_events
            )
            new_events = [self._queue.placed(event) for event in new_events]
        evicted = self._queue.record(new_events)
        # the follower's time is by the clock of its file system
        seen_s = None if batch.seen_until_s is None else now_s
        return Look(msgspec.structs.replace(batch, events=new_events, seen_until_s=seen_s), evicted)

    def _take_over(self, now_s: float) -> Look:
        """Return what happened since the queue was the source; to the log that is the past."""
        found = self._asking.ask(self._who, now_s, lambda: self._takeover.look(now_s))
        new_events, evicted = found or ([], {})
        batch = Batch(
            events=self._slots.confirmed(new_events, now_s),
            cursor={QUEUE: self._takeover.save()},
            seen_until_s=now_s,
        )
        return Look(batch, evicted)

    def _own(self, event: NamedEvent) -> NamedEvent:
        """Return an event with this access point's name, which its log may spell differently."""
        job = event[2]
        if job.startswith(self._prefix):
            return event
        return (*event[:2], f"{self._prefix}{short_id(job)}", event[3])

    def repair(self) -> list[NamedEvent]:
        """Return events that the log lacks, by the snapshot taken before it was read."""
        snapshot, taken_s = self._snapshot, self._taken_s
        if snapshot is None:
            return []
        self._snapshot_due_s = taken_s + self._settings.snapshot_s
        new_events = self._asking.ask(
            self._who, taken_s, lambda: self._queue.repair(snapshot, taken_s)
        )
        return self._slots.confirmed(new_events or [], taken_s)

    def _is_due(self, now_s: float) -> bool:
        ahead_s = self._snapshot_due_s - now_s
        was_set_back = ahead_s > self._settings.snapshot_s
        return ahead_s <= 0.0 or was_set_back or self._queue.is_needed


class QueuedAccessPoint:
    """Jobs by the queue and the history alone, where the event log cannot be read.

    Args:
        point: the access point.
        settings: settings for watching it.
        specs: makes job specifications from ads.
        asking: makes the queries and records peers that do not answer.
        slots: checks which jobs slots run.
    """

    def __init__(
        self,
        point: AccessPoint,
        settings: WatchSettings,
        specs: JobSpecs,
        asking: Asking,
        slots: ClaimedSlots,
    ) -> None:
        self._who = f"schedd {point.name}"
        self._asking = asking
        self._slots = slots
        self._settings = settings
        self._queue = QueueAlone(point, settings, specs)
        self._asked_s = -inf
        self._cursor: dict[str, Any] = {}

    def start(self, cursors: Mapping[str, Any], looked_s: float) -> None:
        """Begin at a cursor; see `AccessPointWatch.start`."""
        if QUEUE not in cursors and LOG in cursors and looked_s > -inf:
            self._queue.take_over(looked_s)
        else:
            self._queue.restore(cursors.get(QUEUE))
        self._asked_s = -inf
        self._cursor = dict(cursors)

    def close(self) -> None:
        """Do nothing: no file was opened."""

    def look(self, now_s: float) -> Look:
        """Return the changes in the queue, if a query is due. Between two queries nothing is known.

        A queue that does not answer blocks no other: what it reports later is late.
        """
        new_events: list[NamedEvent] = []
        evicted: dict[NamedEvent, LostRun] = {}
        if self._is_due(now_s):
            self._asked_s = now_s
            found = self._asking.ask(self._who, now_s, lambda: self._queue.look(now_s))
            if found is not None:
                new_events, evicted = found
                new_events = self._slots.confirmed(new_events, now_s)
                self._cursor = {QUEUE: self._queue.save()}
        seen_s = now_s if self._asking.is_away(self._who) else min(now_s, self._queue.asked_s)
        return Look(Batch(events=new_events, cursor=self._cursor, seen_until_s=seen_s), evicted)

    def _is_due(self, now_s: float) -> bool:
        # the clock may have been set back
        return not 0.0 <= now_s - self._asked_s < self._settings.queue_s

    def repair(self) -> list[NamedEvent]:
        """Return nothing: there is no second source."""
        return []


# -- queue alone -----------------------------------------------------------------------------------
# The jobs of an access point whose event log cannot be read: by its queue and its history.

_ATTRIBUTES: Final = (*ID_ATTRIBUTES, *STEP_ATTRIBUTES)
_CHANGES_OF_RUN: Final = frozenset({events.STARTED, events.EVICTED, events.HELD})


class _Known(NamedTuple):
    seen: SeenJob
    spec: JobSpec | None
    submit_s: float


class QueueAlone:
    """Poll of a schedd for changes, and for the whole queue every `snapshot_s`.

    Args:
        point: the access point of the queue.
        settings: settings for watching it.
        specs: makes job specifications from ads.

    Attributes:
        asked_s: when it was queried last; minus infinity: never.
    """

    def __init__(self, point: AccessPoint, settings: WatchSettings, specs: JobSpecs) -> None:
        self._point = point
        self._settings = settings
        self._specs = specs
        self._of_history = specs.attributes(_ATTRIBUTES)
        self.asked_s = -inf
        self._begun_s = -inf
        self._snapshot_s = -inf
        self._takes_over = False
        self._known: dict[str, _Known] = {}
        self._left_s: dict[str, float] = {}

    # -- state --------------------------------------------------------------------------------

    def save(self) -> dict[str, Any] | None:
        """Return the time of the last query, recent departures, and jobs that changed."""
        if self.asked_s == -inf:
            return None
        jobs = {
            name: known.seen
            for name, known in self._known.items()
            if known.seen != NEW or known.submit_s >= self.asked_s - CLOCKS_DIFFER_S
        }
        return {
            "asked_s": self.asked_s,
            "jobs": msgspec.to_builtins(jobs),
            "left_s": dict(self._left_s),
        }

    def restore(self, saved: Any) -> None:
        """Resume from the value of `save`; None: start with no known jobs.

        Raises:
            KeyError, TypeError, ValueError, msgspec.ValidationError: `save` did not make it.
        """
        self._known, self._left_s = {}, {}
        self.asked_s = self._begun_s = -inf if saved is None else float(saved["asked_s"])
        self._snapshot_s = -inf
        self._takes_over = False
        if saved is not None:
            jobs = msgspec.convert(saved["jobs"], dict[str, SeenJob])
            self._known = {name: _Known(one, None, -inf) for name, one in jobs.items()}
            self._left_s = msgspec.convert(saved["left_s"], dict[str, float])

    def take_over(self, looked_s: float) -> None:
        """Resume from the event log, which reported everything until this time (Unix seconds)."""
        self.restore({"asked_s": looked_s, "jobs": {}, "left_s": {}})
        self._takes_over = True

    @property
    def running(self) -> set[str]:
        """Jobs that ran at the last query."""
        return {job for job, known in self._known.items() if known.seen.is_running}

    # -- looking ------------------------------------------------------------------------------

    def look(self, now_s: float) -> tuple[list[NamedEvent], dict[NamedEvent, LostRun]]:
        """Return the events since the last look, by time, and the run that each eviction ended.

        Raises:
            HTCondorException: the schedd does not answer (`AccessPoint.failure`).
        """
        # the query begins early, since repeated jobs are recognized
        since_s = None if self.asked_s == -inf else int(self.asked_s) - CLOCKS_DIFFER_S
        whole = since_s is None or not 0.0 <= now_s - self._snapshot_s < self._settings.snapshot_s
        changed = f"EnteredCurrentStatus >= {since_s} || QDate >= {since_s} || {DISCONNECTED}"
        if away := [job for job, known in self._known.items() if known.seen.away]:
            changed += f" || ({in_clusters(away)})"  # a reconnection changes none of these
        queue = self._by_name(self._query("true" if whole else changed))
        left: dict[str, Ad] = {}
        if since_s is None:  # jobs that left before the beginning are not reported
            self._left_s = dict.fromkeys(self._left(int(now_s) - CLOCKS_DIFFER_S), now_s)
        else:
            left = self._left(since_s)
            left |= self._missing(queue, left) if whole else {}
        new_events: list[NamedEvent] = []
        evicted: dict[NamedEvent, LostRun] = {}
        for job, ad in [*queue.items(), *left.items()]:
            new_events += self._take(job, ad, now_s, evicted)
        for job in left:
            self._known.pop(job, None)
            self._left_s[job] = now_s
        self._forget(now_s)
        self.asked_s = now_s
        if whole:
            self._snapshot_s = now_s
        return sorted(new_events, key=lambda event: event[0]), evicted

    def _take(
        self, job: str, ad: Ad, now_s: float, evicted: dict[NamedEvent, LostRun]
    ) -> list[NamedEvent]:
        """Return the events that a job's ad shows, and store the ad's state."""
        if job in self._left_s:
            return []
        spec = self._specs.of(ad)
        known = self._known.get(job) or self._of_before(ad)
        new_events = dated(steps(job, known.seen if known else None, ad, spec), now_s)
        machine = known.seen.machine if known else ""
        for event in new_events:
            if event[1] == events.STARTED:
                machine = event[3][0]
            elif event[1] == events.EVICTED:
                evicted[event] = LostRun(machine)
        now = seen(ad, known.seen if known else None)
        before = known.spec if known and now.status not in (COMPLETED, REMOVED) else None
        changes = edited(before, spec, now.is_running) if before is not None else {}
        if changes:
            new_events.append((now_s, events.CHANGED, job, changes))
        self._known[job] = _Known(now, spec, number(ad, "QDate"))
        return new_events

    def _of_before(self, ad: Ad) -> _Known | None:
        """Return the state of a job that was reported before a restart, else None."""
        submit_s = number(ad, "QDate")
        if submit_s >= self._begun_s - CLOCKS_DIFFER_S:
            return None
        before = seen_at(ad, self._begun_s) if self._takes_over else NEW
        return _Known(before, None, submit_s)

    def _left(self, since_s: int) -> dict[str, Ad]:
        """Return the jobs that left the queue since then."""
        entered, since = (
            f"EnteredCurrentStatus >= {since_s}",
            left_before(since_s + CLOCKS_DIFFER_S),
        )
        found = self._point.schedd.history(entered, self._of_history, -1, since)
        own = self._by_name(ad for ad in found if is_of(ad, self._point.name))
        return {job: ad for job, ad in own.items() if job not in self._left_s}

    def _missing(self, queue: dict[str, Ad], left: dict[str, Ad]) -> dict[str, Ad]:
        """Return jobs that are no longer in the queue and not among its recent departures."""
        missing = [job for job in self._known if job not in queue and job not in left]
        if not missing:
            return {}
        since = left_before(max(self._snapshot_s, self._begun_s))  # they were in the queue then
        ads = self._point.schedd.history(in_clusters(missing), self._of_history, -1, since)
        found = left_by_name(ads, self._point.name)
        gone = {"JobStatus": 3, "EnteredCurrentStatus": self.asked_s}
        return {job: found.get(job, gone) for job in missing}

    def _forget(self, now_s: float) -> None:
        """Forget jobs that left so long ago that no query of the history returns them."""
        keep_s = now_s - 2 * self._settings.queue_s - 2 * CLOCKS_DIFFER_S
        self._left_s = {job: at_s for job, at_s in self._left_s.items() if at_s >= keep_s}

    def _query(self, constraint: str) -> Iterable[Any]:
        return self._specs.query(self._point.schedd, constraint, _ATTRIBUTES)

    def _by_name(self, ads: Iterable[Any]) -> dict[str, Ad]:
        return {job_name(ad, self._point.name): ad for ad in ads}


# -- takeover --------------------------------------------------------------------------------------
# The change from a queue alone to an event log that can be read now.


class Takeover:
    """Last query by the queue alone, before the event log becomes the source.

    Args:
        queue: the queue and the history, watched as until now.

    Attributes:
        is_due: True until that query was answered.
        is_pending: True until the log was read to its end, too; a restart begins again.
    """

    def __init__(self, queue: QueueAlone) -> None:
        self._queue = queue
        self._taken_s = -inf
        self._running: set[str] = set()
        self.is_due = False
        self.is_pending = False

    def start(self, cursor: Any) -> None:
        """Resume from the queue's cursor; None: there is nothing to take over."""
        self._running, self._taken_s = set(), -inf
        self.is_due = self.is_pending = cursor is not None
        if cursor is not None:
            self._queue.restore(cursor)

    def save(self) -> Any:
        """Return the queue's cursor."""
        return self._queue.save()

    def look(self, now_s: float) -> tuple[list[NamedEvent], dict[NamedEvent, LostRun]]:
        """Return what the queue shows since its cursor; see `QueueAlone.look`."""
        found = self._queue.look(now_s)
        self.is_due, self._taken_s, self._running = False, now_s, self._queue.running
        return found

    def without_reported(self, new_events: Iterable[NamedEvent]) -> list[NamedEvent]:
        """Return the log's events, except what the queue reported; a start it dates earlier."""
        left: list[NamedEvent] = []
        for event in new_events:
            time_s, kind, job, _ = event
            if time_s <= self._taken_s:
                continue
            if job in self._running and kind in _CHANGES_OF_RUN:
                self._running.discard(job)
                if kind == events.STARTED:
                    continue
            left.append(event)
        return left
