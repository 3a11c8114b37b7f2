"""Base class of adapters that poll a batch system in a thread."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat
from types import TracebackType
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from msgspec import Meta

from outrider.api import Adapter, Batch, PeerError

# -- calling ---------------------------------------------------------------------------------------
# Blocking calls in a dedicated thread, away from the event loop.

StartAt = Annotated[
    Literal["now", "beginning"],
    Meta(
        description="How the first start treats what was there before: now takes it as "
        "history, which builds state silently; beginning treats it as news."
    ),
]
"""Type of the setting `start_at` of adapters that poll a batch system."""
PATIENCE_S: Final = 2.0
"""Seconds without an answer after which the caller is notified."""

_LEAVE_WITHIN_S: Final = 1.5

T = TypeVar("T")


class Caller:
    """Runner of blocking calls, one at a time, in a dedicated thread.

    Args:
        name: name of the thread.
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
        """Return the answer, without a time limit; earlier questions come first."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, question)

    async def close(self, last: Callable[[], None]) -> None:
        """Let the current call end and make a last one.

        A call that hangs is not waited for: a batch system may take a minute to give up, and its
        answer is no longer needed.
        """
        closing = asyncio.get_running_loop().run_in_executor(self._thread, last)
        done, _ = await asyncio.wait({closing}, timeout=_LEAVE_WITHIN_S)
        self._thread.shutdown(wait=bool(done))
        if done:
            closing.result()


# -- adapter ---------------------------------------------------------------------------------------

_HISTORY_WITHIN_S: Final = 60.0
"""Seconds for the first look at everything; a pool of thousands of slots takes some."""


class PollingAdapter(Adapter):
    """Base class of adapters that poll a batch system in a dedicated thread.

    A subclass defines how to begin, how to look, and how long to wait for the next look.
    """

    def __init__(self, label: str, settings: Any) -> None:
        super().__init__(label, settings)
        self._caller: Caller | None = None

    def begin(self, cursor: Any) -> None:
        """Begin at a cursor; may block. Raises `ValueError` if it is not this adapter's cursor.

        Raises:
            PeerError: the batch system cannot be reached, and without it there is nothing to watch.
        """
        raise NotImplementedError

    def look(self) -> Batch:
        """Return what happened since the last look. Blocks as long as the batch system does."""
        raise NotImplementedError

    def pause_s(self, batch: Batch) -> float:
        """Return the seconds from this batch to the next look."""
        raise NotImplementedError

    def end(self) -> None:
        """Close what `begin` opened; called also if it failed or was never called."""
        raise NotImplementedError

    async def answer(self, question: Callable[[], T]) -> T:
        """Return the answer to a blocking question, asked between two looks.

        Raises:
            PeerError: the adapter is not running, or is being closed.
        """
        if self._caller is None:
            raise PeerError(f"the adapter {self.label} does not run")
        return await self._caller.answer(question)

    async def __aenter__(self) -> Self:
        """Start the thread; `batches` asks the first question."""
        self._caller = Caller(f"{self.name}-{self.label}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the current call end, then close."""
        if self._caller is not None:
            await self._caller.close(self.end)
            self._caller = None

    async def batches(self, cursor: Any) -> AsyncGenerator[Batch, None]:
        """Yield batches without end; while an answer is late, empty ones of growing age."""
        if self._caller is None:
            raise RuntimeError("batches() needs the adapter to be entered first")
        loop = asyncio.get_running_loop()
        # until the first look is over, the state that it finds is pending history
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
    """Return an empty batch during a wait; after a minute it is no longer pending history."""
    return Batch(
        events=[],
        cursor=last.cursor,
        age_s=last.age_s + for_s,
        history=last.history and for_s < _HISTORY_WITHIN_S,
        standing=True,
        note=f"the batch system has not answered for {for_s:.0f} s",
    )
