"""Watch of the twin's result files: they are read again when they have changed."""

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
"""Seconds after which expected starts are too old to be shown."""

log = structlog.get_logger()


class TwinWatch:
    """Watch of the twin's files, in a thread: a state directory may be on a slow disk.

    Args:
        folder: the state directory.
        own_clock: returns whether the site is simulated, with a clock other than the wall clock.

    Attributes:
        file: contents of the twin's file; None: there is none, or it cannot be read.
        problem: why it cannot be read; empty if it can, or if there is none.
        starts: expected starts of waiting jobs; None: there are none, or the file is damaged.
        starts_problem: why that file cannot be read; empty if it can, or if there is none.
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
        """Check the files periodically until cancelled."""
        while True:
            try:
                await asyncio.to_thread(self.look)
            except Exception:
                log.exception("twin_watch_failed")
            await asyncio.sleep(_LOOK_S)

    def look(self) -> None:
        """Read the files that have changed since the last call."""
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
        """Return the age of the expected starts, seconds; far below 0 if a clock was set back.

        A day of a simulated site may pass in a minute: there it is the age of the file.

        Args:
            asked_s: time of the forecast, Unix seconds of the site's clock.
            now_s: time up to which the daemon has seen its site, Unix seconds of that clock.
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
