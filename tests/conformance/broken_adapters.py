"""Adapter on a list in memory, and variants that each break its contract in one way."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from math import inf
from types import MappingProxyType
from typing import Any, ClassVar, cast

from outrider.api import (
    Adapter,
    AdapterSettings,
    Batch,
    JobSpec,
    Lever,
    NamedEvent,
    WaitingReason,
    events,
)
from outrider.testing import AdapterHarness

BEAT_S = 0.02


class Source:
    """List that grows, and can be out of reach."""

    def __init__(self) -> None:
        self.events: list[NamedEvent] = []
        self.gone_since: float | None = None


class Sound(Adapter):
    """Adapter that yields the events of the list beyond the cursor: breaks nothing."""

    name: ClassVar[str] = "sound"
    description: ClassVar[str] = "a list in memory"
    api_version = 1
    sees: ClassVar[tuple[str, ...]] = ("submitted", "started", "completed")

    def __init__(self, source: Source) -> None:
        super().__init__("sound", AdapterSettings())
        self.source = source
        self.given = 0

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        self.given = cursor or 0
        while True:
            yield self.batch()
            await asyncio.sleep(BEAT_S)

    def batch(self) -> Batch:
        gone = self.source.gone_since
        new = [] if gone is not None else self.source.events[self.given :]
        self.given += len(new)
        age_s = 0.0 if gone is None else time.monotonic() - gone
        return Batch(events=new, cursor=self.given, seen_until_s=float(self.given), age_s=age_s)


class NamesAStateThatIsNone(Sound):
    state_words = MappingProxyType({"asleep": "Zzz"})


class HasNoWordForAState(Sound):
    state_words = MappingProxyType({"held": ""})


class BeginsAnewAtARestart(Sound):
    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        async for batch in super().batches(None):
            yield batch


class RemembersBetterThanItsCursor(Sound):
    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        async for batch in super().batches(max(self.given, cursor or 0)):
            yield batch


class SkipsOneAtARestart(Sound):
    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        async for batch in super().batches(cursor and min(cursor + 1, len(self.source.events))):
            yield batch


class TellsTheFirstEventTwice(Sound):
    def batch(self) -> Batch:
        first = self.given == 0
        batch = super().batch()
        if first:
            batch.events = batch.events[:1] + batch.events
        return batch


class HasACursorOfItsOwn(Sound):
    def batch(self) -> Batch:
        batch = super().batch()
        batch.cursor = object()
        return batch


class SeesMoreThanItSays(Sound):
    sees = ("submitted",)


class StartsJobsNowhere(Sound):
    def batch(self) -> Batch:
        batch = super().batch()
        batch.events = [
            (time_s, kind, job, None if kind == events.STARTED else extra)
            for time_s, kind, job, extra in batch.events
        ]
        return batch


class LivesOutsideTime(Sound):
    def batch(self) -> Batch:
        batch = super().batch()
        batch.events = [(float("nan"), *event[1:]) for event in batch.events]
        return batch


class IsSilentWhenNothingHappens(Sound):
    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        async for batch in super().batches(cursor):
            if batch.events:
                yield batch


class Ends(Sound):
    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        async for batch in super().batches(cursor):
            yield batch
            if batch.events:
                return


class FailsWithoutItsSource(Sound):
    def batch(self) -> Batch:
        if self.source.gone_since is not None:
            raise FileNotFoundError("the list")
        return super().batch()


class NeverAges(Sound):
    def batch(self) -> Batch:
        batch = super().batch()
        batch.age_s = 0.0
        return batch


class TakesBackWhatItSaw(Sound):
    def batch(self) -> Batch:
        batch = super().batch()
        batch.seen_until_s = -float(self.given)
        return batch


class LeavesATask(Sound):
    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        self.forgotten = asyncio.create_task(asyncio.sleep(30.0), name="forgotten")
        async for batch in super().batches(cursor):
            yield batch


class LeavesAThread(Sound):
    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        threading.Thread(target=time.sleep, args=(2.0,), name="forgotten-thread").start()
        async for batch in super().batches(cursor):
            yield batch


class ExplainsInWords(Sound):
    async def waiting_reason(self, job: str) -> WaitingReason | None:
        answer: Any = "it is busy"
        return cast("WaitingReason", answer)


class ExplainsEveryJob(Sound):
    async def waiting_reason(self, job: str) -> WaitingReason | None:
        return WaitingReason(code="", sentence="it is busy")


class NeverExplains(Sound):
    async def waiting_reason(self, job: str) -> WaitingReason | None:
        await asyncio.sleep(3600)
        return None


class HasAHiddenLever(Sound):
    def preempt(self, job: str) -> None:
        """Act without being declared as a lever."""


class Nudge(Lever):
    name = "nudge"
    description = "moves a job a little"
    actions: ClassVar[tuple[str, ...]] = ("start",)
    lease_s = 60.0


class Shove(Nudge):
    name = "shove"


class LastsForEver(Nudge):
    lease_s = inf


class Explodes(Nudge):
    actions = ("start", "explode")


class HasALever(Sound):
    levers = (Nudge,)


class HasTwoLeversForOneAction(Sound):
    levers = (Nudge, Shove)


class HasALeverThatDoesNotLapse(Sound):
    levers = (LastsForEver,)


class HasALeverForNothing(Sound):
    levers = (Explodes,)


class NamesItsLevers(Sound):
    levers = ("start",)  # type: ignore[assignment]


class SeesWhatDoesNotExist(Sound):
    sees = ("submitted", "started", "completed", "exploded")


class ListHarness(AdapterHarness):
    """Harness of a list in memory."""

    within_s = 1.0
    quiet_within_s = 0.15

    def __init__(self, kind: type[Sound]) -> None:
        self.kind = kind
        self.source = Source()

    def adapter(self) -> Adapter:
        return self.kind(self.source)

    def append(self) -> int:
        job, at = f"{len(self.source.events)}.0", 100.0 * len(self.source.events)
        self.source.events += [
            (at, events.SUBMITTED, job, JobSpec(user="ann")),
            (at + 30.0, events.STARTED, job, ("lab-1", 1)),
            (at + 60.0, events.COMPLETED, job, None),
        ]
        return 3

    def take_away(self) -> None:
        self.source.gone_since = time.monotonic()

    def bring_back(self) -> None:
        self.source.gone_since = None
