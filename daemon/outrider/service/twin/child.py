"""Supervisor of the twin process, as a child of a daemon that runs without a service manager."""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import Final

import structlog

from outrider.service.config.declarations import twin_of
from outrider.service.config.loaded import LoadedConfig

FIRST_S: Final = 20.0
"""Seconds before the first start, so that the daemon's own start is not slowed down."""
_RETRY_S: Final = 5.0
"""Seconds until a restart after the first exit; then twice as long each time."""
_LONGEST_S: Final = 3_600.0
_LIVED_S: Final = 600.0
"""Seconds of life after which the restart pause begins with the shortest again."""
_LOOK_S: Final = 2.0
_COMMAND: Final = "import sys; from outrider.cli.entry import main; sys.exit(main(sys.argv[1:]))"
"""The command `outrider` of this interpreter, independent of where its script is."""
_ENDS_WITHIN_S: Final = 0.5

log = structlog.get_logger()


class TwinChild:
    """Supervisor that starts the twin process, restarts it, and ends it with the daemon.

    If the daemon is killed, the process ends too: it watches its parent.

    Args:
        loaded: returns the active configuration.
        first_s: seconds before the first start.
    """

    def __init__(self, loaded: Callable[[], LoadedConfig], first_s: float = FIRST_S) -> None:
        self._loaded = loaded
        self._first_s = first_s
        self.pid: int | None = None

    async def run(self) -> None:
        """Keep the process running until cancelled, then end it."""
        pause_s, deaths = self._first_s, 0
        while True:
            await asyncio.sleep(pause_s)
            if not twin_of(self._loaded().config).every_s:
                pause_s, deaths = _LOOK_S, 0
                continue
            began = time.monotonic()
            code = await self._one()
            deaths = 1 if time.monotonic() - began > _LIVED_S else deaths + 1
            pause_s = min(_LONGEST_S, _RETRY_S * 2.0 ** min(deaths - 1, 20))
            if code:
                log.warning("twin_process_ended", code=code, again_after_s=pause_s)

    async def _one(self) -> int:
        """Start the process and wait for its end; return its exit code."""
        words = ["run-twin", "--config", self._loaded().source, "--parent", str(os.getpid())]
        devnull = asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _COMMAND, *words, stdin=devnull, stdout=devnull
            )
        except OSError as error:
            log.warning("twin_process_start_failed", error=str(error))
            return 0
        self.pid = process.pid
        try:
            return await process.wait()
        finally:
            await _end(process)
            self.pid = None


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process: it replaces its files atomically, so it has nothing to finish.

    At its low priority it may need seconds to exit on a busy host; the daemon does not wait.
    """
    if process.returncode is None:
        process.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _ENDS_WITHIN_S)
