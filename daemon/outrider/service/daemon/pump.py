"""Pumps: each reads one source and passes its batches through the core to the journal."""

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
from outrider.engine.state.site import machine_events
from outrider.journal import Entry, SetAsideRecord
from outrider.journal.journal_events import initial_meta
from outrider.model.errors import OutriderError
from outrider.service.core.core import Core
from outrider.service.core.source_state import SourceState
from outrider.service.daemon.daemon_state import DaemonState
from outrider.service.daemon.levers import UndoFile
from outrider.service.daemon.sources import check_batch, opened, seen_until
from outrider.service.host.logs import RateLimit
from outrider.service.host.private_folder import open_owned
from outrider.service.journal.restart import bring_up

_SLICE_EVENTS: Final = 50
"""Number of events that enter the engine before other tasks run."""
_MAX_WAITING: Final = 50_000
"""Largest number of events that wait for slower sources, some 50 MB.

Beyond it the faster sources are not read. Otherwise the smaller of two logs of a month would be in
memory as a whole.
"""
_POLL_S: Final = 0.05
_FIRST_BACKOFF_S = 1.0
_MAX_BACKOFF_S = 60.0


class Pumps:
    """The reading tasks, one for each source.

    Args:
        state: the daemon's state.
        tasks: owns the tasks.
    """

    def __init__(self, state: DaemonState, tasks: asyncio.TaskGroup) -> None:
        self._state = state
        self._task_group = tasks
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._rebuilder = Rebuilder(state)
        self._set_aside_log = SetAsideLog()

    def start(self, label: str) -> None:
        """Start reading a source."""
        adapter = self._state.adapters[label]
        adapter.in_progress = InProgressFile(self._state.recording.folder, label)
        adapter.undo_log = UndoFile(self._state.recording.folder, label)
        self._tasks[label] = self._task_group.create_task(
            self._pump(label, adapter), name=f"pump-{label}"
        )

    def cancel(self, label: str) -> asyncio.Task[None]:
        """Stop reading a source; return its task, which ends when the source is closed."""
        task = self._tasks.pop(label)
        task.cancel()
        return task

    async def _pump(self, label: str, adapter: Adapter) -> None:
        """Read one source endlessly; after an error reopen it with exponential backoff."""
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
                    raise  # an internal error, with the batch partly in the core
                problem = str(error)
                if not isinstance(error, OutriderError):
                    log.exception("adapter_failed", adapter=label)
                    problem = f"{type(error).__name__}: {error}"
            self._source(label).lose(problem)
            state.core.merger.excuse(label)
            log.warning("adapter_closed", adapter=label, error=problem, again_in_s=backoff_s)
            await self._wait_for_history(label)
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)

    def _source(self, label: str) -> SourceState:
        return self._state.core.sources[label]  # a new one after a reload or a rebuild

    async def continue_without(self, label: str) -> None:
        """Stop waiting for a hanging source and its history until it returns."""
        self._state.core.merger.excuse(label)
        if not self._state.history_read.is_set():
            self._state.sources_with_history_read.add(label)
            await self.begin_if_history_read()

    async def take(self, label: str, adapter: Adapter, batch: Batch) -> None:
        """Pass one batch through the core in slices, then to the journal as one entry."""
        state = self._state
        if not batch.history:
            await self._wait_for_history(label)
        await self._wait_for_slower_sources(label)
        await state.recording.keep_up()
        async with state.lock:
            core = state.core
            if batch.history and not batch.standing and not core.engine.silent:
                await self._skip_history(label, batch)
                return
            check_batch(batch)
            await self._rebuilder.follow_clock()
            core = state.core
            until_s = seen_until(adapter, batch, state.clock.now_s)
            limits = None if adapter.own_clock else state.clock.limits(core.merger.now)
            state.batch_in_core = label  # and remains so if this is cancelled
            feed = core.take(label, batch, until_s, limits)
            while core.step(feed, _SLICE_EVENTS):  # noqa: ASYNC110 - no wait:
                await asyncio.sleep(0)  # other tasks run between slices
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

    async def _skip_history(self, label: str, batch: Batch) -> None:
        """Skip the history of a source that is first read while the daemon runs."""
        state = self._state
        note = f"{label}: first read while running; its earlier history is skipped"
        if note not in state.view.notes:
            log.warning("history_skipped", adapter=label)
            state.view.add_note(note)
        state.cursors[label] = batch.cursor
        await state.recording.submit(Entry(cursors={label: batch.cursor}))

    async def _wait_for_slower_sources(self, label: str) -> None:
        """Wait until fewer events wait, or until they wait for this source.

        A hanging source is excused after a while, so this always ends.
        """
        while True:
            merger = self._state.core.merger  # a new one after a rebuild
            if merger.waiting_n() < _MAX_WAITING or merger.waits_for(label):
                return
            await asyncio.sleep(_POLL_S)

    async def _wait_for_history(self, label: str) -> None:
        """Note that this source's history has been read, and wait for that of the others."""
        state = self._state
        if not state.history_read.is_set():
            state.sources_with_history_read.add(label)
            state.core.merger.excuse(label)  # or the history of the others would pile up
            await self.begin_if_history_read()
            await state.history_read.wait()

    async def begin_if_history_read(self) -> None:
        """Start counting, deciding and recording if the history of every source has been read."""
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
                    # or the first events of a source with much to read would be late
                    state.core.merger.expect(label)
            state.view.show(state.core)  # metrics that count from now on
            # a restart without a snapshot after this reads the history again
            entry = Entry(cursors=dict(state.cursors))
            if state.recording.last_seq == 0:  # no later input reports the known machines
                site, names = state.core.site, state.core.merger.normaliser.machine_names
                entry.meta = initial_meta(machine_events(site, names, site.now, declared=True))
            await state.recording.submit(entry)
            state.history_read.set()
            await state.snapshot()


