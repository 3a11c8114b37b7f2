"""Reading batches of an adapter within time limits, as the daemon's supervisor does."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final

import msgspec

from outrider.api.adapter import Adapter, Batch
from outrider.model.events import NamedEvent
from outrider.testing.conformance import NotConforming, expect
from outrider.testing.harness import AdapterHarness

_SETTLE_S: Final = 1.0
_LOOP_THREADS: Final = "asyncio_"  # of its default executor, which `asyncio.to_thread` uses


class BatchReader:
    """The batches of one call of `batches`, and the cursor after each.

    The adapter must have been entered; `close` before its context is left.

    Attributes:
        batches: in order.
        events: of all batches.
        cursors: (events until then, cursor) wherever it differs from the previous one, as the
            journal would store it.
    """

    def __init__(self, adapter: Adapter, cursor: Any) -> None:
        self.batches: list[Batch] = []
        self.events: list[NamedEvent] = []
        self.cursors: list[tuple[int, Any]] = []
        self._source: AsyncIterator[Batch] = aiter(adapter.batches(cursor))
        self._pending: asyncio.Task[Batch] | None = None

    async def until(self, events_n: int, within_s: float) -> None:
        """Read until `events_n` events have come. Raises `NotConforming` if they do not in time."""
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
        """Read for `for_s`, or until `enough`; returns the ages of the batches, in order."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + for_s
        ages: list[float] = []
        while (left_s := end_s - loop.time()) > 0 and not (enough and enough(ages)):
            batch = await self._next(left_s)
            if batch is not None:
                ages.append(batch.age_s)
        return ages

    async def close(self) -> None:
        """Stop reading, even in the middle of a batch."""
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
        self._record(batch)
        return batch

    def _record(self, batch: Batch) -> None:
        expect(isinstance(batch, Batch), f"batches() must yield Batches: {batch!r}")
        self.batches.append(batch)
        self.events += batch.events
        try:
            stored = msgspec.json.decode(msgspec.json.encode(batch.cursor))
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise NotConforming(f"the cursor {batch.cursor!r} is no plain data: {error}") from error
        if not self.cursors or self.cursors[-1] != (len(self.events), stored):
            self.cursors.append((len(self.events), stored))


async def read_batches(
    harness: AdapterHarness, cursor: Any, events_n: int, then_s: float
) -> BatchReader:
    """Start an adapter at a cursor, read `events_n` events, read on for `then_s`, and leave it."""
    async with harness.adapter() as adapter:
        reader = BatchReader(adapter, cursor)
        await reader.until(events_n, harness.within_s)
        await reader.ages(then_s)
        await reader.close()
    return reader


async def remaining_tasks(known: set[asyncio.Task[Any]]) -> set[str]:
    """Names of new tasks that do not end by themselves soon."""
    left = asyncio.all_tasks() - known
    if left:
        _, left = await asyncio.wait(left, timeout=_SETTLE_S)
    return {task.get_name() for task in left}


def remaining_threads(known: Iterable[threading.Thread]) -> set[str]:
    """Names of new threads, except those of the event loop."""
    names = {thread.name for thread in set(threading.enumerate()).difference(known)}
    return {name for name in names if not name.startswith(_LOOP_THREADS)}
