"""The `logtail` adapter: a thin asynchronous shell around the log follower."""

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, ClassVar, Final, Self, TypeVar

from outrider.api import Adapter, AdapterSettings, Batch, FoundSystem, InProgress, ServiceNeeds
from outrider_adapters.logtail.readers import wrong_with
from outrider_adapters.logtail.settings import LogtailSettings
from outrider_adapters.logtail.steps import GivenUp, Steps
from outrider_adapters.logtail.tail import Slice
from outrider_adapters.logtail.tails import Tails, some_of
from outrider_adapters.logtail.waiting import Waiting, waiting
from outrider_adapters.polling.commands import found_event_log

HEARTBEAT_S: Final = 2.0
_WATCH_AGAIN_S: Final = 60.0


class LogtailAdapter(Adapter):
    """Adapter that follows event logs and user logs; machines are inferred from job events.

    Files are read in a dedicated thread, one slice at a time, so that neither a slow disk nor a
    long log blocks the event loop. A log whose reading hangs keeps that thread; the others continue
    in another, and no code waits for the first.

    Args:
        label: the adapter's name in the configuration.
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
        self._watched: dict[Path, tuple[int | None, float]] = {}

    @classmethod
    def found_here(cls) -> FoundSystem | None:
        """Return HTCondor's event log on this host, if there is one."""
        return found_event_log()

    @classmethod
    def check_source(cls, settings: LogtailSettings) -> list[str]:
        """Return the problems of the logs, a sentence each."""
        return list(wrong_with(settings))

    def service_needs(self) -> ServiceNeeds:
        """Return the logs, which have to be readable."""
        return ServiceNeeds(files=self._settings.paths)

    async def __aenter__(self) -> Self:
        """Prepare to watch; a log need not exist yet."""
        self._waiting, self._note = waiting(self._settings.inotify)
        self._worker = Worker(f"logtail-{self.label}", self._steps)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the current slice end, but do not wait for one that hangs; then close the files."""
        if self._worker is not None:
            await self._worker.close(self._follower.close)
            self._worker = None
        if self._waiting is not None:
            self._waiting.close()

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        """Yield batches without end. Raises `ValueError` if the cursor is not this adapter's."""
        worker, waiting_for = self._worker, self._waiting
        if worker is None or waiting_for is None:
            raise RuntimeError("batches() needs the adapter to be entered first")
        loop = asyncio.get_running_loop()
        self._follower.start(cursor, self.in_progress)
        yielded_at_s = float("-inf")
        while True:
            made = await worker.do(lambda: self._next_batch(waiting_for))
            if made is None:
                continue  # a log hangs: continue without it
            batch, progress = made
            if progress or loop.time() - yielded_at_s >= self._heartbeat_s:
                yielded_at_s = loop.time()
                yield batch
            if not progress:
                await waiting_for.wait(self._settings.poll_s)

    def _next_batch(self, waiting_for: Waiting) -> tuple[Batch, bool]:
        """Return the new batch, and whether there was progress. Runs in the adapter's thread."""
        for path in self._to_watch(waiting_for):  # before the reading: then no
            # change is missed between the two
            self._steps.make(f"watch {path}", partial(waiting_for.watch, path), list)
        batch, progress = self._follower.read()
        self.state_words = self._follower.state_words
        if self._note:
            batch.note = "; ".join(filter(None, [self._note, batch.note]))
        return batch, progress

    def _to_watch(self, waiting_for: Waiting) -> list[Path]:
        """Return the paths to watch; those of patterns only if they are new, or now and then."""
        logs, inodes = self._follower.paths, self._follower.inodes
        places = list(waiting_for.places(logs))
        if not inodes:
            return places
        now_s, known = time.monotonic(), self._watched
        named = {path for path in logs if path not in inodes}
        due = [
            path
            for path in places
            if path in named
            or path not in known
            or known[path][0] != inodes.get(path)
            or now_s - known[path][1] > _WATCH_AGAIN_S
        ]
        self._watched = {path: known[path] for path in places if path in known}
        self._watched |= {path: (inodes.get(path), now_s) for path in due}
        return due


