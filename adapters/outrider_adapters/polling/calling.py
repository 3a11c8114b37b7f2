"""Calls that block, kept away from the event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

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
