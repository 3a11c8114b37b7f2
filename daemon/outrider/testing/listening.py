"""Listening to an adapter within bounds of time, as the daemon's supervisor does."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final

import msgspec

from outrider.api.adapter import Adapter, Batch
from outrider.model.events import NamedEvent
from outrider.testing.harness import AdapterHarness
from outrider.testing.verdict import NotConforming, expect

_SETTLE_S: Final = 1.0
_LOOPS_OWN: Final = "asyncio_"  # its default executor, as `asyncio.to_thread` uses it


class Heard:
    """What came from one run of `batches`, and where each batch left off.

    The adapter must have been entered; `close` before its context is left.

    Attributes:
        batches: in order.
        events: of all batches.
        cursors: (events until then, cursor) wherever it differs from the one before, as the
            journal would store it.
    """

    def __init__(self, adapter: Adapter, cursor: Any) -> None:
        self.batches: list[Batch] = []
        self.events: list[NamedEvent] = []
        self.cursors: list[tuple[int, Any]] = []
        self._source: AsyncIterator[Batch] = aiter(adapter.batches(cursor))
        self._pending: asyncio.Task[Batch] | None = None

    async def until(self, events_n: int, within_s: float) -> None:
        """Listen until so many events have come. Raises `NotConforming` if they do not in time."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + within_s
        while len(self.events) < events_n:
            left_s = end_s - loop.time()
            if left_s <= 0 or await self._next(left_s) is None:
                raise NotConforming(
                    f"{len(self.events)} of {events_n} events came within {within_s:g} s"
                )

    async def ages(
        self, for_s: float, enough: Callable[[list[float]], bool] | None = None
    ) -> list[float]:
        """Listen for a while, or until it is enough; returns the ages of what came, in order."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + for_s
        ages: list[float] = []
        while (left_s := end_s - loop.time()) > 0 and not (enough and enough(ages)):
            batch = await self._next(left_s)
            if batch is not None:
                ages.append(batch.age_s)
        return ages

    async def close(self) -> None:
        """Stop listening, in the middle of whatever the adapter does."""
        if self._pending is not None:
            self._pending.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await self._pending
            self._pending = None
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()

    async def _next(self, within_s: float) -> Batch | None:
        if self._pending is None:
            self._pending = asyncio.ensure_future(anext(self._source))
        done, _ = await asyncio.wait({self._pending}, timeout=within_s)
        if not done:
            return None
        pending, self._pending = self._pending, None
        try:
            batch = pending.result()
        except StopAsyncIteration:
            raise NotConforming("batches() came to an end; it must go on for ever") from None
        self._keep(batch)
        return batch

    def _keep(self, batch: Batch) -> None:
        expect(isinstance(batch, Batch), f"batches() must yield Batches: {batch!r}")
        self.batches.append(batch)
        self.events += batch.events
        try:
            stored = msgspec.json.decode(msgspec.json.encode(batch.cursor))
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise NotConforming(f"the cursor {batch.cursor!r} is no plain data: {error}") from error
        if not self.cursors or self.cursors[-1] != (len(self.events), stored):
            self.cursors.append((len(self.events), stored))


async def listen(harness: AdapterHarness, cursor: Any, events_n: int, then_s: float) -> Heard:
    """Start an adapter at a cursor, hear so many events, listen on for a while, and leave it."""
    async with harness.adapter() as adapter:
        heard = Heard(adapter, cursor)
        await heard.until(events_n, harness.within_s)
        await heard.ages(then_s)
        await heard.close()
    return heard


async def tasks_left(known: set[asyncio.Task[Any]]) -> set[str]:
    """Names of tasks that were not there before and do not end by themselves at once."""
    left = asyncio.all_tasks() - known
    if left:
        _, left = await asyncio.wait(left, timeout=_SETTLE_S)
    return {task.get_name() for task in left}


def threads_left(known: Iterable[threading.Thread]) -> set[str]:
    """Names of threads that were not there before, but for those that the event loop keeps."""
    names = {thread.name for thread in set(threading.enumerate()).difference(known)}
    return {name for name in names if not name.startswith(_LOOPS_OWN)}
