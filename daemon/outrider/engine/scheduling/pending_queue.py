"""Queue of one policy: jobs that are due now, that wait for a machine, that are deferred.

A job is queued once, with a stamp. Entries in the queues below name job and stamp. When a job
starts, leaves or comes back, its old entries are void and need not be searched.
"""

import heapq
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from math import nan
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from outrider.engine.state.packing import pack, unpack
from outrider.model.decisions import NOWHERE
from outrider.model.jobs import SUSPENDED_STATE, Job

NEVER: Final = float("inf")


class PendingDecision(msgspec.Struct, eq=False, gc=False):
    """Last decision for a waiting job, and how long the job was deferred.

    Attributes:
        stamp: identifies this place in the queue.
        action, reason: of the pending decision; empty before the first.
        cluster: where it would start, or `NOWHERE`.
        decided_s: when it was last decided.
        deferred_since_s: since when the policy defers it, or None.
        deferred_before_s: how long it was deferred before that.
    """

    stamp: int
    action: str = ""
    reason: str = ""
    cluster: int = NOWHERE
    decided_s: float | None = None
    deferred_since_s: float | None = None
    deferred_before_s: float = 0.0

    def deferred_s(self, now: float) -> float:
        """Return for how many seconds the job was deferred until now."""
        going_on_s = 0.0 if self.deferred_since_s is None else now - self.deferred_since_s
        return self.deferred_before_s + going_on_s

    def end_deferral(self, now: float) -> None:
        """Record that the policy no longer defers the job."""
        if self.deferred_since_s is not None:
            self.deferred_before_s += now - self.deferred_since_s
            self.deferred_since_s = None


_SAVED: Final = sorted(PendingDecision.__struct_fields__)
"""Fields of each decision in a snapshot, in this order."""


