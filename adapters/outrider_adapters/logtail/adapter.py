"""The adapter: a thin asynchronous shell around the follower of the logs."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from outrider.api import Adapter, AdapterSettings, Batch
from outrider_adapters.logtail.follower import LogFollower
from outrider_adapters.logtail.settings import LogtailSettings
from outrider_adapters.logtail.waiting import Waiting, waiting

HEARTBEAT_S: Final = 2.0


class LogtailAdapter(Adapter):
    """Follows event logs and user logs. Machines and owners are guessed from job events.

    Files are read in a thread of the adapter's own, one slice at a time, so that neither a slow
    disk nor a long log holds up the event loop.

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
        self._follower = LogFollower(settings, clock)
        self._waiting: Waiting | None = None
        self._note = ""
        self._thread: ThreadPoolExecutor | None = None

    async def __aenter__(self) -> Self:
        """Get ready to watch. A log need not be there yet."""
        self._waiting, self._note = waiting(self._settings.inotify)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"logtail-{self.label}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the slice at hand end, then close the files."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
        if self._waiting is not None:
            self._waiting.close()
        self._follower.close()

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        """Yield batches for ever. Raises `ValueError` if the cursor is not this adapter's."""
        if self._thread is None or self._waiting is None:
            raise RuntimeError("batches() needs the adapter to be entered first")
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._follower.start, cursor, self.in_progress)
        yielded_at_s = float("-inf")
        while True:
            batch, progress = await loop.run_in_executor(self._thread, self._next_batch)
            if progress or loop.time() - yielded_at_s >= self._heartbeat_s:
                yielded_at_s = loop.time()
                yield batch
            if not progress:
                self._waiting.watch(self._follower.paths)
                await self._waiting.wait(self._settings.poll_s)

    def _next_batch(self) -> tuple[Batch, bool]:
        """What was written, and whether there was anything to do. In the adapter's thread."""
        batch, progress = self._follower.read()
        if self._note:
            batch.note = "; ".join(filter(None, [self._note, batch.note]))
        return batch, progress
