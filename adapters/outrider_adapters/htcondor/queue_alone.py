"""The jobs of an access point whose event log nobody can read: by its queue and its history."""

from collections.abc import Iterable
from math import inf
from typing import Any, Final, NamedTuple

import msgspec

from outrider.api import JobSpec, NamedEvent, events
from outrider_adapters.htcondor.job_specs import JobSpecs, edited
from outrider_adapters.htcondor.job_steps import (
    COMPLETED,
    NEW,
    REMOVED,
    STEP_ATTRIBUTES,
    SeenJob,
    dated,
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
)
from outrider_adapters.htcondor.settings import WatchSettings

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
        """When it was asked last, who left of late, and the jobs that are not as submitted."""
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
