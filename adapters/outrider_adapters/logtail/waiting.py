"""Waiting for a log to change: by inotify where the kernel has it, else by the clock."""

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
"""After the first sign of a change, wait this long for more: one reading for many writes."""

_DRAIN_S = 0.002
_HINTS: Final[dict[int | None, str]] = {
    errno.EMFILE: "this user has no inotify left: raise fs.inotify.max_user_instances (sysctl)",
    errno.ENOSPC: "this user has no watch left: raise fs.inotify.max_user_watches (sysctl)",
}

log = structlog.get_logger()


class Waiting(Protocol):
    """How to wait until it is worth looking again."""

    def places(self, logs: Iterable[Path]) -> Iterable[Path]:
        """What to `watch` for changes of these logs."""
        ...

    def watch(self, place: Path) -> None:
        """Watch one of `places`. It may hang as the place may; any thread may call it."""
        ...

    async def wait(self, timeout_s: float) -> None:
        """Return when a log may have changed, or after the timeout."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


class PollingWaiting:
    """Waits by the clock alone."""

    def places(self, logs: Iterable[Path]) -> Iterable[Path]:
        """None."""
        return ()

    def watch(self, place: Path) -> None:
        """Nothing to do."""

    async def wait(self, timeout_s: float) -> None:
        """Sleep."""
        await asyncio.sleep(timeout_s)

    def close(self) -> None:
        """Nothing to do."""


class InotifyWaiting:
    """Lets the kernel say when a log is written, and when one comes or goes in its folder.

    Where it cannot watch a path (not there yet, too many watches, a file system without
    inotify), the timeout of `wait` still leads to a look.

    Raises:
        OSError: the kernel has no inotify left to give.
    """

    def __init__(self) -> None:
        self._inotify = Inotify()
        self._told = False
        self._are_folders: set[Path] = set()
        self._files = Mask.MODIFY | Mask.ATTRIB | Mask.MOVE_SELF | Mask.DELETE_SELF
        self._folders = Mask.CREATE | Mask.MOVED_TO | Mask.MOVED_FROM | Mask.DELETE | Mask.ONLYDIR

    def places(self, logs: Iterable[Path]) -> Iterable[Path]:
        """The files, and their folders: there one comes or goes."""
        logs = list(logs)
        self._are_folders = {log.parent for log in logs}
        return [*self._are_folders, *logs]

    def watch(self, place: Path) -> None:
        """Watch a file by its present inode, or a folder."""
        mask = self._folders if place in self._are_folders else self._files
        try:
            self._inotify.add_watch(place, mask)
        except OSError as error:  # `wait` ends by its timeout all the same
            self._told = tell_of_polling(error, place, self._told)

    async def wait(self, timeout_s: float) -> None:
        """Return when something changed, having gathered more of it, or after the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._inotify.get()
        except TimeoutError:
            return
        await asyncio.sleep(min(GATHER_S, timeout_s))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):  # the same look sees what came meanwhile
                while True:
                    await self._inotify.get()

    def close(self) -> None:
        """Stop watching."""
        self._inotify.close()


def tell_of_polling(error: OSError, path: Path, told: bool) -> bool:
    """Log why a path is polled, once; True if that was told now or before.

    A path that is not there yet is no fault: its folder is watched.
    """
    if told or error.errno in (errno.ENOENT, errno.ENOTDIR):
        return told
    log.warning(
        "log_watch_failed", path=str(path), error=_reason(error), hint=_HINTS.get(error.errno)
    )
    return True


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


def waiting(inotify: bool) -> tuple[Waiting, str]:
    """The best way to wait, and a note if it is not the one asked for."""
    if not inotify or sys.platform != "linux":
        return PollingWaiting(), ""
    try:
        return InotifyWaiting(), ""
    except OSError as error:
        reason, hint = _reason(error), _HINTS.get(error.errno)
        log.warning("inotify_unavailable", error=reason, hint=hint)
        return PollingWaiting(), f"inotify is unavailable ({reason}): polling"
