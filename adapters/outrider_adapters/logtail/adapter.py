"""The adapter: a thin asynchronous shell around the follower of the logs."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from outrider.api import Adapter, AdapterSettings, Batch, FoundSystem, ServiceNeeds
from outrider_adapters.found_commands import found_event_log
from outrider_adapters.logtail.first_look import wrong_with
from outrider_adapters.logtail.follower import LogFollower
from outrider_adapters.logtail.settings import LogtailSettings
from outrider_adapters.logtail.steps import Steps
from outrider_adapters.logtail.waiting import Waiting, waiting
from outrider_adapters.logtail.worker import Worker

HEARTBEAT_S: Final = 2.0


class LogtailAdapter(Adapter):
    """Follows event logs and user logs. Machines and owners are guessed from job events.

    Files are read in a thread of the adapter's own, one slice at a time, so that neither a slow
    disk nor a long log holds up the event loop. A log whose reading hangs keeps that thread; the
    others go on in another, and nobody waits for the first.

    Args:
        label: its name in the configuration.
        settings: which logs, and how.
        clock: Unix seconds now.
        heartbeat_s: seconds after which a quiet source yields an empty batch.

    Raises:
        ConfigurationError: there is no reader of that format.
        PluginError: the reader of that format cannot be loaded.
    """

    name: ClassVar[str] = "logtail"
    description: ClassVar[str] = "follows the logs a batch system writes (HTCondor event logs)"
    api_version = 1
    settings_type: ClassVar[type[AdapterSettings]] = LogtailSettings
    sees: ClassVar[tuple[str, ...]] = (
        "submitted",
        "started",
        "suspended",
        "resumed",
        "evicted",
        "completed",
        "removed",
        "held",
        "released",
        "disconnected",
        "reconnected",
    )
    inferred: ClassVar[bool] = True

    def __init__(
        self,
        label: str,
        settings: LogtailSettings,
        clock: Callable[[], float] = time.time,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        super().__init__(label, settings)
        self._heartbeat_s = heartbeat_s
        self._settings = settings
        self._steps = Steps()
        self._follower = LogFollower(settings, clock, self._steps)
        self._waiting: Waiting | None = None
        self._note = ""
        self._worker: Worker | None = None

    @classmethod
    def found_here(cls) -> FoundSystem | None:
        """HTCondor's event log on this host."""
        return found_event_log()

    @classmethod
    def check_source(cls, settings: LogtailSettings) -> list[str]:
        """What is wrong with the logs, a sentence each."""
        return list(wrong_with(settings))

    def service_needs(self) -> ServiceNeeds:
        """The logs have to be readable."""
        return ServiceNeeds(files=self._settings.paths)

    async def __aenter__(self) -> Self:
        """Get ready to watch. A log need not be there yet."""
        self._waiting, self._note = waiting(self._settings.inotify)
        self._worker = Worker(f"logtail-{self.label}", self._steps)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the slice at hand end, but do not wait for one that hangs; then close the files."""
        if self._worker is not None:
            await self._worker.close(self._follower.close)
            self._worker = None
        if self._waiting is not None:
            self._waiting.close()

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        """Yield batches for ever. Raises `ValueError` if the cursor is not this adapter's."""
        worker, waiting_for = self._worker, self._waiting
        if worker is None or waiting_for is None:
            raise RuntimeError("batches() needs the adapter to be entered first")
        loop = asyncio.get_running_loop()
        self._follower.start(cursor, self.in_progress)
        yielded_at_s = float("-inf")
        while True:
            made = await worker.do(lambda: self._next_batch(waiting_for))
            if made is None:
                continue  # a log hangs: now without it
            batch, progress = made
            if progress or loop.time() - yielded_at_s >= self._heartbeat_s:
                yielded_at_s = loop.time()
                yield batch
            if not progress:
                await waiting_for.wait(self._settings.poll_s)

    def _next_batch(self, waiting_for: Waiting) -> tuple[Batch, bool]:
        """What was written, and whether there was anything to do. In the adapter's thread."""
        for path in waiting_for.places(self._follower.paths):  # before the reading: then no
            # change is missed between the two
            self._steps.make(f"watch {path}", partial(waiting_for.watch, path), list)
        batch, progress = self._follower.read()
        self.state_words = self._follower.state_words
        if self._note:
            batch.note = "; ".join(filter(None, [self._note, batch.note]))
        return batch, progress