class PendingQueue:
    """Pending jobs of one policy runner.

    Attributes:
        waiting: the pending decision of each job, by number.
        fresh: (job, stamp) to be decided in the next pass, in order.
        blocked: (job, stamp) for which no machine was free, in order.
        ranked: (order, stamp, job) of those, a heap, where the policy has an order of its own.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, PendingDecision] = {}
        self.fresh: list[tuple[int, int]] = []
        self.blocked: deque[tuple[int, int]] = deque()
        self.ranked: list[tuple[float, int, int]] = []
        self._stamps = 0
        # Deferrals of one decision epoch end in the order in which they began; only those that the
        # starvation guard cuts short need sorting. A job that leaves removes its entry: a pass that
        # met all entries of an hour together would be ten times as long as any other. An
        # OrderedDict, because a plain dict walks over what was deleted before its first entry.
        self._deferred: OrderedDict[int, tuple[float, int]] = OrderedDict()
        self._cut_short: list[tuple[float, int, int]] = []

    def enter(self, number: int) -> None:
        """Add a job to the queue; it is due."""
        self._stamps += 1
        self.waiting[number] = PendingDecision(self._stamps)
        self.fresh.append((number, self._stamps))

    def block(self, number: int, pending: PendingDecision) -> None:
        """Let a job wait until a machine frees."""
        self.blocked.append((number, pending.stamp))

    def rank(self, order: float, number: int, pending: PendingDecision) -> None:
        """Let a job wait until a machine frees, in the policy's own order."""
        heapq.heappush(self.ranked, (order, pending.stamp, number))

    def pop_ranked(self) -> tuple[int, PendingDecision] | None:
        """Remove and return the first job in the policy's order; None if no job waits there."""
        while self.ranked:
            _, stamp, number = heapq.heappop(self.ranked)
            pending = self.waiting.get(number)
            if pending is not None and pending.stamp == stamp:
                return number, pending
        return None

    def take_fresh(self) -> Iterator[tuple[int, PendingDecision]]:
        """Take the jobs due now, in order of arrival; skip jobs that started or left since."""
        fresh, self.fresh = self.fresh, []
        return self._still_pending(fresh)

    def take_blocked(self) -> Iterator[tuple[int, PendingDecision]]:
        """Take the jobs for which no machine was free, in the order they were blocked."""
        blocked, self.blocked = self.blocked, deque()
        return self._still_pending(blocked)

    def _still_pending(
        self, entries: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[int, PendingDecision]]:
        for number, stamp in entries:
            pending = self.waiting.get(number)
            if pending is not None and pending.stamp == stamp:
                yield number, pending

    def defer(self, number: int, pending: PendingDecision, until_s: float) -> None:
        """Make a job due again at `until_s`, one decision epoch from now."""
        self._deferred[pending.stamp] = until_s, number

    def defer_shorter(self, number: int, pending: PendingDecision, until_s: float) -> None:
        """Make a job due again at `until_s`, before the epoch ends."""
        heapq.heappush(self._cut_short, (until_s, number, pending.stamp))

    def undefer(self, pending: PendingDecision) -> None:
        """Cancel the deferral of a job that left the queue."""
        self._deferred.pop(pending.stamp, None)

    def release(self, now: float) -> None:
        """Make jobs due whose deferral ends by now."""
        deferred, cut_short = self._deferred, self._cut_short
        while deferred:
            stamp, (due_s, number) = next(iter(deferred.items()))
            if due_s > now:
                break
            del deferred[stamp]
            self._make_due(number, stamp)
        while cut_short and cut_short[0][0] <= now:
            _, number, stamp = heapq.heappop(cut_short)
            self._make_due(number, stamp)

    def _make_due(self, number: int, stamp: int) -> None:
        if self._is_current(number, stamp):
            self.fresh.append((number, stamp))

    def _is_current(self, number: int, stamp: int) -> bool:
        """Return whether an entry is of a job's present place in the queue."""
        pending = self.waiting.get(number)
        return pending is not None and pending.stamp == stamp

    def next_due_s(self) -> float:
        """Return when the next deferred job is due; `NEVER` if none is deferred."""
        deferred, cut_short = self._deferred, self._cut_short
        while cut_short and not self._is_current(*cut_short[0][1:]):
            heapq.heappop(cut_short)
        due_s = next(iter(deferred.values()))[0] if deferred else NEVER
        return min(due_s, cut_short[0][0]) if cut_short else due_s

    def decide_again(self, sent: str) -> None:
        """Make all pending jobs due, in order of arrival.

        Except those whose last action is `sent`: they were sent off and not yet reported.
        """
        self._empty_queues()
        by_stamp = sorted(self.waiting.items(), key=lambda entry: entry[1].stamp)
        self.fresh += [(number, s.stamp) for number, s in by_stamp if s.action != sent]

    def clear(self) -> None:
        """Remove all jobs from the queue."""
        self.waiting.clear()
        self._empty_queues()

    def _empty_queues(self) -> None:
        for queue in (self.fresh, self.blocked, self.ranked, self._deferred, self._cut_short):
            queue.clear()

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "waiting": pack(
                [n, *(getattr(pending, name) for name in _SAVED)]
                for n, pending in self.waiting.items()
            ),
            "stamps": self._stamps,
            "fresh": [list(entry) for entry in self.fresh],
            "blocked": pack(self.blocked),
            "ranked": pack(self.ranked),
            "deferred": pack(
                (due_s, number, stamp) for stamp, (due_s, number) in self._deferred.items()
            ),
            "cut_short": [list(entry) for entry in self._cut_short],
        }

    def restore(
        self, saved: dict[str, Any], clusters: list[int], latest_due_s: float = NEVER
    ) -> None:
        """Resume from what `save` returned.

        Args:
            saved: what `save` returned.
            clusters: `clusters[i]` is today's number of saved cluster i.
            latest_due_s: no deferral ends later, as where the decision epoch became shorter.
        """
        self.clear()
        for number, *values in unpack(saved["waiting"]):
            pending = self.waiting[number] = PendingDecision(0)
            for name, value in zip(_SAVED, values, strict=True):
                setattr(pending, name, value)
            if pending.cluster != NOWHERE:
                pending.cluster = clusters[pending.cluster]
        self._stamps = saved["stamps"]
        self.fresh += [(number, stamp) for number, stamp in saved["fresh"]]
        self.blocked.extend((number, stamp) for number, stamp in unpack(saved["blocked"]))
        self.ranked += [(order, stamp, n) for order, stamp, n in unpack(saved["ranked"])]
        for due_s, number, stamp in unpack(saved["deferred"]):
            if self._is_current(number, stamp):  # older snapshots have those that left, too
                self._deferred[stamp] = min(due_s, latest_due_s), number
        self._cut_short += [(due_s, number, stamp) for due_s, number, stamp in saved["cut_short"]]


