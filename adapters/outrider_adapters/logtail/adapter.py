"""The adapter: a thin asynchronous shell around the tails."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from outrider.api import Adapter, AdapterSettings, Batch
from outrider_adapters.logtail.settings import LogtailSettings
from outrider_adapters.logtail.slices import Slice
from outrider_adapters.logtail.tails import Tails
from outrider_adapters.logtail.waiting import Waiting, waiting

BATCH_BYTES: Final = 1 << 20
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
        self._clock = clock
        self._tails = Tails(settings, clock)
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
        self._tails.close()

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        """Yield batches for ever. Raises `ValueError` if the cursor is not this adapter's."""
        if self._thread is None or self._waiting is None:
            raise RuntimeError("batches() needs the adapter to be entered first")
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._tails.start, cursor)
        yielded_at_s = float("-inf")
        while True:
            batch, progress = await loop.run_in_executor(self._thread, self._next_batch)
            if progress or loop.time() - yielded_at_s >= self._heartbeat_s:
                yielded_at_s = loop.time()
                yield batch
            if not progress:
                self._waiting.watch(self._tails.paths)
                await self._waiting.wait(self._settings.poll_s)

    def _next_batch(self) -> tuple[Batch, bool]:
        """Gather slices into a batch, history apart from news. Runs in the adapter's thread.

        Returns:
            the batch, and whether there was anything to do.
        """
        now_s = self._clock()  # before the reading: what is written later may not be seen
        self._tails.look_for_files()
        old = self._gather(history=True)
        if any(part.progress for part in old):
            return self._batch(old, None, history=True), True
        new = self._gather(history=False)
        last_round = new[-len(self._tails.paths) :]
        caught_up = not old and all(part.caught_up for part in last_round)
        progress = any(part.progress for part in new)
        return self._batch(old + new, now_s if caught_up else None, history=False), progress

    def _gather(self, history: bool) -> list[Slice]:
        """Step along all logs in turn until a batch is full or nothing is left to read."""
        parts: list[Slice] = []
        size = 0
        while size < BATCH_BYTES:
            turn = self._tails.step_all(history)
            parts += turn
            size += sum(part.size for part in turn)
            if not any(part.progress for part in turn):
                break
        return parts

    def _batch(self, parts: list[Slice], seen_until_s: float | None, history: bool) -> Batch:
        rejected: Counter[str] = Counter()
        ignored: Counter[str] = Counter()
        for part in parts:
            rejected += part.rejected
            ignored += part.ignored
        notes = [self._note, *self._tails.broken_readers()]
        notes += [note for part in parts for note in part.notes]
        return Batch(
            events=[event for part in parts for event in part.events],
            cursor=self._tails.save(),
            seen_until_s=seen_until_s,
            age_s=self._tails.age_s(),
            rejected=dict(rejected),
            ignored=dict(ignored),
            note="; ".join(dict.fromkeys(note for note in notes if note)),
            history=history,
        )
