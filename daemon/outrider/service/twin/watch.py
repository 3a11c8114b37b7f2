"""What the daemon knows of the twin: its file, read again when it has changed."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from outrider.service.twin.starts_file import STARTS_NAME, StartsFile
from outrider.service.twin.starts_file import read as read_starts
from outrider.service.twin.twin_file import (
    TWIN_NAME,
    Stamp,
    TwinFile,
    TwinFileError,
    read,
    stamp_of,
)

_LOOK_S: Final = 2.0
FRESH_S: Final = 900.0
"""What was said of starts longer ago than this is not shown."""

log = structlog.get_logger()


class TwinWatch:
    """Looks for another file, in a thread: a state directory may be on a slow disk.

    Args:
        folder: the state directory.
        own_clock: whether the site is simulated, on a clock that is not the wall's.

    Attributes:
        file: what stands in it; None: there is none, or none that can be read.
        problem: why it cannot be read; empty: it can, or there is none.
        starts: when waiting jobs are expected to start; None: nothing is said, or it is damaged.
        starts_problem: why that cannot be read; empty: it can, or there is nothing.
    """

    def __init__(self, folder: Path, own_clock: Callable[[], bool] = lambda: False) -> None:
        self._folder = folder
        self._own_clock = own_clock
        self._stamp: Stamp | None = None
        self.file: TwinFile | None = None
        self.problem = ""
        self.starts: StartsFile | None = None
        self.starts_problem = ""
        self._starts_stamp: Stamp | None = None

    async def run(self) -> None:
        """Follow the file, for ever."""
        while True:
            try:
                await asyncio.to_thread(self.look)
            except Exception:
                log.exception("twin_watch_failed")
            await asyncio.sleep(_LOOK_S)

    def look(self) -> None:
        """Read the files that are others than at the last look."""
        self._look_at_starts()
        stamp = stamp_of(self._folder / TWIN_NAME)
        if stamp is None:
            self._stamp, self.file, self.problem = None, None, ""
            return
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self.file, self.problem = read(self._folder), ""
        except TwinFileError as error:
            log.warning("twin_file_ignored", error=str(error))
            self.file, self.problem = None, str(error)

    def starts_age_s(self, asked_s: float, now_s: float) -> float:
        """How old what is said of starts is, seconds; far below 0 if a clock was put back.

        A simulated site may live through a day in a minute: there it is as old as its file.

        Args:
            asked_s: of when it is, Unix seconds of the site's clock.
            now_s: up to when the daemon has seen its site, Unix seconds of that clock.
        """
        if self._own_clock() and self._starts_stamp is not None:
            return time.time() - self._starts_stamp[0] / 1e9
        return now_s - asked_s

    def _look_at_starts(self) -> None:
        stamp = stamp_of(self._folder / STARTS_NAME)
        if stamp == self._starts_stamp:
            return
        self._starts_stamp = stamp
        try:
            self.starts, self.starts_problem = read_starts(self._folder), ""
        except (OSError, ValueError) as error:
            log.warning("starts_file_ignored", error=str(error))
            self.starts, self.starts_problem = None, str(error)
