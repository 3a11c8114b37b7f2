"""The queue of one policy: jobs that are due now, that wait for a machine, that are deferred.

A job is queued once, with a stamp. Entries in the queues below name job and stamp, so that
a job that started, left or came back makes its old entries void without anybody searching them.
"""

import heapq
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from outrider.engine.state.packing import pack, unpack
from outrider.model.decisions import NOWHERE

NEVER: Final = float("inf")


class PendingDecision(msgspec.Struct, eq=False, gc=False):
    """What was last decided for a waiting job, and how long it was deferred.

    Attributes:
        stamp: tells this place in the queue from every other.
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
        """For how long it was deferred until now."""
        going_on_s = 0.0 if self.deferred_since_s is None else now - self.deferred_since_s
        return self.deferred_before_s + going_on_s

    def end_deferral(self, now: float) -> None:
        """The policy does not defer it any longer."""
        if self.deferred_since_s is not None:
            self.deferred_before_s += now - self.deferred_since_s
            self.deferred_since_s = None


_SAVED: Final = sorted(PendingDecision.__struct_fields__)
"""What a snapshot holds of each, in this order."""


class PendingQueue:
    """Pending jobs of one runner.

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
        # starvation guard cuts short need sorting. A job that leaves takes its entry along: a pass
        # that met all entries of an hour at once would be ten times as long as any other. Ordered,
        # because a plain dict walks over what was deleted before its first entry.
        self._deferred: OrderedDict[int, tuple[float, int]] = OrderedDict()
        self._cut_short: list[tuple[float, int, int]] = []

    def enter(self, number: int) -> None:
        """A job joins the queue and is due."""
        self._stamps += 1
        self.waiting[number] = PendingDecision(self._stamps)
        self.fresh.append((number, self._stamps))

    def block(self, number: int, pending: PendingDecision) -> None:
        """It waits until a machine frees."""
        self.blocked.append((number, pending.stamp))

    def rank(self, order: float, number: int, pending: PendingDecision) -> None:
        """It waits until a machine frees, in the policy's own order."""
        heapq.heappush(self.ranked, (order, pending.stamp, number))

    def pop_ranked(self) -> tuple[int, PendingDecision] | None:
        """The first in the policy's order leaves the queue; None if no job waits there."""
        while self.ranked:
            _, stamp, number = heapq.heappop(self.ranked)
            pending = self.waiting.get(number)
            if pending is not None and pending.stamp == stamp:
                return number, pending
        return None

    def take_fresh(self) -> Iterator[tuple[int, PendingDecision]]:
        """Those due now, in order of arrival; jobs that started or left since are passed over."""
        fresh, self.fresh = self.fresh, []
        return self._still_pending(fresh)

    def take_blocked(self) -> Iterator[tuple[int, PendingDecision]]:
        """Those for which no machine was free, as they were blocked."""
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
        """It is due again at `until_s`, one decision epoch from now."""
        self._deferred[pending.stamp] = until_s, number

    def defer_shorter(self, number: int, pending: PendingDecision, until_s: float) -> None:
        """It is due again at `until_s`, before the epoch ends."""
        heapq.heappush(self._cut_short, (until_s, number, pending.stamp))

    def undefer(self, pending: PendingDecision) -> None:
        """It left the queue: it is due no more."""
        self._deferred.pop(pending.stamp, None)

    def release(self, now: float) -> None:
        """Those deferred until now are due."""
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
        """Whether an entry is of a job's present place in the queue."""
        pending = self.waiting.get(number)
        return pending is not None and pending.stamp == stamp

    def next_due_s(self) -> float:
        """When the next deferred job is due; `NEVER` if none is deferred."""
        deferred, cut_short = self._deferred, self._cut_short
        while cut_short and not self._is_current(*cut_short[0][1:]):
            heapq.heappop(cut_short)
        due_s = next(iter(deferred.values()))[0] if deferred else NEVER
        return min(due_s, cut_short[0][0]) if cut_short else due_s

    def decide_anew(self, sent: str) -> None:
        """All pending jobs are due, in order of arrival.

        But for those whose last action is `sent`: they were sent off and are not heard of yet.
        """
        self._empty_queues()
        by_stamp = sorted(self.waiting.items(), key=lambda entry: entry[1].stamp)
        self.fresh += [(number, s.stamp) for number, s in by_stamp if s.action != sent]

    def clear(self) -> None:
        """Empty it."""
        self.waiting.clear()
        self._empty_queues()

    def _empty_queues(self) -> None:
        for queue in (self.fresh, self.blocked, self.ranked, self._deferred, self._cut_short):
            queue.clear()

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
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
        """Go on from what `save` gave.

        Args:
            saved: what `save` gave.
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