# -- follower --------------------------------------------------------------------------------------
# The loop that reads logs to their present end, shared by `logtail` and watches of pools.

BATCH_BYTES: Final = 1 << 20
HISTORY_S: Final = 5.0
"""Seconds for which the news of a log may wait for the history of another."""
_GATHERING_S: Final = 1.0


class LogFollower:
    """Follower of logs through growth, rotation, truncation and absence, a batch at a time.

    Synchronous: an event loop has to call it in a thread.

    Args:
        settings: which logs, and how.
        clock: Unix seconds now, by the clock of the file system.
        steps: runs steps that may hang, if another thread abandons those that do. Slices read
            before an abandoned step come with the next batch.

    Raises:
        ConfigurationError, PluginError: see `Readers`.
    """

    def __init__(
        self, settings: LogtailSettings, clock: Callable[[], float], steps: Steps | None = None
    ) -> None:
        self._steps = steps or Steps()
        self._tails = Tails(settings, clock, self._steps)
        self._clock = clock
        self._parts: list[Slice] = []  # read, and not in a batch yet
        self._of_history = False
        self._gave_news = False
        self._waiting_since_s: float | None = None  # a log's news wait for another's history

    @property
    def paths(self) -> list[Path]:
        """Live logs that are followed now."""
        return self._tails.paths

    @property
    def inodes(self) -> Mapping[Path, int | None]:
        """The inodes of the logs that match a pattern; None: not known yet."""
        return self._tails.inodes

    @property
    def state_words(self) -> Mapping[str, str]:
        """The batch system's names of job states, once a log was read."""
        return self._tails.state_words

    def start(self, cursor: Any, in_progress: InProgress | None = None) -> None:
        """Begin at a cursor; None: at the beginning.

        Args:
            cursor: the cursor of a batch.
            in_progress: the adapter's (see `outrider.api.Adapter`).

        Raises:
            ValueError: the cursor was not made by this class.
        """
        self._tails.start(cursor, in_progress)

    def close(self) -> None:
        """Close all open files."""
        self._tails.close()
        self._parts = []

    def read(self) -> tuple[Batch, bool]:
        """Read what was written since the last call, up to a mebibyte; history and news separately.

        The history comes first, but not for long if another log's news waits for it: what is left
        then comes after the news, reduced to the jobs that are still there.

        Returns:
            the batch, and whether there was progress. `seen_until_s` is None if more can be read
            immediately, or a log is missing.

        Raises:
            PluginError: a reader that a log needs cannot be loaded.
        """
        tails = self._tails
        if self._parts:
            return self._batch(None), True
        now_s = self._clock()  # before the reading: what is written later may not be seen
        tails.look_for_files()
        if not tails.is_late:
            self._gather(history=True)
            if any(part.progress for part in self._parts):
                batch = self._batch(None)
                tails.is_late = self._others_waited(now_s)
                return batch, True
            tails.is_late = True
        seen_until_s = None
        for history in (True, False) if self._gave_news else (False, True):
            is_whole = self._gather(history)
            if not history and is_whole and tails.are_caught_up:
                seen_until_s = now_s
            if any(part.progress for part in self._parts):
                break
        self._gave_news = not self._of_history
        progress = any(part.progress for part in self._parts)
        return self._batch(seen_until_s), progress

    def _others_waited(self, now_s: float) -> bool:
        """Return whether the news of a log has waited long enough for the history of another."""
        if not self._tails.has_some_history_read:
            return False
        since_s = min(now_s, now_s if self._waiting_since_s is None else self._waiting_since_s)
        self._waiting_since_s = since_s
        return now_s - since_s > HISTORY_S

    def _gather(self, history: bool) -> bool:
        """Step along the logs until a batch is full; return True if nothing is left to read."""
        self._of_history = history
        size, until_s = 0, time.monotonic() + _GATHERING_S
        for part in self._tails.read(history):
            self._parts.append(part)
            size += part.size
            if size >= BATCH_BYTES or (part.progress and time.monotonic() > until_s):
                return False
        return True

    def _batch(self, seen_until_s: float | None) -> Batch:
        parts, self._parts = self._parts, []
        rejected: Counter[str] = Counter()
        ignored: Counter[str] = Counter()
        for part in parts:
            if part.rejected or part.ignored:
                rejected += part.rejected
                ignored += part.ignored
        tails, groups = self._tails, self._tails.groups.values()
        history = self._of_history and any(part.progress for part in parts)
        problem = tails.troubles.describe(groups)
        notes = [*tails.notes(), *(note for part in parts for note in part.notes)]
        return Batch(
            events=[event for part in parts for event in part.events],
            cursor=tails.save(),
            seen_until_s=seen_until_s,
            age_s=max(tails.troubles.age_s(groups), tails.behind_s()),
            rejected=dict(rejected),
            ignored=dict(ignored),
            note=some_of([*notes, *filter(None, [problem])]),
            problem=problem,
            written_s=tails.written_s(),
            history=history,
            standing=history and tails.is_late,
        )


