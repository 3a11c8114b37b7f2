"""What every adapter that asks its batch system does between its looks."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat
from types import TracebackType
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from msgspec import Meta

from outrider.api import Adapter, Batch, PeerError

# -- calling ---------------------------------------------------------------------------------------
# Calls that block, kept away from the event loop.

StartAt = Annotated[
    Literal["now", "beginning"],
    Meta(
        description="What the first start makes of what was there before: now takes it as "
        "history, which builds state silently; beginning treats it as news."
    ),
]
"""The setting of that name, of every adapter that asks its batch system."""
PATIENCE_S: Final = 2.0
"""After so long without an answer the caller hears that there is none yet."""

_LEAVE_WITHIN_S: Final = 1.5

T = TypeVar("T")


class Caller:
    """Makes blocking calls, one at a time, in a thread of its own.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def ask(self, question: Callable[[], T]) -> AsyncIterator[T | None]:
        """Yield None every `PATIENCE_S` seconds until there is an answer, then the answer."""
        pending = asyncio.get_running_loop().run_in_executor(self._thread, question)
        while True:
            done, _ = await asyncio.wait({pending}, timeout=PATIENCE_S)
            if done:
                yield pending.result()
                return
            yield None

    async def answer(self, question: Callable[[], T]) -> T:
        """The answer, however long it takes; asked after what is asked already."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, question)

    async def close(self, last: Callable[[], None]) -> None:
        """Let the call at hand end and make a last one.

        A call that hangs is waited for only so long: a batch system may take a minute to give up,
        and nobody hears the answer any more.
        """
        closing = asyncio.get_running_loop().run_in_executor(self._thread, last)
        done, _ = await asyncio.wait({closing}, timeout=_LEAVE_WITHIN_S)
        self._thread.shutdown(wait=bool(done))
        if done:
            closing.result()


# -- adapter ---------------------------------------------------------------------------------------

_HISTORY_WITHIN_S: Final = 60.0
"""A pool of thousands of slots takes some seconds for the first look at everything."""


class PollingAdapter(Adapter):
    """Base of adapters that look at a batch system again and again, in a thread of their own.

    A subclass says how to begin, what a look gives, and how long to wait for the next.
    """

    def __init__(self, label: str, settings: Any) -> None:
        super().__init__(label, settings)
        self._caller: Caller | None = None

    def begin(self, cursor: Any) -> None:
        """Begin at a cursor. Blocks. Raises `ValueError` if the cursor is none of this adapter's.

        Raises:
            PeerError: the batch system cannot be reached, and without it there is nothing to watch.
        """
        raise NotImplementedError

    def look(self) -> Batch:
        """What happened since the last look. Blocks as long as the batch system does."""
        raise NotImplementedError

    def pause_s(self, batch: Batch) -> float:
        """Seconds from this batch to the next look."""
        raise NotImplementedError

    def end(self) -> None:
        """Close what `begin` opened; called also where it failed or never was."""
        raise NotImplementedError

    async def answer(self, question: Callable[[], T]) -> T:
        """The answer to a question that blocks, asked between two looks.

        Raises:
            PeerError: the adapter is not entered, or is about to be left.
        """
        if self._caller is None:
            raise PeerError(f"the adapter {self.label} does not run")
        return await self._caller.answer(question)

    async def __aenter__(self) -> Self:
        """Get a thread; the first question is asked by `batches`."""
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
        # until the first look is over, what stands at it is history that is still to come
        last = Batch(events=[], cursor=cursor, history=cursor is None, standing=True)

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
    """A sign of life while an answer is awaited; after a minute nobody waits for its history."""
    return Batch(
        events=[],
        cursor=last.cursor,
        age_s=last.age_s + for_s,
        history=last.history and for_s < _HISTORY_WITHIN_S,
        standing=True,
        note=f"the batch system has not answered for {for_s:.0f} s",
    )