# -- queue columns ---------------------------------------------------------------------------------
# The queue as columns, updated as jobs enter it and leave: `outrider.api.Queue`.

_SUBMIT, _ESTIMATE, _ORDER, _WORK = range(4)
_CPUS, _VO, _INTERACTIVE, _HOME, _BOUND = range(5)
_FIRST_ROWS: Final = 64
MAX_VOS: Final = 10_000
"""Maximum number of VO names at which an empty queue keeps its past names."""


class QueueColumns:
    """Table of pending jobs in the order in which they entered the queue, one row each.

    Removing the first row only moves the beginning; removing another moves the rows behind it up: a
    few copies of memory, independent of the number of jobs.

    Attributes:
        jobs: by row.
        vo_names: by the numbers of column `vo`.
    """

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.vo_names: list[str] = []
        self._vos: dict[str, int] = {}
        self._stamps: list[int] = []  # ascending
        self._floats = np.empty((4, _FIRST_ROWS))
        self._ints = np.empty((5, _FIRST_ROWS), dtype=np.int64)
        self._begin = self._end = 0  # the rows are these columns of both

    def __len__(self) -> int:
        return len(self.jobs)

    def add(self, job: Job, stamp: int, now: float, order: float) -> None:
        """Append a job to the queue; `stamp` is later than all others."""
        if not self.jobs and len(self.vo_names) > MAX_VOS:  # of jobs that are gone
            self.vo_names, self._vos = [], {}
        if self._end == self._floats.shape[1]:
            self._make_room()
        submit_s = now if job.submit_s is None else job.submit_s
        self._write(self._end, job, submit_s, order)
        self._end += 1
        self.jobs.append(job)
        self._stamps.append(stamp)

    def _make_room(self) -> None:
        """Move the rows to the front of new arrays at least twice as long."""
        begin, end = self._begin, self._end
        longer = max(_FIRST_ROWS, 2 * (end - begin))
        floats, ints = np.empty((4, longer)), np.empty((5, longer), dtype=np.int64)
        floats[:, : end - begin] = self._floats[:, begin:end]
        ints[:, : end - begin] = self._ints[:, begin:end]
        self._floats, self._ints, self._begin, self._end = floats, ints, 0, end - begin

    def _write(self, column: int, job: Job, submit_s: float, order: float) -> None:
        spec = job.spec
        estimate_s = nan if spec.estimate_s is None else spec.estimate_s
        vo = self._vos.get(spec.vo)
        if vo is None:
            vo = self._vos[spec.vo] = len(self.vo_names)
            self.vo_names.append(spec.vo)
        work_s, home = 0.0, NOWHERE
        if job.state == SUSPENDED_STATE:
            work_s, home = job.work_s(job.suspended_at_s), job.machine
        is_bound = not job.is_plain and spec.is_bound
        self._floats[:, column] = submit_s, estimate_s, order, work_s
        self._ints[:, column] = spec.cpus, vo, spec.job_class == "interactive", home, is_bound

    def at(self, stamp: int) -> Job | None:
        """Return the job at the place in the queue with this stamp; None if no job has it."""
        row = self._row(stamp)
        return None if row is None else self.jobs[row]

    def change(self, job: Job, stamp: int, order: float) -> None:
        """Update a queued job that is declared again; it keeps its place."""
        row = self._row(stamp)
        if row is not None:
            self._write(self._begin + row, job, float(self.submit_s[row]), order)

    def _row(self, stamp: int) -> int | None:
        stamps = self._stamps
        row = bisect_left(stamps, stamp)
        return None if row == len(stamps) or stamps[row] != stamp else row

    def remove(self, stamp: int) -> Job | None:
        """Remove a job from the queue and return it; None if it was not in it."""
        row = self._row(stamp)
        if row is None:
            return None
        if row == 0:
            self._begin += 1
        else:
            column, self._end = self._begin + row, self._end - 1
            self._floats[:, column : self._end] = self._floats[:, column + 1 : self._end + 1]
            self._ints[:, column : self._end] = self._ints[:, column + 1 : self._end + 1]
        del self._stamps[row]
        return self.jobs.pop(row)

    def stamp(self, row: int) -> int:
        """Return the stamp of a row's place in the queue."""
        return self._stamps[row]

    @property
    def submit_s(self) -> NDArray[np.float64]:
        """Time of each job's submission; if not known, when it entered the queue."""
        return self._floats[_SUBMIT, self._begin : self._end]

    @property
    def estimate_s(self) -> NDArray[np.float64]:
        """Estimated run time on all the CPUs a job requests; nan where not known."""
        return self._floats[_ESTIMATE, self._begin : self._end]

    @property
    def order(self) -> NDArray[np.float64]:
        """Place that `Policy.order` returned for each job when it entered the queue."""
        return self._floats[_ORDER, self._begin : self._end]

    @property
    def cpus(self) -> NDArray[np.int64]:
        """Number of CPUs each job requests."""
        return self._ints[_CPUS, self._begin : self._end]

    @property
    def vo(self) -> NDArray[np.int64]:
        """Number of each job's VO in `vo_names`."""
        return self._ints[_VO, self._begin : self._end]

    @property
    def interactive(self) -> NDArray[np.bool_]:
        """True for jobs of class ``interactive``."""
        declared: NDArray[np.bool_] = self._ints[_INTERACTIVE, self._begin : self._end] == 1
        return declared

    @property
    def work_s(self) -> NDArray[np.float64]:
        """Work that a preempted job has done, seconds on all the CPUs it requests; others: 0."""
        return self._floats[_WORK, self._begin : self._end]

    @property
    def home(self) -> NDArray[np.int64]:
        """Machine on which a preempted job must be resumed; `NOWHERE`: it runs anywhere."""
        return self._ints[_HOME, self._begin : self._end]

    @property
    def bound(self) -> NDArray[np.bool_]:
        """True if a job requests more than CPUs: other resources, or a class of machines."""
        asked: NDArray[np.bool_] = self._ints[_BOUND, self._begin : self._end] == 1
        return asked

    def save(self) -> dict[str, Any]:
        """Return the places in the queue, as plain data; the jobs are the site's."""
        return {
            "jobs": [job.number for job in self.jobs],
            "stamps": list(self._stamps),
            "submit_s": self.submit_s.tolist(),
            "order": self.order.tolist(),
            "vos": self.vo_names,
        }

    def restore(self, saved: dict[str, Any], jobs: dict[int, Job]) -> None:
        """Resume from what `save` returned."""
        self.jobs.clear()
        self._stamps.clear()
        self._begin = self._end = 0
        self.vo_names = list(saved["vos"])
        self._vos = {vo: number for number, vo in enumerate(self.vo_names)}
        rows = zip(saved["jobs"], saved["stamps"], saved["submit_s"], saved["order"], strict=True)
        for number, stamp, submit_s, order in rows:
            self.add(jobs[number], stamp, submit_s, order)
