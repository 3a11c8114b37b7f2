"""What every adapter of an HTCondor pool does between its looks."""

import asyncio
from collections.abc import AsyncGenerator
from itertools import chain, repeat
from types import TracebackType
from typing import Any, ClassVar, Self

from outrider.api import Adapter, Batch
from outrider_adapters.htcondor.calling import Caller
from outrider_adapters.htcondor.settings import WatchSettings


class CondorAdapter(Adapter):
    """Base of adapters that look at an HTCondor pool again and again, in a thread of their own.

    A subclass says how to begin, what a look gives, and how long to wait for the next.
    """

    settings_type: ClassVar[type[WatchSettings]] = WatchSettings
    sees: ClassVar[tuple[str, ...]] = (
        "joined", "left", "owner_came", "owner_went", "usable", "drained", "asleep", "woken",
        "submitted", "started", "suspended", "resumed", "evicted", "completed", "removed", "held",
        "released", "changed", "eligible", "disconnected", "reconnected",
    )  # fmt: skip

    discipline = "first_fit"  # the negotiator passes over what it cannot match

    def __init__(self, label: str, settings: WatchSettings) -> None:
        super().__init__(label, settings)
        self._caller: Caller | None = None

    def begin(self, cursor: Any) -> None:
        """Begin at a cursor. Blocks. Raises `ValueError` if the cursor is none of this adapter's.

        Raises:
            PeerError: the pool cannot be reached, and without it there is nothing to watch.
        """
        raise NotImplementedError

    def look(self) -> Batch:
        """What happened since the last look. Blocks as long as the pool does."""
        raise NotImplementedError

    def pause_s(self, batch: Batch) -> float:
        """Seconds from this batch to the next look."""
        raise NotImplementedError

    def end(self) -> None:
        """Close what `begin` opened; called also where it failed or never was."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        """Get a thread; the pool is asked for the first time by `batches`."""
        self._caller = Caller(f"{self.name}-{self.label}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the call at hand end, then close."""
        if self._caller is not None:
            await self._caller.close(self.end)
            self._caller = None

    async def batches(self, cursor: Any) -> AsyncGenerator[Batch, None]:
        """Yield batches for ever; while an answer is long in coming, empty ones that grow old."""
        if self._caller is None:
            raise RuntimeError("batches() needs the adapter to be entered first")
        loop = asyncio.get_running_loop()
        last = Batch(events=[], cursor=cursor)

        def first() -> Batch:
            self.begin(cursor)
            return self.look()

        for question in chain([first], repeat(self.look)):
            asked_s = loop.time()
            async for batch in self._caller.ask(question):
                if batch is None:
                    yield _waiting(last, loop.time() - asked_s)
                else:
                    last = batch
                    yield batch
            await asyncio.sleep(self.pause_s(last))


def _waiting(last: Batch, for_s: float) -> Batch:
    note = f"the pool has not answered for {for_s:.0f} s"
    return Batch(events=[], cursor=last.cursor, age_s=last.age_s + for_s, note=note)
