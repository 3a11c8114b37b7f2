"""One thread beside the event loop that is left behind when it hangs."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from outrider_adapters.logtail.steps import GivenUp, Steps

_LOOKS_EVERY_S: Final = 0.5
_LEAVES_WITHIN_S: Final = 1.0
_ENDS_WITHIN_S: Final = 0.1

T = TypeVar("T")
_Work = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class Worker:
    """Does one piece of work after the other in a thread; one of its steps may hang.

    Its threads are daemon threads: neither `close` nor the end of the process waits for one that
    hangs in the kernel.

    Args:
        name: of the thread.
        steps: which the work makes.
    """

    def __init__(self, name: str, steps: Steps) -> None:
        self._name = name
        self._steps = steps
        self._queue: SimpleQueue[_Work | None] | None = None
        self._thread: threading.Thread | None = None

    async def do(self, work: Callable[[], T]) -> T | None:
        """Do it; None if a step of it hangs: then the same work may be done without that step.

        Raises:
            Exception: as the work.
        """
        future = self._give(work)
        while True:
            done, _ = await asyncio.wait({future}, timeout=_LOOKS_EVERY_S)
            if done:
                return future.result()
            if self._steps.give_up():
                self._leave_thread()
                return None

    async def close(self, last: Callable[[], None]) -> None:
        """Do a last thing; where a step hangs, here and not after it."""
        if self._queue is None:
            last()
            return
        future, thread = self._give(last), self._thread
        self._leave_thread()
        done, _ = await asyncio.wait({future}, timeout=_LEAVES_WITHIN_S)
        self._steps.forget()
        if not done:
            last()
        elif thread is not None:
            thread.join(_ENDS_WITHIN_S)

    def _give(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if self._queue is None:
            self._queue = SimpleQueue()
            self._thread = threading.Thread(
                target=_work_on, args=(self._queue, self._steps), name=self._name, daemon=True
            )
            self._thread.start()
        self._queue.put((work, future, loop))
        return future

    def _leave_thread(self) -> None:
        """The thread ends once it is done with what it is at."""
        if self._queue is not None:
            self._queue.put(None)
            self._queue = self._thread = None


def _work_on(queue: "SimpleQueue[_Work | None]", steps: Steps) -> None:
    steps.thread = threading.get_ident()
    while (given := queue.get()) is not None:
        work, future, loop = given
        result: Any = None
        error: Exception | None = None
        try:
            result = work()
        except GivenUp:
            return
        except Exception as raised:  # noqa: BLE001 - of whoever asked
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody asks any more
            loop.call_soon_threadsafe(_tell, future, result, error)
        given = work = future = None  # type: ignore[assignment]  # or they live on until the next


def _tell(future: "asyncio.Future[Any]", result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
