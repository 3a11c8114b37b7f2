"""A daemon in this process that reads sources whose every step a test writes down."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pytest

from outrider.api import Adapter, Batch, events
from outrider.plugins.finding import find
from outrider.service.config.loaded import LoadedConfig, check_config
from outrider.service.host.sdnotify import ServiceManager
from outrider.service.journal.recording import Recording
from outrider.service.process.supervisor import Supervisor

Step: TypeAlias = Batch | Exception | asyncio.Event | None
"""A batch to give, an error to raise, something to wait for; None: the source ends."""


class Scripted(Adapter):
    """Executes the steps of its label's script; after them it sends empty batches."""

    name = "scripted"
    description = "for tests: follows a script"
    api_version = 1
    lateness_s = 0.0
    scripts: ClassVar[dict[str, list[Step]]] = {}
    cursors: ClassVar[list[Any]] = []
    """Cursors at which it was asked to resume, one for each opening."""

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        self.cursors.append(cursor)
        script = self.scripts.setdefault(self.label, [])
        while True:
            step = script.pop(0) if script else batch_of(cursor=cursor)
            if isinstance(step, Exception):
                raise step
            if step is None:
                return
            if isinstance(step, Batch):
                yield step
                cursor = step.cursor
                await asyncio.sleep(0.01)
            else:
                await step.wait()


def batch_of(*named: events.NamedEvent, cursor: Any = 1, **more: Any) -> Batch:
    """A batch of what was just seen; without events a sign of life."""
    return Batch(**{"events": list(named), "cursor": cursor, "seen_until_s": time.time()} | more)


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[Step]]]:
    """The scripts, by label of an adapter of the type `scripted`, which is found."""
    info = tmp_path / "scripted-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted\nVersion: 1.0\n")
    points = f"[outrider.adapters]\nscripted = {__name__}:Scripted\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path))
    find.cache_clear()
    Scripted.scripts.clear()
    Scripted.cursors.clear()
    yield Scripted.scripts
    find.cache_clear()


def loaded(folder: Path, *labels: str, **settings: Any) -> LoadedConfig:
    """A configuration with these sources."""
    adapters = {label: {"type": "scripted"} for label in labels}
    given = {"state_dir": str(folder), "adapters": adapters, "policies": {"fifo": {}}}
    return check_config(given | settings, "test")


@asynccontextmanager
async def running(
    configured: LoadedConfig, folder: Path, clock: Callable[[], float] = time.time
) -> AsyncIterator[Supervisor]:
    """A daemon that reads them."""
    recording = Recording(folder)
    supervisor = Supervisor(configured, recording, ServiceManager({}), clock)
    work = asyncio.create_task(supervisor.run())
    try:
        await until(lambda: supervisor.view.is_ready)
        yield supervisor
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await asyncio.to_thread(recording.close)


async def until(holds: Callable[[], Any]) -> None:
    """Wait for what comes within moments."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - a source in another task makes it so
            await asyncio.sleep(0.01)
