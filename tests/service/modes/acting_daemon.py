"""A daemon at a desk with three jobs, whose lever records its calls."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from outrider.service.commands.command import Command, CommandPort, Result
from outrider.service.host.sdnotify import ServiceManager
from outrider.service.journal.recording import Recording
from outrider.service.process.supervisor import Supervisor
from tests.service.running.test_levers import loaded_in

UID = os.getuid()
EVIDENCE: dict[str, Any] = {"promote_after_s": 0.0, "promote_by_twin": False}
"""Settings of `[acting]` that require the least possible evidence."""


@asynccontextmanager
async def daemon(folder: Path, mode: str = "active", **acting: Any) -> AsyncIterator[Supervisor]:
    """A daemon with a configuration of this mode, which has begun to decide."""
    recording = Recording(folder)
    loaded = loaded_in(mode, folder, acting=acting)
    supervisor = Supervisor(loaded, recording, ServiceManager({}))
    work = asyncio.create_task(supervisor.run())
    try:
        await until(lambda: supervisor.view.commands is not None)
        await until(lambda: recording.rows["decisions"] >= 3 or mode == "observe")
        yield supervisor
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await asyncio.to_thread(recording.close)


async def until(holds: Callable[[], bool], within_s: float = 20.0) -> None:
    """Wait for something that comes in moments."""
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s, "it never came"
        await asyncio.sleep(0.02)


def mode_of(supervisor: Supervisor) -> str:
    """Return the effective mode."""
    return supervisor.view.core.config.mode


def commands_of(supervisor: Supervisor) -> CommandPort:
    """Return the port that executes commands."""
    assert supervisor.view.commands is not None
    return supervisor.view.commands


async def give(supervisor: Supervisor, command: Command) -> Result:
    """Give a command as our own user."""
    return await commands_of(supervisor).execute(command, UID)
