"""Possibly blocking calls in dedicated threads, so that they cannot exhaust a thread pool.

The threads are daemon threads: they do not keep the process from ending.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


def in_thread(call: Callable[[], T], name: str) -> "Future[T]":
    """Return a future of a call in its own thread of this name."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            future.set_result(call())
        except Exception as error:  # noqa: BLE001 - it is passed to the caller
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future


def in_own_thread(call: Callable[[], T], name: str) -> "asyncio.Future[T]":
    """Return an event loop's future of a call in its own thread; must be called on the loop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    future.add_done_callback(lambda done: done.cancelled() or done.exception())  # or asyncio logs

    def settle(ended: "Future[T]") -> None:
        if future.done():
            return
        if (error := ended.exception()) is None:
            future.set_result(ended.result())
        else:
            future.set_exception(error)

    def pass_on(ended: "Future[T]") -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, ended)

    in_thread(call, name).add_done_callback(pass_on)
    return future
