"""Thread that runs one lever: exceptions are counted, and blocking calls delay nothing else."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import structlog

from outrider.acting.leases import LeaseBounds, Leases
from outrider.api.lever import Lever
from outrider.model.decisions import DecisionRow

RETRY_AFTER_S: Final = 5.0
"""Pause after a call that failed, seconds."""
_POLL_INTERVAL_S: Final = 0.5
"""Interval of looking for renewals while there is no other request, seconds."""
OUTCOMES: Final = (
    "applied", "renewed", "withdrawn", "refused", "failed", "too_many", "too_long",
)  # fmt: skip
"""Keys of `LeverThread.counts`."""
_REFUSALS_KEPT: Final = 1_000

log = structlog.get_logger()


class LeverThread:
    """Thread that calls one lever, one call at a time, to apply what is wanted.

    `want`, `give_back` and `forget` may be called from any thread and never wait; only `close`
    waits. The thread is a daemon: a lever that never returns does not keep the process from ending,
    and its changes expire.

    Args:
        adapter: label of the adapter whose lever it is.
        lever: of a plugin.
        bounds: how much it may change.
        is_fresh: returns whether the site's input is fresh enough to act on; from any thread.
        clock: monotonic seconds.

    Attributes:
        counts: jobs for which a change was ``applied``, ``renewed``, ``withdrawn``, ``refused`` by
            the batch system; calls that ``failed``; and the counts of `Leases.counts`.
        failure: the last exception or refusal; empty after a call that succeeds.
        refusals: the latest reason of the batch system's refusal, by job.
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
        """Numbers of changes by outcome, until now."""
        with self._lock:
            return self._counts + self._leases.counts

    @property
    def standing(self) -> dict[str, DecisionRow]:
        """Active decisions at the batch system, by job."""
        with self._lock:
            return self._leases.standing(self._clock())

    @property
    def kept(self) -> dict[str, tuple[DecisionRow, float]]:
        """Active deferrals by job, each with the seconds for which it may last yet."""
        with self._lock:
            return self._leases.kept(self._clock())

    def want(self, decisions: Iterable[DecisionRow]) -> None:
        """Want these decisions from now on, each instead of any earlier one for its job."""
        now_s = self._clock()
        with self._lock:
            for decision in decisions:
                self._leases.want(decision, now_s)
        self._asked.set()

    def give_back(self, jobs: Iterable[str]) -> None:
        """Stop wanting any decision for these jobs."""
        with self._lock:
            for job in jobs:
                self._leases.give_back(job)
        self._asked.set()

    def forget(self, jobs: Iterable[str]) -> None:
        """Drop jobs that run or are gone: their decisions expire, or are reverted if they last."""
        with self._lock:
            for job in jobs:
                self._leases.forget(job, reverts=self.lever.lasts)
                self.refusals.pop(job, None)
        if self.lever.lasts:
            self._asked.set()

    def close(self, within_s: float) -> bool:
        """Stop changes, revert all active decisions and end; return whether that was in time."""
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
            if self._ended.is_set():  # the clear above may have removed the request of `close`
                break
            try:
                pause_s = self._round()
            except Exception as error:  # internal error, reported: active decisions expire
                self.failure = f"{type(error).__name__}: {error}"
                log.exception("lever_failed", lever=self._name)
                pause_s = None
            if pause_s is None:
                self._ended.wait(RETRY_AFTER_S)
            else:
                self._asked.wait(pause_s)
        self._end()

    def _end(self) -> None:
        """Revert all active decisions, and close the lever."""
        with self._lock:
            lasting = self._leases.end()
        if lasting:
            self._withdraw(lasting)
        try:
            self.lever.close()
        except Exception as error:  # noqa: BLE001 - a plugin's fault
            log.warning("lever_failed", lever=self._name, error=f"at its end: {error}")

    def _round(self) -> float | None:
        """Do what is due; return seconds until the next look, None if a call failed."""
        is_fresh = self._is_fresh()
        with self._lock:
            due = self._leases.due(self._clock(), is_fresh)
        if due.withdraw and not self._withdraw(due.withdraw):
            return None
        if due.apply and not self._apply(due.apply):
            return None
        return 0.0 if due.apply or due.withdraw else _POLL_INTERVAL_S

    def _withdraw(self, jobs: Sequence[str]) -> bool:
        """Revert the decisions for these jobs; return whether the lever did not raise."""
        refused = self._call(lambda: self.lever.withdraw(jobs))
        if refused is None:
            return False
        with self._lock:
            self._leases.withdrawn(jobs)  # refused ones, too: they expire
            self._counts["withdrawn"] += len(set(jobs) - refused.keys())
        return True

    def _apply(self, decisions: Sequence[DecisionRow]) -> bool:
        """Apply or renew these decisions; return whether the lever did not raise."""
        began_s = self._clock()
        with self._lock:
            active = self._leases.standing(began_s)
        refused = self._call(lambda: self.lever.apply(decisions))
        with self._lock:
            if refused is None:
                self._leases.failed(decisions, self._clock(), RETRY_AFTER_S)
                return False
            done = [decision for decision in decisions if decision.job not in refused]
            self._leases.refused(refused)
            self._leases.applied(done, began_s)
            renewed = sum(1 for decision in done if active.get(decision.job) is decision)
            self._counts["renewed"] += renewed
            self._counts["applied"] += len(done) - renewed
        return True

    def _call(self, call: Callable[[], Mapping[str, str]]) -> dict[str, str] | None:
        """Call the lever and record its refusals; return them by job, None if the call failed."""
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