# -- worker ----------------------------------------------------------------------------------------
# One thread next to the event loop, which is abandoned when it hangs.

_CHECK_INTERVAL_S: Final = 0.5
_CLOSE_TIMEOUT_S: Final = 1.0
_JOIN_TIMEOUT_S: Final = 0.1

T = TypeVar("T")
_Work = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class Worker:
    """Worker thread that does one piece of work after the other; one of its steps may hang.

    Its threads are daemon threads: neither `close` nor the end of the process waits for one that
    hangs in the kernel.

    Args:
        name: name of the thread.
        steps: runs the steps of the work.
    """

    def __init__(self, name: str, steps: Steps) -> None:
        self._name = name
        self._steps = steps
        self._queue: SimpleQueue[_Work | None] | None = None
        self._thread: threading.Thread | None = None

    async def do(self, work: Callable[[], T]) -> T | None:
        """Do the work; return None if a step hangs: it can be done again without that step.

        Raises:
            Exception: raised by the work.
        """
        future = self._give(work)
        while True:
            done, _ = await asyncio.wait({future}, timeout=_CHECK_INTERVAL_S)
            if done:
                return future.result()
            if self._steps.give_up():
                self._leave_thread()
                return None

    async def close(self, last: Callable[[], None]) -> None:
        """Do a last piece of work: in the thread or, if a step hangs there, here."""
        if self._queue is None:
            last()
            return
        future, thread = self._give(last), self._thread
        self._leave_thread()
        done, _ = await asyncio.wait({future}, timeout=_CLOSE_TIMEOUT_S)
        self._steps.forget()
        if not done:
            last()
        elif thread is not None:
            thread.join(_JOIN_TIMEOUT_S)

    def _give(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if self._queue is None:
            self._queue = SimpleQueue()
            self._thread = threading.Thread(
                target=_work_on, args=(self._queue, self._steps), name=self._name, daemon=True
            )
            self._thread.start()
        self._queue.put((work, future, loop))
        return future

    def _leave_thread(self) -> None:
        """Let the thread end after its current work."""
        if self._queue is not None:
            self._queue.put(None)
            self._queue = self._thread = None


def _work_on(queue: "SimpleQueue[_Work | None]", steps: Steps) -> None:
    steps.thread = threading.get_ident()
    while (given := queue.get()) is not None:
        work, future, loop = given
        result: Any = None
        error: Exception | None = None
        try:
            result = work()
        except GivenUp:
            return
        except Exception as raised:  # noqa: BLE001 - raised where the work was requested
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: no one waits for the result
            loop.call_soon_threadsafe(_resolve, future, result, error)
        given = work = future = None  # type: ignore[assignment]  # or they live on until the next


def _resolve(future: "asyncio.Future[Any]", result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
