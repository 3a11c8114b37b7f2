"""Looks at one access point: by its event log and its queue, or by its queue alone."""

import time
from collections.abc import Callable, Iterable
from math import inf
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import msgspec

from outrider.api import Batch, JobSpec, NamedEvent, events
from outrider_adapters.htcondor.job_steps import (
    COMPLETED,
    NEW,
    REMOVED,
    STEP_ATTRIBUTES,
    JobSpecs,
    SeenJob,
    dated,
    edited,
    seen,
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


class Look(NamedTuple):
    """What one look at an access point gave.

    Attributes:
        batch: events and state of the source; its cursor is that of the access point, and
            `seen_until_s` is None where more can be read at once.
        evicted: on which machine each eviction among the events was, where that is known; empty
            where no start of the run was told.
    """

    batch: Batch
    evicted: dict[NamedEvent, str]


class AccessPointWatch(Protocol):
    """One access point that is looked at again and again.

    Class variables:
        source: from where its jobs are known; a cursor is of one source.
    """

    source: ClassVar[str]

    def start(self, cursor: Any) -> None:
        """Begin at the cursor of an earlier look, or at the beginning.

        Raises:
            KeyError, TypeError, ValueError, msgspec.ValidationError: it is none of this watch's.
        """
        ...

    def look(self, now_s: float) -> Look:
        """What happened since the last look."""
        ...

    def mend(self) -> list[NamedEvent]:
        """What the queue says otherwise than the last look, where there are two sources."""
        ...

    def close(self) -> None:
        """Close what was opened."""
        ...


class LoggedAccessPoint:
    """Jobs by the event log; the queue says whose they are, and what the log lost.

    Args:
        point: whom to ask.
        log: where its event log is, and how it is read.
        settings: how it is watched.
        specs: makes what jobs ask for of their ads.
        asking: asks, and notes who does not answer.
        slots: say what they run.
        file_clock: Unix seconds now by the file system of the log.
    """

    source: ClassVar[str] = "log"

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
        self._snapshot: Any = None
        self._taken_s = -inf
        self._snapshot_due_s = -inf

    def start(self, cursor: Any) -> None:
        """As `AccessPointWatch` has it."""
        self._log.start(cursor)
        self._queue.begin(resumed=cursor is not None)
        self._snapshot_due_s = -inf

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def look(self, now_s: float) -> Look:
        """What the log tells; a queue that does not answer takes nothing away from it."""
        self._snapshot, self._taken_s = None, now_s
        if self._is_due(now_s):  # before the log is read: what it tells later is no contradiction
            self._snapshot = self._asking.ask(self._who, now_s, self._queue.snapshot)
        batch, _ = self._log.read()
        told = [self._own(event) for event in batch.events]
        if batch.history:
            self._queue.hear_history(told)
            return Look(msgspec.structs.replace(batch, events=told), {})
        if any(event[1] == events.SUBMITTED for event in told):
            news = told
            told = self._asking.ask(self._who, now_s, lambda: self._queue.describe(news)) or told
        evicted = self._queue.hear(told)
        # what the follower says is by the clock of its file system
        seen_s = None if batch.seen_until_s is None else now_s
        return Look(msgspec.structs.replace(batch, events=told, seen_until_s=seen_s), evicted)

    def _own(self, event: NamedEvent) -> NamedEvent:
        """An event of this access point's log, whatever its records say of the schedd's name."""
        job = event[2]
        if job.startswith(self._prefix):
            return event
        return (*event[:2], f"{self._prefix}{short_id(job)}", event[3])

    def mend(self) -> list[NamedEvent]:
        """What the log should have told by then and has not, by the snapshot before it."""
        snapshot, taken_s = self._snapshot, self._taken_s
        if snapshot is None:
            return []
        self._snapshot_due_s = taken_s + self._settings.snapshot_s
        told = self._asking.ask(self._who, taken_s, lambda: self._queue.mend(snapshot, taken_s))
        return self._slots.confirmed(told or [], taken_s)

    def _is_due(self, now_s: float) -> bool:
        ahead_s = self._snapshot_due_s - now_s
        was_set_back = ahead_s > self._settings.snapshot_s
        return ahead_s <= 0.0 or was_set_back or self._queue.is_needed


class QueuedAccessPoint:
    """Jobs by the queue and the history alone, where the event log cannot be read.

    Args:
        point: whom to ask.
        settings: how it is watched.
        specs: makes what jobs ask for of their ads.
        asking: asks, and notes who does not answer.
        slots: say what they run.
    """

    source: ClassVar[str] = "queue"

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
        self._tried_s = -inf
        self._cursor: Any = None

    def start(self, cursor: Any) -> None:
        """As `AccessPointWatch` has it."""
        self._queue.restore(cursor)
        self._tried_s = -inf
        self._cursor = cursor

    def close(self) -> None:
        """Nothing was opened."""

    def look(self, now_s: float) -> Look:
        """What the queue tells, if it is time to ask. Between two askings nothing is known.

        One that does not answer holds up nobody: what it tells later is late.
        """
        told: list[NamedEvent] = []
        evicted: dict[NamedEvent, str] = {}
        if self._is_due(now_s):
            self._tried_s = now_s
            found = self._asking.ask(self._who, now_s, lambda: self._queue.look(now_s))
            if found is not None:
                told, evicted = found
                told = self._slots.confirmed(told, now_s)
                self._cursor = self._queue.save()
        seen_s = now_s if self._asking.is_away(self._who) else min(now_s, self._queue.asked_s)
        return Look(Batch(events=told, cursor=self._cursor, seen_until_s=seen_s), evicted)

    def _is_due(self, now_s: float) -> bool:
        since_s = now_s - self._tried_s
        return since_s >= self._settings.queue_s or since_s < 0.0  # the clock was set back

    def mend(self) -> list[NamedEvent]:
        """Nothing: there is no second source."""
        return []


# -- queue alone -----------------------------------------------------------------------------------
# The jobs of an access point whose event log nobody can read: by its queue and its history.

_ATTRIBUTES: Final = (*ID_ATTRIBUTES, *STEP_ATTRIBUTES)


class _Known(NamedTuple):
    seen: SeenJob
    spec: JobSpec | None
    submit_s: float


class QueueAlone:
    """Asks a schedd what changed, and for the whole queue every `snapshot_s`.

    Args:
        point: whose queue.
        settings: how it is watched.
        specs: makes what jobs ask for of their ads.

    Attributes:
        asked_s: when it was asked last; minus infinity: never.
    """

    def __init__(self, point: AccessPoint, settings: WatchSettings, specs: JobSpecs) -> None:
        self._point = point
        self._settings = settings
        self._specs = specs
        self._of_history = specs.attributes(_ATTRIBUTES)
        self.asked_s = -inf
        self._begun_s = -inf
        self._snapshot_s = -inf
        self._known: dict[str, _Known] = {}
        self._left_s: dict[str, float] = {}

    # -- state --------------------------------------------------------------------------------

    def save(self) -> dict[str, Any] | None:
        """Return when it was asked last, who left of late, and the jobs that are not as submitted."""
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
        """Go on from what `save` gave; None: from nothing.

        Raises:
            KeyError, TypeError, ValueError, msgspec.ValidationError: it is none of ours.
        """
        self._known, self._left_s = {}, {}
        self.asked_s = self._begun_s = -inf if saved is None else float(saved["asked_s"])
        self._snapshot_s = -inf
        if saved is not None:
            jobs = msgspec.convert(saved["jobs"], dict[str, SeenJob])
            self._known = {name: _Known(one, None, -inf) for name, one in jobs.items()}
            self._left_s = msgspec.convert(saved["left_s"], dict[str, float])

    # -- looking ------------------------------------------------------------------------------

    def look(self, now_s: float) -> tuple[list[NamedEvent], dict[NamedEvent, str]]:
        """What happened to jobs since the last look, by time; and where each eviction was.

        Raises:
            HTCondorException: the schedd does not answer (`AccessPoint.failure`).
        """
        since_s = self._since_s()
        whole = since_s is None or not 0.0 <= now_s - self._snapshot_s < self._settings.snapshot_s
        changed = f"EnteredCurrentStatus >= {since_s} || QDate >= {since_s}"
        queue = self._by_name(self._query("true" if whole else changed))
        if since_s is None:  # who left before the beginning is not told
            self._left_s = dict.fromkeys(self._left(int(now_s) - CLOCKS_DIFFER_S), now_s)
        left = {} if since_s is None else self._left(since_s)
        if whole and since_s is not None:
            left |= self._missing(queue, left)
        told: list[NamedEvent] = []
        evicted: dict[NamedEvent, str] = {}
        for job, ad in [*queue.items(), *left.items()]:
            told += self._take(job, ad, now_s, evicted)
        for job in left:
            self._known.pop(job, None)
            self._left_s[job] = now_s
        self._forget(now_s)
        self.asked_s = now_s
        if whole:
            self._snapshot_s = now_s
        return sorted(told, key=lambda event: event[0]), evicted

    def _take(
        self, job: str, ad: Ad, now_s: float, evicted: dict[NamedEvent, str]
    ) -> list[NamedEvent]:
        """What an ad tells of a job, and remember it."""
        if job in self._left_s:
            return []
        spec = self._specs.of(ad)
        known = self._known.get(job) or self._of_before(ad)
        told = dated(steps(job, known.seen if known else None, ad, spec), now_s)
        machine = known.seen.machine if known else ""
        for event in told:
            if event[1] == events.STARTED:
                machine = event[3][0]
            elif event[1] == events.EVICTED:
                evicted[event] = machine
        now = seen(ad)
        before = known.spec if known and now.status not in (COMPLETED, REMOVED) else None
        changes = edited(before, spec, now.is_running) if before is not None else {}
        if changes:
            told.append((now_s, events.CHANGED, job, changes))
        self._known[job] = _Known(now, spec, number(ad, "QDate"))
        return told

    def _of_before(self, ad: Ad) -> _Known | None:
        """A job that was told before a restart, and was then as it was submitted."""
        submit_s = number(ad, "QDate")
        told = submit_s < self._begun_s - CLOCKS_DIFFER_S
        return _Known(NEW, None, submit_s) if told else None

    def _left(self, since_s: int) -> dict[str, Ad]:
        """The jobs that left the queue since then."""
        found = self._point.schedd.history(
            f"EnteredCurrentStatus >= {since_s}",
            self._of_history,
            -1,
            left_before(since_s + CLOCKS_DIFFER_S),
        )
        own = self._by_name(ad for ad in found if is_of(ad, self._point.name))
        return {job: ad for job, ad in own.items() if job not in self._left_s}

    def _missing(self, queue: dict[str, Ad], left: dict[str, Ad]) -> dict[str, Ad]:
        """Jobs that are in the queue no more and were not among the last that left it."""
        missing = [job for job in self._known if job not in queue and job not in left]
        if not missing:
            return {}
        since = left_before(max(self._snapshot_s, self._begun_s))  # they were in the queue then
        ads = self._point.schedd.history(in_clusters(missing), self._of_history, -1, since)
        found = left_by_name(ads, self._point.name)
        gone = {"JobStatus": 3, "EnteredCurrentStatus": self.asked_s}
        return {job: found.get(job, gone) for job in missing}

    def _forget(self, now_s: float) -> None:
        """Forget who left so long ago that the history is not asked for it again."""
        keep_s = now_s - 2 * self._settings.queue_s - 2 * CLOCKS_DIFFER_S
        self._left_s = {job: at_s for job, at_s in self._left_s.items() if at_s >= keep_s}

    def _since_s(self) -> int | None:
        """From when on it is asked what changed: too early, for what comes twice is known."""
        return None if self.asked_s == -inf else int(self.asked_s) - CLOCKS_DIFFER_S

    def _query(self, constraint: str) -> Iterable[Any]:
        return self._specs.query(self._point.schedd, constraint, _ATTRIBUTES)

    def _by_name(self, ads: Iterable[Any]) -> dict[str, Ad]:
        return {job_name(ad, self._point.name): ad for ad in ads}
