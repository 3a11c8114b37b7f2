"""Levers for tests: one that records its calls, and several that fail."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from outrider.acting.lever_runner import LeverRunner
from outrider.api import DecisionRow, Lever


def row(
    job: str, action: str = "start", gate: str | None = "act", time_s: float = 0.0
) -> DecisionRow:
    """Return a decision as a row of the journal."""
    return DecisionRow(time_s, job, action, "m1", 1, "best", "fifo", "active", gate=gate)


class Noting(Lever):
    """Lever that records its calls, in order."""

    name = "noting"
    description = "for tests: changes nothing"
    actions: ClassVar[tuple[str, ...]] = ("start",)
    lease_s = 600.0

    def __init__(self, adapter: object = None) -> None:
        super().__init__(adapter)
        self.asked: list[tuple[str, str]] = []
        self.changed = threading.Condition()
        self.closed = False

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        self.note("apply", (decision.job for decision in decisions))
        return {}

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        self.note("withdraw", jobs)
        return {}

    def close(self) -> None:
        self.closed = True

    def note(self, what: str, jobs: Iterable[str]) -> None:
        with self.changed:
            self.asked += [(what, job) for job in jobs]
            self.changed.notify_all()

    def wait_for(self, n: int, within_s: float = 10.0) -> list[tuple[str, str]]:
        """Wait for so many calls, and return them."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= n, within_s), self.asked
            return list(self.asked)


class Silent(Noting):
    """Lever whose batch system hangs until it is released."""

    def __init__(self, adapter: object = None) -> None:
        super().__init__(adapter)
        self.answers = False

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        super().apply(decisions)
        if not self.answers:
            raise KeyError("no such queue")
        return {}


class Refusing(Noting):
    """Lever whose batch system refuses job 2."""

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        super().apply(decisions)
        return {decision.job: "not yours" for decision in decisions if decision.job == "2"}


class Blocking(Noting):
    """Lever that does not return before it is released."""

    name = "blocking"
    actions = ("preempt",)

    def __init__(self, adapter: object = None) -> None:
        super().__init__(adapter)
        self.let_go = threading.Event()

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        super().apply(decisions)
        self.let_go.wait(20.0)
        return {}


def at_a_pool(*levers: Lever, **options: Any) -> LeverRunner:
    """Return a runner for the levers of one adapter, ``pool``, that all jobs belong to."""
    return LeverRunner({"pool": levers}, lambda job: "pool", **options)


def counts_of(runner: LeverRunner, lever: str) -> Counter[str]:
    """Return the number of a lever's changes by outcome."""
    return next(thread.counts for thread in runner.threads if thread.lever.name == lever)


def wait_until(holds: Callable[[], bool], within_s: float = 10.0) -> bool:
    """Return whether a condition holds within a time."""
    pause = threading.Event()
    for _ in range(int(within_s / 0.01)):
        if holds():
            return True
        pause.wait(0.01)
    return holds()
