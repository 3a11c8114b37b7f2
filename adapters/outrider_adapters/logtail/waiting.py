"""Wait for a log to change: by inotify if the kernel supports it, else by the clock."""

import asyncio
import contextlib
import errno
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

import structlog

if sys.platform == "linux":
    from asyncinotify import Inotify, Mask

GATHER_S = 0.2
"""Seconds to wait after the first change, so that many writes need one read."""

_DRAIN_S = 0.002
_HINTS: Final[dict[int | None, str]] = {
    errno.EMFILE: "this user has no inotify left: raise fs.inotify.max_user_instances (sysctl)",
    errno.ENOSPC: "this user has no watch left: raise fs.inotify.max_user_watches (sysctl)",
}

log = structlog.get_logger()


class Waiting(Protocol):
    """Interface for waiting until logs may have changed."""

    def places(self, logs: Iterable[Path]) -> Iterable[Path]:
        """Return the paths to `watch` for changes of these logs."""
        ...

    def watch(self, place: Path) -> None:
        """Watch one of `places`. It may hang if the path does; any thread may call it."""
        ...

    async def wait(self, timeout_s: float) -> None:
        """Return when a log may have changed, or after the timeout."""
        ...

    def close(self) -> None:
        """Stop watching all paths."""
        ...


class PollingWaiting:
    """Waiting by the clock alone."""

    def places(self, logs: Iterable[Path]) -> Iterable[Path]:
        """Return no paths: nothing is watched."""
        return ()

    def watch(self, place: Path) -> None:
        """Do nothing: nothing is watched."""

    async def wait(self, timeout_s: float) -> None:
        """Sleep until the timeout."""
        await asyncio.sleep(timeout_s)

    def close(self) -> None:
        """Do nothing: nothing is watched."""


class InotifyWaiting:
    """Waiting by inotify for writes to a log, and for files that come or go in its folder.

    Where it cannot watch a path (not there yet, too many watches, a file system without
    inotify), the timeout of `wait` still leads to a check.

    Raises:
        OSError: no inotify instance is available.
    """

    def __init__(self) -> None:
        self._inotify = Inotify()
        self._logged = False
        self._are_folders: set[Path] = set()
        self._files = Mask.MODIFY | Mask.ATTRIB | Mask.MOVE_SELF | Mask.DELETE_SELF
        self._folders = Mask.CREATE | Mask.MOVED_TO | Mask.MOVED_FROM | Mask.DELETE | Mask.ONLYDIR

    def places(self, logs: Iterable[Path]) -> Iterable[Path]:
        """Return the files and their folders, where files come and go."""
        logs = list(logs)
        self._are_folders = {log.parent for log in logs}
        return [*self._are_folders, *logs]

    def watch(self, place: Path) -> None:
        """Watch a file by its current inode, or a folder."""
        mask = self._folders if place in self._are_folders else self._files
        try:
            self._inotify.add_watch(place, mask)
        except OSError as error:  # `wait` ends by its timeout all the same
            self._logged = log_polling(error, place, self._logged)

    async def wait(self, timeout_s: float) -> None:
        """Return when something changed, having gathered more of it, or after the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._inotify.get()
        except TimeoutError:
            return
        await asyncio.sleep(min(GATHER_S, timeout_s))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):  # the same read sees the changes until then
                while True:
                    await self._inotify.get()

    def close(self) -> None:
        """Stop watching all paths."""
        self._inotify.close()


def log_polling(error: OSError, path: Path, is_logged: bool) -> bool:
    """Log once why a path is polled; return True if that was logged now or before.

    A path that is not there yet is no fault: its folder is watched.
    """
    if is_logged or error.errno in (errno.ENOENT, errno.ENOTDIR):
        return is_logged
    log.warning(
        "log_watch_failed", path=str(path), error=_reason(error), hint=_HINTS.get(error.errno)
    )
    return True


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


def waiting(inotify: bool) -> tuple[Waiting, str]:
    """Return the best way to wait, and a note if it is not the one asked for."""
    if not inotify or sys.platform != "linux":
        return PollingWaiting(), ""
    try:
        return InotifyWaiting(), ""
    except OSError as error:
        reason, hint = _reason(error), _HINTS.get(error.errno)
        log.warning("inotify_unavailable", error=reason, hint=hint)
        return PollingWaiting(), f"inotify is unavailable ({reason}): polling"
