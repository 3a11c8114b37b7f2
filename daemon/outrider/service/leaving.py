"""The end of the process: it does not wait for threads that hang."""

import os
import sys
import threading
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

_ENDS_WITHIN_S: Final = 1.0
_TELLS_WITHIN_S: Final = 2.0
_FAULT: Final = 70
"""Exit code of a fault of Outrider's own."""

log = structlog.get_logger()


class LeavingExecutor(ThreadPoolExecutor):
    """The event loop's own threads, whose shutdown waits for none of them.

    A plugin's `asyncio.to_thread` may hang in the kernel, as on a dead mount, and the event loop
    ends only after the shutdown of these threads.
    """

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="asyncio")  # as the event loop names its own

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end once they have nothing to do; `leave` sees to those that hang."""
        super().shutdown(wait=False, cancel_futures=cancel_futures)


def threads() -> set[threading.Thread]:
    """The threads for whose end Python would wait."""
    return {thread for thread in threading.enumerate() if not thread.daemon}


def leave(code: int, before: Collection[threading.Thread]) -> int:
    """End at once with this code if threads that began since then do not end; else return it.

    Args:
        code: of the process.
        before: the threads that are none of ours.
    """
    if _hung(before):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def leave_after_error(before: Collection[threading.Thread]) -> None:
    """Leave somebody else the time to tell an error; then end, if threads hang as in `leave`."""
    if _hung(before):
        threading.Thread(target=_end_soon, name="end-soon", daemon=True).start()


def _hung(before: Collection[threading.Thread]) -> list[str]:
    until_s = time.monotonic() + _ENDS_WITHIN_S
    ours = [thread for thread in threads() if thread not in before]
    for thread in ours:
        thread.join(max(0.0, until_s - time.monotonic()))
    left = [thread.name for thread in ours if thread.is_alive()]
    if left:
        log.error("abandon_threads", threads=left, after_s=_ENDS_WITHIN_S)
    return left


def _end_soon() -> None:
    time.sleep(_TELLS_WITHIN_S)
    os._exit(_FAULT)
