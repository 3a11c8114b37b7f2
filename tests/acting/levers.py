"""Levers for tests: one that notes what it is asked, and ways to fail at it."""

import threading
from collections.abc import Callable
from typing import ClassVar

from outrider.api import DecisionRow, Lever


def row(job: str, action: str = "start", gate: str | None = "act") -> DecisionRow:
    """A decision as the ledger has it."""
    return DecisionRow(0.0, job, action, "m1", 1, "best", "fifo", "active", gate=gate)


class Noting(Lever):
    """Notes what it is asked, in order."""

    name = "noting"
    description = "for tests: changes nothing"
    actions: ClassVar[tuple[str, ...]] = ("start",)
    lease_s = 600.0

    def __init__(self, adapter: object = None) -> None:
        super().__init__(adapter)
        self.asked: list[tuple[str, str]] = []
        self.changed = threading.Condition()

    def apply(self, decision: DecisionRow) -> None:
        self.note("apply", decision.job)

    def withdraw(self, job: str) -> None:
        self.note("withdraw", job)

    def note(self, what: str, job: str) -> None:
        with self.changed:
            self.asked.append((what, job))
            self.changed.notify_all()

    def wait_for(self, n: int, within_s: float = 10.0) -> list[tuple[str, str]]:
        """What it was asked, once that is so many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= n, within_s), self.asked
            return list(self.asked)


class Raising(Noting):
    """Refuses job 2, after it was asked."""

    def apply(self, decision: DecisionRow) -> None:
        super().apply(decision)
        if decision.job == "2":
            raise KeyError("no such job")


class Blocking(Noting):
    """Does not return before it is let go."""

    name = "blocking"
    actions = ("preempt",)

    def __init__(self, adapter: object = None) -> None:
        super().__init__(adapter)
        self.let_go = threading.Event()

    def apply(self, decision: DecisionRow) -> None:
        super().apply(decision)
        self.let_go.wait(20.0)


def wait_until(holds: Callable[[], bool], within_s: float = 10.0) -> bool:
    """Whether something holds within a time."""
    pause = threading.Event()
    for _ in range(int(within_s / 0.01)):
        if holds():
            return True
        pause.wait(0.01)
    return holds()
