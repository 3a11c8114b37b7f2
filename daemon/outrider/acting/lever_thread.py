"""One lever and the thread that works it: what raises is counted, what blocks delays nothing."""

import contextlib
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

import structlog

from outrider.api.lever import Lever
from outrider.model.decisions import DecisionRow

MOST_WAITING: Final = 1_000
"""Changes that may wait for a lever. One that cannot keep up does less, it does not pile up."""
LATEST_S: Final = 30.0
"""A change that waited longer is not made: the site has moved on since it was decided."""

log = structlog.get_logger()


class _Wish(NamedTuple):
    """A change to make (a decision), or to take back (None), for a job; and when it was asked."""

    job: str
    decision: DecisionRow | None
    asked_s: float


class LeverThread:
    """Works one lever, a call at a time, in the order in which it is asked.

    `apply`, `withdraw` and `close` may be called from any thread; only `close` waits. The thread
    is a daemon: a lever that never returns does not keep the process from ending, and what it
    changed lapses by itself.

    Args:
        lever: of a plugin.
        clock: seconds that only ever go on.

    Attributes:
        counts: ``applied``, ``withdrawn``, ``failed`` (it raised), ``late`` (waited too long) and
            ``dropped`` (too many waited).
        failure: what it last raised, or empty.
    """

    def __init__(self, lever: Lever, clock: Callable[[], float] = time.monotonic) -> None:
        self.lever = lever
        self.counts: Counter[str] = Counter()
        self.failure = ""
        self._clock = clock
        self._waiting: queue.Queue[_Wish | None] = queue.Queue(MOST_WAITING)
        self._lock = threading.Lock()
        self._lapses_s: dict[str, float] = {}
        """By job, until when a change that was asked for may last; the first to lapse first."""
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name=f"lever-{lever.name}", daemon=True)
        self._thread.start()

    def apply(self, decision: DecisionRow) -> None:
        """Have a change made, soon; never waits."""
        self._note(decision.job)
        self._ask(_Wish(decision.job, decision, self._clock()))

    def withdraw(self, job: str) -> None:
        """Have what was changed for a job taken back, soon; never waits."""
        with self._lock:
            is_asked = job in self._lapses_s
        if is_asked:
            self._ask(_Wish(job, None, self._clock()))

    def close(self, within_s: float) -> bool:
        """Make no more changes, take back all that last, and end; whether that was done in time."""
        self._closing = True
        with contextlib.suppress(queue.Full):  # it has work then, and sees that we close
            self._waiting.put_nowait(None)
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _note(self, job: str) -> None:
        """From now a change of this job may last; also one that is dropped or fails half-way."""
        now_s = self._clock()
        with self._lock:
            while self._lapses_s and next(iter(self._lapses_s.values())) <= now_s:
                del self._lapses_s[next(iter(self._lapses_s))]
            self._lapses_s.pop(job, None)
            self._lapses_s[job] = now_s + LATEST_S + self.lever.lease_s

    def _ask(self, wish: _Wish) -> None:
        try:
            self._waiting.put_nowait(wish)
        except queue.Full:
            self.counts["dropped"] += 1

    def _serve(self) -> None:
        while not self._closing:
            wish = self._waiting.get()
            if wish is None or self._closing:
                break
            if wish.decision is None:
                self._withdraw(wish.job)
            elif self._clock() - wish.asked_s > LATEST_S:
                self.counts["late"] += 1
            else:
                self._apply(wish.decision)
        with self._lock:
            lasting = list(self._lapses_s)
        for job in lasting:
            self._withdraw(job)

    def _apply(self, decision: DecisionRow) -> None:
        self._note(decision.job)
        self._call("applied", decision.job, lambda: self.lever.apply(decision))

    def _withdraw(self, job: str) -> None:
        if self._call("withdrawn", job, lambda: self.lever.withdraw(job)):
            with self._lock:
                self._lapses_s.pop(job, None)

    def _call(self, done: str, job: str, call: Callable[[], None]) -> bool:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - a plugin's fault must not end the thread
            self.failure = f"{type(error).__name__}: {error}"
            self.counts["failed"] += 1
            log.warning("fail_lever", lever=self.lever.name, job=job, reason=self.failure)
            return False
        self.counts[done] += 1
        return True
