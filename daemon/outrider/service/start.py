"""The start of the daemon, in a thread: the page answers meanwhile, and systemd waits for it."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from typing import Final, TypeVar

import structlog

from outrider.service.interpreter import share_threads
from outrider.service.sdnotify import ServiceManager
from outrider.service.start_progress import StartProgress

T = TypeVar("T")

_TELL_EVERY_S: Final = 5.0
_EXTEND_S: Final = 60.0
"""How much longer systemd is asked to wait, each time."""
_STUCK_S: Final = 300.0
"""A start without a sign of life for so long is stuck: systemd is not asked to wait any more."""

log = structlog.get_logger()


class Start:
    """Runs what takes long at the start, so that nothing else waits for it.

    Args:
        progress: told by what is run.
        service: is asked for time while the start goes on.
        stopped: set when the daemon is to stop.
        within_s: how long a start that was told to stop may take to end; then the process ends.
    """

    def __init__(
        self,
        progress: StartProgress,
        service: ServiceManager,
        stopped: asyncio.Event,
        within_s: float,
    ) -> None:
        self._progress = progress
        self._service = service
        self._stopped = stopped
        self._within_s = within_s

    async def run(self, make: Callable[[], T]) -> T:
        """What `make`, in a thread, returns.

        Raises:
            StartStoppedError: the daemon is to stop.
            OutriderError: whatever `make` raises.
        """
        share_threads()
        work = asyncio.create_task(asyncio.to_thread(make))
        stop = asyncio.create_task(self._stopped.wait())
        try:
            while not work.done() and not stop.done():
                self._tell()
                await asyncio.wait(
                    {work, stop}, timeout=_TELL_EVERY_S, return_when=asyncio.FIRST_COMPLETED
                )
            if not work.done():
                await self._end(work)
        finally:
            stop.cancel()
        return work.result()

    def _tell(self) -> None:
        progress = self._progress
        if time.monotonic() - progress.moved_at < _STUCK_S:
            self._service.starting(progress.sentence, _EXTEND_S)
        if progress.fed:
            log.info("feed_journal", inputs=progress.fed, ratio=round(progress.ratio, 3))

    async def _end(self, work: "asyncio.Task[T]") -> None:
        log.info("stop_daemon", reason="told to stop while starting")
        self._service.stopping("told to stop while starting")
        self._progress.stop()
        done, _ = await asyncio.wait([work], timeout=self._within_s)
        if not done:  # a thread cannot be ended from outside, and waiting for it would be for ever
            log.error("abandon_start", doing=self._progress.doing, after_s=self._within_s)
            sys.stderr.flush()
            os._exit(1)
