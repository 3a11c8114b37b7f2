"""Base class of adapters that poll a batch system in a thread."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat
from math import floor, inf
from types import TracebackType
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from msgspec import Meta

from outrider.api import Adapter, Batch, NamedEvent, PeerError, PlannedStarts, UndoLog, events
from outrider_adapters.polling.commands import Asking, CommandError

# -- calling ---------------------------------------------------------------------------------------
# Blocking calls in a dedicated thread, away from the event loop.

StartAt = Annotated[
    Literal["now", "beginning"],
    Meta(
        description="How the first start treats what was there before: now takes it as "
        "history, which builds state silently; beginning treats it as news."
    ),
]
"""Type of the setting `start_at` of adapters that poll a batch system."""
PATIENCE_S: Final = 2.0
"""Seconds without an answer after which the caller is notified."""

_LEAVE_WITHIN_S: Final = 1.5

T = TypeVar("T")


class Caller:
    """Runner of blocking calls, one at a time, in a dedicated thread.

    Args:
        name: name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def ask(self, question: Callable[[], T]) -> AsyncIterator[T | None]:
        """Yield None every `PATIENCE_S` seconds until there is an answer, then the answer."""
        pending = asyncio.get_running_loop().run_in_executor(self._thread, question)
        while True:
            done, _ = await asyncio.wait({pending}, timeout=PATIENCE_S)
            if done:
                yield pending.result()
                return
            yield None

    async def answer(self, question: Callable[[], T]) -> T:
        """Return the answer, without a time limit; earlier questions come first."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, question)

    async def close(self, last: Callable[[], None]) -> None:
        """Let the current call end and make a last one.

        A call that hangs is not waited for: a batch system may take a minute to give up, and its
        answer is no longer needed.
        """
        closing = asyncio.get_running_loop().run_in_executor(self._thread, last)
        done, _ = await asyncio.wait({closing}, timeout=_LEAVE_WITHIN_S)
        self._thread.shutdown(wait=bool(done))
        if done:
            closing.result()


# -- adapter ---------------------------------------------------------------------------------------

_HISTORY_WITHIN_S: Final = 60.0
"""Seconds for the first look at everything; a pool of thousands of slots takes some."""


class PollingAdapter(Adapter):
    """Base class of adapters that poll a batch system in a dedicated thread.

    A subclass defines how to begin, how to look, and how long to wait for the next look.
    """

    def __init__(self, label: str, settings: Any) -> None:
        super().__init__(label, settings)
        self._caller: Caller | None = None

    def begin(self, cursor: Any) -> None:
        """Begin at a cursor; may block. Raises `ValueError` if it is not this adapter's cursor.

        Raises:
            PeerError: the batch system cannot be reached, and without it there is nothing to watch.
        """
        raise NotImplementedError

    def look(self) -> Batch:
        """Return what happened since the last look. Blocks as long as the batch system does."""
        raise NotImplementedError

    def pause_s(self, batch: Batch) -> float:
        """Return the seconds from this batch to the next look."""
        raise NotImplementedError

    def end(self) -> None:
        """Close what `begin` opened; called also if it failed or was never called."""
        raise NotImplementedError

    async def answer(self, question: Callable[[], T]) -> T:
        """Return the answer to a blocking question, asked between two looks.

        Raises:
            PeerError: the adapter is not running, or is being closed.
        """
        if self._caller is None:
            raise PeerError(f"the adapter {self.label} does not run")
        return await self._caller.answer(question)

    async def __aenter__(self) -> Self:
        """Start the thread; `batches` asks the first question."""
        self._caller = Caller(f"{self.name}-{self.label}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the current call end, then close."""
        if self._caller is not None:
            await self._caller.close(self.end)
            self._caller = None

    async def batches(self, cursor: Any) -> AsyncGenerator[Batch, None]:
        """Yield batches without end; while an answer is late, empty ones of growing age."""
        if self._caller is None:
            raise RuntimeError("batches() needs the adapter to be entered first")
        loop = asyncio.get_running_loop()
        # until the first look is over, the state that it finds is pending history
        last = Batch(events=[], cursor=cursor, history=cursor is None, standing=True)

        def first() -> Batch:
            self.begin(cursor)
            return self.look()

        last_s = loop.time()
        for question in chain([first], repeat(self.look)):
            asked_s = loop.time()
            async for batch in self._caller.ask(question):
                if batch is None:
                    now_s = loop.time()
                    yield _waiting(last, now_s - asked_s, now_s - last_s)
                else:
                    last, last_s = batch, loop.time()
                    yield batch
            await asyncio.sleep(self.pause_s(last))


