"""One lever and the thread that works it: what raises is counted, what blocks delays nothing."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import structlog

from outrider.acting.leases import LeaseBounds, Leases
from outrider.api.lever import Lever
from outrider.model.decisions import DecisionRow

AGAIN_IN_S: Final = 5.0
"""After a call that failed."""
_LOOK_EVERY_S: Final = 0.5
"""For what is to be renewed, while nothing is asked."""
OUTCOMES: Final = (
    "applied", "renewed", "withdrawn", "refused", "failed", "too_many", "too_long",
)  # fmt: skip
"""Keys of `LeverThread.counts`."""
_REFUSALS_KEPT: Final = 1_000

log = structlog.get_logger()


class LeverThread:
    """Works one lever, a call at a time, so that what is wanted stands.

    `want`, `give_back` and `forget` may be called from any thread and never wait; only `close`
    waits. The thread is a daemon: a lever that never returns does not keep the process from ending,
    and what it changed lapses by itself.

    Args:
        adapter: label of the adapter whose lever it is.
        lever: of a plugin.
        bounds: how much it may change.
        is_fresh: whether what is known of the site is young enough to act on; from any thread.
        clock: seconds that only ever go on.

    Attributes:
        counts: jobs for which a change was ``applied``, ``renewed``, ``withdrawn``, ``refused`` by
            the batch system; calls that ``failed``; and what `Leases.counts` counts.
        failure: what it last raised or refused, or empty; empty again after a call that succeeds.
        refusals: why the batch system refused, by job: the latest.
    """

    def __init__(
        self,
        adapter: str,
        lever: Lever,
        bounds: LeaseBounds,
        is_fresh: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self.adapter = adapter
        self.lever = lever
        self.failure = ""
        self.refusals: dict[str, str] = {}
        self._name = f"{adapter}: {lever.name}"
        self._counts: Counter[str] = Counter()
        self._clock = clock
        self._is_fresh = is_fresh
        self._leases = Leases(lever.lease_s, bounds)
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._ended = threading.Event()
        name = f"lever-{adapter}-{lever.name}"
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._begin()

    def _begin(self) -> None:
        self._thread.start()

    @property
    def counts(self) -> Counter[str]:
        """What became of what was wanted, until now."""
        with self._lock:
            return self._counts + self._leases.counts

    @property
    def standing(self) -> dict[str, DecisionRow]:
        """The decisions that stand at the batch system, by job."""
        with self._lock:
            return self._leases.standing(self._clock())

    def want(self, decisions: Iterable[DecisionRow]) -> None:
        """From now these decisions are to stand, each in place of what stood for its job."""
        now_s = self._clock()
        with self._lock:
            for decision in decisions:
                self._leases.want(decision, now_s)
        self._asked.set()

    def give_back(self, jobs: Iterable[str]) -> None:
        """Nothing is to stand for these jobs any more."""
        with self._lock:
            for job in jobs:
                self._leases.give_back(job)
        self._asked.set()

    def forget(self, jobs: Iterable[str]) -> None:
        """These jobs run or are gone: what stands for them may lapse, and is taken back if not."""
        with self._lock:
            for job in jobs:
                self._leases.forget(job, takes_back=self.lever.lasts)
                self.refusals.pop(job, None)
        if self.lever.lasts:
            self._asked.set()

    def close(self, within_s: float) -> bool:
        """Make no more changes, take back all that stands, and end; whether that was in time."""
        self._ended.set()
        self._asked.set()
        try:
            self.lever.hurry()
        except Exception as error:  # noqa: BLE001 - a plugin's fault
            log.warning("lever_failed", lever=self._name, error=f"flush failed: {error}")
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        while not self._ended.is_set():
            self._asked.clear()
            if self._ended.is_set():  # that it was asked may just have been cleared
                break
            try:
                pause_s = self._round()
            except Exception as error:  # a fault of our own: what stands lapses, and is told
                self.failure = f"{type(error).__name__}: {error}"
                log.exception("lever_failed", lever=self._name)
                pause_s = None
            if pause_s is None:
                self._ended.wait(AGAIN_IN_S)
            else:
                self._asked.wait(pause_s)
        self._end()

    def _end(self) -> None:
        """Take back all that stands, and close the lever."""
        with self._lock:
            lasting = self._leases.end()
        if lasting:
            self._withdraw(lasting)
        try:
            self.lever.close()
        except Exception as error:  # noqa: BLE001 - a plugin's fault
            log.warning("lever_failed", lever=self._name, error=f"at its end: {error}")

    def _round(self) -> float | None:
        """Do what is due; seconds to the next look unless it is asked, None: a call failed."""
        is_fresh = self._is_fresh()
        with self._lock:
            due = self._leases.due(self._clock(), is_fresh)
        if due.withdraw and not self._withdraw(due.withdraw):
            return None
        if due.apply and not self._apply(due.apply):
            return None
        return 0.0 if due.apply or due.withdraw else _LOOK_EVERY_S

    def _withdraw(self, jobs: Sequence[str]) -> bool:
        """Take back what stands for these jobs; whether the lever did not raise."""
        refused = self._call(lambda: self.lever.withdraw(jobs))
        if refused is None:
            return False
        with self._lock:
            self._leases.withdrawn(jobs)  # refused ones, too: they lapse
            self._counts["withdrawn"] += len(set(jobs) - refused.keys())
        return True

    def _apply(self, decisions: Sequence[DecisionRow]) -> bool:
        """Carry these out, or renew them; whether the lever did not raise."""
        began_s = self._clock()
        with self._lock:
            stood = self._leases.standing(began_s)
        refused = self._call(lambda: self.lever.apply(decisions))
        with self._lock:
            if refused is None:
                self._leases.failed(decisions, self._clock(), AGAIN_IN_S)
                return False
            done = [decision for decision in decisions if decision.job not in refused]
            self._leases.refused(refused)
            self._leases.applied(done, began_s)
            renewed = sum(1 for decision in done if stood.get(decision.job) is decision)
            self._counts["renewed"] += renewed
            self._counts["applied"] += len(done) - renewed
        return True

    def _call(self, call: Callable[[], Mapping[str, str]]) -> dict[str, str] | None:
        """What the lever says was refused, noted; None if it failed."""
        try:
            refused = dict(call())
        except Exception as error:  # noqa: BLE001 - a plugin's fault must not end the thread
            self.failure = f"{type(error).__name__}: {error}"
            with self._lock:
                self._counts["failed"] += 1
            log.warning("lever_failed", lever=self._name, error=self.failure)
            return None
        self.failure = ""
        if refused:
            job, why = next(iter(refused.items()))
            self.failure = f"{job}: {why}"
            with self._lock:
                self._counts["refused"] += len(refused)
                self.refusals |= refused
                while len(self.refusals) > _REFUSALS_KEPT:
                    del self.refusals[next(iter(self.refusals))]
            log.warning(
                "lever_changes_refused", lever=self._name, jobs=len(refused), first=self.failure
            )
        return refused
