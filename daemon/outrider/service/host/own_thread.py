"""Run a possibly blocking call in a dedicated thread, so it cannot exhaust the thread pool."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def in_own_thread(call: Callable[[], T], name: str) -> "asyncio.Future[T]":
    """Return a future of a call in its own thread; must be called on an event loop.

    The thread is a daemon thread: it does not keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    future.add_done_callback(lambda done: done.cancelled() or done.exception())  # or asyncio logs

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work() -> None:
        result, failure = None, None
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - it is passed to the caller
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            return  # the loop has ended

    threading.Thread(target=work, name=name, daemon=True).start()
    return future