def _waiting(last: Batch, for_s: float, since_last_s: float) -> Batch:
    """Return an empty batch during a wait; after a minute it is no longer pending history.

    Args:
        last: the last batch.
        for_s: how long the answer has been waited for, in seconds.
        since_last_s: how long ago the last batch was.
    """
    return Batch(
        events=[],
        cursor=last.cursor,
        age_s=last.age_s + since_last_s,
        history=last.history and for_s < _HISTORY_WITHIN_S,
        standing=True,
        note=f"the batch system has not answered for {for_s:.0f} s",
    )


# -- watch -----------------------------------------------------------------------------------------

_TIME_RESOLUTION_S: Final = 1.0
"""Resolution of their times: events within the second of a look may be reported later."""


class PollingWatch:
    """Base of watchers of jobs and nodes, of a batch system whose times are whole seconds.

    Args:
        start_at: the setting of that name.
        clock: returns Unix seconds.
        undo_log: what Outrider changed in it.

    Attributes:
        planned_starts: when the batch system itself expects to start jobs, at the last look.
    """

    def __init__(
        self, start_at: StartAt, clock: Callable[[], float], undo_log: UndoLog | None
    ) -> None:
        self._starts_now = start_at == "now"
        self._clock = clock
        self._undo_log = undo_log or UndoLog()
        self._asking = Asking(CommandError)
        self._cursor: Any = None
        self._is_first = False
        self.planned_starts = PlannedStarts(-inf)

    @property
    def now_s(self) -> float:
        """Unix seconds now, whole as all times of the batch system.

        Otherwise events without such a time would seem to follow later ones of the same second.
        """
        return float(floor(self._clock()))

    @property
    def _is_history(self) -> bool:
        return self._is_first and self._starts_now

    def _node_events(
        self, nodes: Collection[str], published: Collection[str], found: list[NamedEvent],
        now_s: float, changes: Callable[[str, float], list[NamedEvent]],
    ) -> list[NamedEvent]:  # fmt: skip
        """Return the events of nodes, seen now and before; `changes`: those of a node at a time."""
        # at equal times nodes come first: a machine opens before a job starts there
        begun_s = min((e[0] for e in found if e[1] == events.STARTED), default=now_s)
        first_s = min(begun_s, now_s)  # a new node gets a time before the jobs reported now
        times = ((name, now_s if name in published else first_s) for name in nodes)
        changed = [event for name, at_s in times for event in changes(name, at_s)]
        gone = sorted(set(published) - set(nodes))
        return changed + [(now_s, events.LEFT, name, None) for name in gone]

    def _looked(
        self, found: list[NamedEvent], now_s: float, cursor: Any, rejected: Mapping[str, int],
        note: str, problem: str = "",
    ) -> Batch:  # fmt: skip
        """Return the batch of a look, and continue from its cursor."""
        history = self._is_history
        self._cursor, self._is_first = cursor, False
        return Batch(
            events=sorted(found, key=lambda event: event[0]),
            cursor=cursor,
            seen_until_s=None if history else now_s - _TIME_RESOLUTION_S,
            rejected=dict(rejected),
            history=history,
            standing=history,
            note=note,
            problem=problem,
        )


def in_order(found: list[NamedEvent]) -> list[NamedEvent]:
    """Return the events with non-decreasing times: theirs are whole seconds, ours are not."""
    floor_s, ordered = 0.0, list[NamedEvent]()
    for time_s, kind, job, extra in found:
        floor_s = max(floor_s, time_s)
        ordered.append((floor_s, kind, job, extra))
    return ordered