# -- in progress -----------------------------------------------------------------------------------
# Persistent progress records of adapters, stored in the state directory.


class InProgressFile(InProgress):
    """Progress record of one adapter, in a small file.

    It is written in place and not flushed to the disk: it must survive the process, not the
    machine. If it cannot be written (the disk is full) the adapter continues without it.

    Args:
        folder: the state directory.
        label: label of the adapter.
    """

    def __init__(self, folder: Path, label: str) -> None:
        self._path = folder / f"in-progress-{quote(label, safe='')}.json"
        self.left = _read(self._path)
        self._is_clear = self.left is None

    def note(self, what: Any) -> None:
        """Write the record to the file, see `InProgress.note`."""
        if what is None and self._is_clear:
            return
        line = b"\n" if what is None else msgspec.json.encode(what) + b"\n"
        with contextlib.suppress(OSError):
            descriptor = open_owned(self._path, os.O_WRONLY | os.O_CREAT)
            try:
                os.pwrite(descriptor, line, 0)  # bytes behind the line end are old
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
# Rebuild the state from the journal after an unrecoverable internal error, like a restart.
#
# The same happens after the host's clock was ahead and has been set back. The advance of the site's
# time is undone, and inputs recorded since then are replayed with `correct_times`.

_RETRY_AFTER_S: Final = 60.0
_CLOCK_STOPPED: Final = " and stops until the clock catches up; set the clock if it is wrong"


class Rebuilder:
    """Replaces an inconsistent core by one built from the last snapshot and the journal.

    Args:
        state: the daemon's state.
    """

    def __init__(self, state: DaemonState) -> None:
        self._state = state
        self._not_before_s = 0.0
        self._waits_for_clock = False

    async def rebuild(self) -> None:
        """Try to rebuild, at most once a minute; until it succeeds no snapshot is written.

        The caller holds the lock, and has submitted everything that entered the core.
        """
        state, old = self._state, self._state.core
        if time.monotonic() < self._not_before_s:
            return
        self._not_before_s = time.monotonic() + _RETRY_AFTER_S
        left_out = [key for key in old.unrepaired if key is not None]
        log.critical("state_rebuilt", reason="a fault could not be repaired", events=len(left_out))
        try:
            await state.recording.settle()
            core, _, notes = await asyncio.to_thread(
                bring_up, state.new_core, state.recording, left_out, state.site_clock
            )
        except Exception as error:  # the daemon continues with its present state
            log.exception("state_rebuild_failed", again_in_s=_RETRY_AFTER_S)
            state.view.add_note(f"the state may be inconsistent: {type(error).__name__}: {error}")
            return
        notes.insert(0, "the state was rebuilt after an unrecoverable internal error")
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
        await state.snapshot()  # or a restart would have to repeat this

    async def follow_clock(self) -> None:
        """Set the site's time back if the clock was ahead and has been set back.

        The core is then replaced by an earlier one. If the state before the leap is gone, or this
        clock itself is wrong, the core stays, and the site's time stops until the clock catches up.
        The caller holds the lock, and has submitted everything that entered the core.
        """
        state, old = self._state, self._state.core
        latest_s = None if state.site_clock is None else state.site_clock.latest_site_s()
        if latest_s is None or old.merger.now <= latest_s:
            if self._waits_for_clock:
                self._waits_for_clock = False
                state.view.notes = [n for n in state.view.notes if not n.endswith(_CLOCK_STOPPED)]
            return
        if self._waits_for_clock or old.engine.silent:
            return
        self._waits_for_clock = True  # a failure now would recur with every batch
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
        except Exception:  # the daemon continues with its present state
            log.exception("clock_repair_failed")
        if core is None or core.merger.now > latest_s:
            ahead = f"the site's time is {ahead_s / 3600:.0f} h ahead of this host's clock"
            state.view.add_note(ahead + _CLOCK_STOPPED)
            return
        notes.insert(0, f"the clock was set back by {ahead_s / 3600:.0f} h, and the state with it")
        await self._replace(core, notes)
        self._waits_for_clock = False


# -- set aside log ---------------------------------------------------------------------------------
# Log lines for rejected events: at most one a minute for each reason.

log = structlog.get_logger()


class SetAsideLog:
    """Logs the first event of each reason immediately, then at most one line a minute.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = RateLimit(clock)

    def note(self, events: Iterable[SetAsideRecord]) -> None:
        """Log these rejected events, within the rate limit."""
        for event in events:
            if self._limit.allows(event.reason):
                self._write(event)

    def _write(self, event: SetAsideRecord) -> None:
        write = log.error if event.reason == FAULT else log.warning
        write(
            "event_rejected", adapter=event.adapter, kind=event.kind, subject=event.subject,
            reason=event.reason, why=event.detail or REASONS[event.reason],
            events=1 + self._limit.take_suppressed(event.reason),
        )  # fmt: skip
