"""What goes wrong in the event loop itself: logged, each kind once a minute, and nothing ends."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

import structlog

AGAIN_AFTER_S: Final = 60.0
MOST_KINDS: Final = 100

log = structlog.get_logger()


class LoopFaults:
    """The loop's exception handler (`asyncio.loop.set_exception_handler`).

    Without descriptors for a new connection, asyncio calls it once a second for as long as that
    lasts; a log of that helps nobody.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told_s: dict[str, float] = {}
        self._untold: dict[str, int] = {}

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log it, unless the same was logged less than a minute ago."""
        error = context.get("exception")
        kind = f"{context.get('message', 'no message')}: {type(error).__name__}"
        if kind not in self._told_s and len(self._told_s) >= MOST_KINDS:
            kind = "further kinds"
        now_s = self._clock()
        if now_s - self._told_s.get(kind, -AGAIN_AFTER_S) < AGAIN_AFTER_S:
            self._untold[kind] = self._untold.get(kind, 0) + 1
            return
        self._told_s[kind] = now_s
        more = self._untold.pop(kind, 0)
        log.error("fail_in_loop", reason=kind, error=str(error), more_since=more, exc_info=error)
