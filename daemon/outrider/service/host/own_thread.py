"""Calls that may hang for ever, in threads of their own: none of the pool's is lost to them."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def in_own_thread(call: Callable[[], T], name: str) -> "asyncio.Future[T]":
    """What a call returns or raises; must be asked on an event loop.

    The thread is a daemon: it keeps no process from ending.
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
        except Exception as error:  # noqa: BLE001 - it is passed to who waits
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            return  # the loop has ended meanwhile

    threading.Thread(target=work, name=name, daemon=True).start()
    return future
