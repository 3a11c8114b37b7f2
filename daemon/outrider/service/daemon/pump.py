"""Pumps: each reads one source for ever and passes its batches through the core into the ledger."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
import structlog

from outrider.api.adapter import Adapter, Batch, InProgress
from outrider.engine.ingest.set_aside import FAULT, REASONS
from outrider.engine.state.site import told_of_machines
from outrider.journal import Entry, SetAsideRecord
from outrider.journal.journal_events import initial_meta
from outrider.model.errors import OutriderError
from outrider.service.core.core import Core
from outrider.service.core.source_state import SourceState
from outrider.service.daemon.daemon_state import DaemonState
from outrider.service.daemon.levers import UndoFile
from outrider.service.daemon.sources import check_batch, opened, seen_until
from outrider.service.host.logs import RateLimit
from outrider.service.journal.restart import bring_up

_SLICE_EVENTS: Final = 50
"""Events that enter the engine before other tasks get their turn."""
_MOST_WAITING: Final = 50_000
"""Events that wait for slower sources, some 50 MB; who is ahead of these is then read no further.

Of two logs of a month, the smaller one would be in memory as a whole.
"""
_WAITS_S: Final = 0.05
_FIRST_BACKOFF_S = 1.0
_LONGEST_BACKOFF_S = 60.0


class Pumps:
    """One task for each source.

    Args:
        state: of the daemon.
        tasks: owns the tasks.
    """

    def __init__(self, state: DaemonState, tasks: asyncio.TaskGroup) -> None:
        self._state = state
        self._task_group = tasks
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._rebuilder = Rebuilder(state)
        self._set_aside_log = SetAsideLog()

    def start(self, label: str) -> None:
        """Begin to read a source."""
        adapter = self._state.adapters[label]
        adapter.in_progress = InProgressFile(self._state.recording.folder, label)
        adapter.undo_log = UndoFile(self._state.recording.folder, label)
        self._tasks[label] = self._task_group.create_task(
            self._pump(label, adapter), name=f"pump-{label}"
        )

    def cancel(self, label: str) -> asyncio.Task[None]:
        """Stop reading a source; returns the task, which ends once the source is closed."""
        task = self._tasks.pop(label)
        task.cancel()
        return task

    async def _pump(self, label: str, adapter: Adapter) -> None:
        """Read one source for ever; after an error, open it again, later and later."""
        state = self._state
        backoff_s = _FIRST_BACKOFF_S
        while True:
            try:
                resumes = state.cursors.get(label) is not None
                log.info("adapter_opened", adapter=label, resumes=resumes)
                self._source(label).note_awaited(True)
                async with opened(adapter, state.cursors.get(label)) as batches:
                    async for batch in batches:
                        self._source(label).note_awaited(False)
                        await self.take(label, adapter, batch)
                        self._source(label).note_awaited(True)
                        backoff_s = _FIRST_BACKOFF_S
                problem = "the source ended"
            except Exception as error:  # a plugin's fault must not end the daemon
                if state.batch_in_core == label:
                    raise  # but this error is Outrider's own, and the core is half way
                problem = str(error)
                if not isinstance(error, OutriderError):
                    log.exception("adapter_failed", adapter=label)
                    problem = f"{type(error).__name__}: {error}"
            self._source(label).lose(problem)
            state.core.merger.excuse(label)
            log.warning("adapter_closed", adapter=label, error=problem, again_in_s=backoff_s)
            await self._wait_for_history(label)
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _LONGEST_BACKOFF_S)

    def _source(self, label: str) -> SourceState:
        return self._state.core.sources[label]  # another after a reload or a rebuilding

    async def go_on_without(self, label: str) -> None:
        """A source hangs: until it is seen again the others wait neither for it nor its history."""
        self._state.core.merger.excuse(label)
        if not self._state.history_read.is_set():
            self._state.sources_with_history_read.add(label)
            await self.begin_if_history_read()

    async def take(self, label: str, adapter: Adapter, batch: Batch) -> None:
        """One batch: through the core in slices, then into the ledger as one entry."""
        state = self._state
        if not batch.history:
            await self._wait_for_history(label)
        await self._wait_for_slower_sources(label)
        await state.recording.keep_up()
        async with state.lock:
            core = state.core
            if batch.history and not batch.standing and not core.engine.silent:
                await self._pass_over(label, batch)
                return
            check_batch(batch)
            await self._rebuilder.follow_clock()
            core = state.core
            until_s = seen_until(adapter, batch, state.clock.now_s)
            limits = None if adapter.own_clock else state.clock.limits(core.merger.now)
            state.batch_in_core = label  # and remains so, should this be cut short
            feed = core.take(label, batch, until_s, limits)
            while core.step(feed, _SLICE_EVENTS):  # noqa: ASYNC110 - no wait:
                await asyncio.sleep(0)  # other tasks get their turn between slices
            state.cursors[label] = batch.cursor
            entry = None if core.engine.silent else core.entry(label, batch)
            if entry is not None:
                self._set_aside_log.note(entry.set_aside)
                recorded = await state.recording.submit(entry)
                if state.levers is not None:
                    state.levers.take_when_recorded(recorded, entry.decisions, entry.inputs)
            state.batch_in_core = None
            state.log_lost_policies()
            if core.unrepaired and not core.engine.silent:
                await self._rebuilder.rebuild()

    async def _pass_over(self, label: str, batch: Batch) -> None:
        """History of a source that is first read while the daemon runs does not count."""
        state = self._state
        note = f"{label}: first read while running; what it held by then is passed over"
        if note not in state.view.notes:
            log.warning("history_skipped", adapter=label)
            state.view.add_note(note)
        state.cursors[label] = batch.cursor
        await state.recording.submit(Entry(cursors={label: batch.cursor}))

    async def _wait_for_slower_sources(self, label: str) -> None:
        """Until fewer events wait, or until this is the source for which they do.

        One that hangs is excused after a while, so that this ends in any case.
        """
        while True:
            merger = self._state.core.merger  # another after a rebuilding
            if merger.waiting_n() < _MOST_WAITING or merger.waits_for(label):
                return
            await asyncio.sleep(_WAITS_S)

    async def _wait_for_history(self, label: str) -> None:
        """The history of this source has been read: wait until that of the others has, too."""
        state = self._state
        if not state.history_read.is_set():
            state.sources_with_history_read.add(label)
            state.core.merger.excuse(label)  # or the history of the others would pile up
            await self.begin_if_history_read()
            await state.history_read.wait()

    async def begin_if_history_read(self) -> None:
        """Begin to count, decide and record, if the history of every source has been read."""
        state = self._state
        async with state.lock:
            if state.history_read.is_set() or not state.sources_with_history_read.issuperset(
                state.adapters
            ):
                return
            past = state.core.past(state.clock.now_s)
            while state.core.step(past, _SLICE_EVENTS):  # noqa: ASYNC110 - as in `take`
                await asyncio.sleep(0)
            state.core.begin()
            for label, source in state.core.sources.items():
                if not (source.hangs or source.problem):
                    # or what is first told by one that has much to read would come late
                    state.core.merger.expect(label)
            state.view.show(state.core)  # metrics that count from now on
            # a restart that finds no snapshot after this reads history again
            entry = Entry(cursors=dict(state.cursors))
            if state.recording.last_seq == 0:  # no input will tell of the machines that stand
                site, names = state.core.site, state.core.merger.normaliser.machine_names
                entry.meta = initial_meta(told_of_machines(site, names, site.now, declared=True))
            await state.recording.submit(entry)
            state.history_read.set()
            await state.snapshot()


# -- in progress -----------------------------------------------------------------------------------
# What adapters are at, in files of the state directory.


class InProgressFile(InProgress):
    """Keeps what one adapter is at in a small file.

    It is written in place and not flushed to the disk: it is to outlive the process, not the
    machine. Where it cannot be written (the disk is full) the adapter goes on without.

    Args:
        folder: the state directory.
        label: of the adapter.
    """

    def __init__(self, folder: Path, label: str) -> None:
        self._path = folder / f"in-progress-{quote(label, safe='')}.json"
        self.left = _read(self._path)
        self._is_clear = self.left is None

    def note(self, what: Any) -> None:
        """See `InProgress.note`."""
        if what is None and self._is_clear:
            return
        line = b"\n" if what is None else msgspec.json.encode(what) + b"\n"
        with contextlib.suppress(OSError):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(descriptor, line, 0)  # what stands behind the line end is of before
            finally:
                os.close(descriptor)
            self._is_clear = what is None


def _read(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            line = file.readline(1 << 20)
        return msgspec.json.decode(line) if line.strip() else None
    except (OSError, msgspec.DecodeError):
        return None


# -- rebuilding ------------------------------------------------------------------------------------
# After a fault that could not be repaired the state is made anew, as a restart would.
#
# So it is after the host's clock was ahead and has been put back: what the site's time moved on by
# is undone, and what was recorded meanwhile is fed again with its times put right (`put_right`).

_AGAIN_AFTER_S: Final = 60.0
_STANDS_STILL: Final = " and stands still until the clock gets there; set the clock, if it is wrong"


class Rebuilder:
    """Replaces a core whose state is in doubt by one made of the last snapshot and the journal.

    Args:
        state: of the daemon.
    """

    def __init__(self, state: DaemonState) -> None:
        self._state = state
        self._not_before_s = 0.0
        self._waits_for_clock = False

    async def rebuild(self) -> None:
        """Try it, at most once a minute; until it works, no snapshot is written.

        The caller holds the lock, and has submitted everything that entered the core.
        """
        state, old = self._state, self._state.core
        if time.monotonic() < self._not_before_s:
            return
        self._not_before_s = time.monotonic() + _AGAIN_AFTER_S
        left_out = [key for key in old.unrepaired if key is not None]
        log.critical("state_rebuilt", reason="a fault could not be repaired", events=len(left_out))
        try:
            await state.recording.settle()
            core, _, notes = await asyncio.to_thread(
                bring_up, state.new_core, state.recording, left_out, state.site_clock
            )
        except Exception as error:  # the daemon goes on with the state it has
            log.exception("state_rebuild_failed", again_in_s=_AGAIN_AFTER_S)
            state.view.add_note(f"the state is in doubt: {type(error).__name__}: {error}")
            return
        notes.insert(0, "the state was rebuilt after a fault that could not be repaired")
        await self._replace(core, notes)

    async def _replace(self, core: Core, notes: list[str]) -> None:
        state = self._state
        core.succeed(state.core, state.adapters)
        for label, source in core.sources.items():
            if not source.is_open:
                core.merger.excuse(label)
        state.replace_core(core)
        for note in notes:
            state.view.add_note(note)
        state.log_lost_policies()
        await state.record_set_aside()
        await state.snapshot()  # or a restart would have to do the same again

    async def follow_clock(self) -> None:
        """If the clock was ahead and is put back, the site's time goes back with it.

        Another core takes the old one's place then. If the state before the leap is gone, or this
        clock is what is wrong, it stays, and time at the site stands still until the clock gets
        there. The caller holds the lock, and has submitted everything that entered the core.
        """
        state, old = self._state, self._state.core
        latest_s = None if state.site_clock is None else state.site_clock.latest_site_s()
        if latest_s is None or old.merger.now <= latest_s:
            if self._waits_for_clock:
                self._waits_for_clock = False
                state.view.notes = [n for n in state.view.notes if not n.endswith(_STANDS_STILL)]
            return
        if self._waits_for_clock or old.engine.silent:
            return
        self._waits_for_clock = True  # what fails now would fail with every batch
        ahead_s = old.merger.now - state.clock.now_s
        log.critical("clock_set_back", site_ahead_s=round(ahead_s))
        core: Core | None = None
        notes: list[str] = []
        try:
            if state.recording.snapshots.dated_until(latest_s):
                await state.recording.settle()
                core, _, notes = await asyncio.to_thread(
                    bring_up, state.new_core, state.recording, (), state.site_clock
                )
        except Exception:  # the daemon goes on with the state it has
            log.exception("clock_repair_failed")
        if core is None or core.merger.now > latest_s:
            ahead = f"the site's time is {ahead_s / 3600:.0f} h ahead of this host's clock"
            state.view.add_note(ahead + _STANDS_STILL)
            return
        notes.insert(0, f"the clock was put back by {ahead_s / 3600:.0f} h, and the state with it")
        await self._replace(core, notes)
        self._waits_for_clock = False


# -- set aside log ---------------------------------------------------------------------------------
# Log lines for events that were set aside: at most one a minute for each reason.

log = structlog.get_logger()


class SetAsideLog:
    """Logs the first event of each reason at once, then at most one line a minute.

    Args:
        clock: seconds that only ever go on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = RateLimit(clock)

    def note(self, events: Iterable[SetAsideRecord]) -> None:
        """Log these events that were set aside, if it is time."""
        for event in events:
            if self._limit.allows(event.reason):
                self._write(event)

    def _write(self, event: SetAsideRecord) -> None:
        tell = log.error if event.reason == FAULT else log.warning
        tell(
            "event_rejected", adapter=event.adapter, kind=event.kind, subject=event.subject,
            reason=event.reason, why=event.detail or REASONS[event.reason],
            events=1 + self._limit.take_suppressed(event.reason),
        )  # fmt: skip
