"""Pumps: each reads one source for ever and passes its batches through the core into the ledger."""

import asyncio
from typing import Final

import structlog

from outrider.api.adapter import Adapter, Batch
from outrider.engine.state.standing import told_of_machines
from outrider.ledger import Entry
from outrider.ledger.standing_machines import standing_meta
from outrider.model.errors import OutriderError
from outrider.service.daemon_state import DaemonState
from outrider.service.in_progress import InProgressFile
from outrider.service.rebuilding import Rebuilder
from outrider.service.set_aside_log import SetAsideLog
from outrider.service.source_state import SourceState
from outrider.service.sources import check_batch, opened, seen_until
from outrider.service.undo_file import UndoFile

_SLICE_EVENTS: Final = 50
"""Events that enter the engine before other tasks get their turn."""
_MOST_WAITING: Final = 50_000
"""Events that wait for slower sources, some 50 MB; who is ahead of these is then read no further.

Of two logs of a month, the smaller one would be in memory as a whole.
"""
_WAITS_S: Final = 0.05
_FIRST_BACKOFF_S = 1.0
_LONGEST_BACKOFF_S = 60.0

log = structlog.get_logger()


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
                log.info("open_source", adapter=label, resumes=resumes)
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
                    log.exception("fail_source", adapter=label)
                    problem = f"{type(error).__name__}: {error}"
            self._source(label).lose(problem)
            state.core.merger.excuse(label)
            log.warning("close_source", adapter=label, reason=problem, again_in_s=backoff_s)
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
            log.warning("pass_over_history", adapter=label)
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
                entry.meta = standing_meta(told_of_machines(site, names, site.now, declared=True))
            await state.recording.submit(entry)
            state.history_read.set()
            await state.snapshot()
