"""An adapter with a lever, and a morning of three jobs on two machines."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

from outrider.api import Adapter, Batch, DecisionRow, JobSpec, Lever, MachineSpec, events


class Book(Lever):
    """Writes down what it is asked, for all that were ever made."""

    name = "book"
    description = "for tests: writes down what it is asked"
    actions = ("start",)
    lease_s = 60.0
    made: ClassVar[list["Book"]] = []
    asked: ClassVar[list[tuple[str, str]]] = []
    threads: ClassVar[set[int]] = set()

    def __init__(self, adapter: Any) -> None:
        super().__init__(adapter)
        self.made.append(self)

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        self.asked.extend(("apply", decision.job) for decision in decisions)
        self.threads.add(threading.get_ident())
        return {}

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        self.asked.extend(("withdraw", job) for job in jobs)
        return {}

    def withdraw_all(self) -> int:
        self.asked.append(("withdraw_all", ""))
        return 2

    @staticmethod
    def pause() -> None:
        """A moment, in a test's own method that hangs."""
        time.sleep(0.02)

    @classmethod
    def begin(cls) -> None:
        """Forget all jobs and calls."""
        for notes in (cls.made, cls.asked, cls.threads):
            notes.clear()


class Desk(Adapter):
    """Reports the events of a morning, and then sends empty batches."""

    name = "desk"
    description = "for tests: three jobs on two machines"
    api_version = 1
    sees = ("joined", "submitted")
    levers = (Book,)
    lateness_s = 0.0
    problem: ClassVar[str] = ""
    """The problem in every batch from now on, set by a test."""

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        now_s = time.time()
        morning: list[events.NamedEvent] = [] if cursor else [
            *((now_s, events.JOINED, f"m{n}", MachineSpec("lab")) for n in range(2)),
            *((now_s, events.SUBMITTED, job, JobSpec()) for job in ("1", "2", "3")),
        ]  # fmt: skip
        while True:
            yield Batch(events=morning, cursor=1, seen_until_s=time.time(), problem=self.problem)
            morning = []
            await asyncio.sleep(0.05)
