"""The process that asks the twin, as a child of a daemon that no service manager started."""

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
"""After which it is started first: the start of the daemon has the host for itself."""
_RETRY_S: Final = 5.0
"""After its first death; then twice as long each time."""
_LONGEST_S: Final = 3_600.0
_LIVED_S: Final = 600.0
"""One that lived so long begins with the shortest wait again."""
_LOOK_S: Final = 2.0
_COMMAND: Final = "import sys; from outrider.cli.entry import main; sys.exit(main(sys.argv[1:]))"
"""`outrider` of this interpreter, wherever its script is."""
_ENDS_WITHIN_S: Final = 0.5

log = structlog.get_logger()


class TwinChild:
    """Starts the process, and again if it dies, and ends it with itself.

    A daemon that is killed takes it along, too: it looks for its parent.

    Args:
        loaded: the configuration in force.
        first_s: before the first start.
    """

    def __init__(self, loaded: Callable[[], LoadedConfig], first_s: float = FIRST_S) -> None:
        self._loaded = loaded
        self._first_s = first_s
        self.pid: int | None = None

    async def run(self) -> None:
        """Until cancelled; then the process ends, too."""
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
        """Start it, and wait for its end; its exit code."""
        words = ["run-twin", "--config", self._loaded().source, "--parent", str(os.getpid())]
        nobody = asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _COMMAND, *words, stdin=nobody, stdout=nobody
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
    """Kill it: what it writes it replaces as a whole, so there is nothing that it has to finish.

    At its priority it needs seconds on a busy host even to die; nobody waits for that.
    """
    if process.returncode is None:
        process.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _ENDS_WITHIN_S)
