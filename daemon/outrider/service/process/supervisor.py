"""Supervisor of the daemon: the tasks that run, and how they end.

One task for each source passes its batches through the core to the journal. Others watch the disk,
the watchdog and the event loop itself. All share one core, which only changes under one lock. A
failed source is stale until it can be read again, and a failed policy loses its runner. Neither
ends the daemon.
"""

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any, Final

import structlog

from outrider.engine.ingest.set_aside import LAST_S
from outrider.journal import CommandRecord, Entry, Journal
from outrider.model.errors import LedgerError
from outrider.service.canary_trial.watch import TrialWatch
from outrider.service.commands.command import CONFIGURATION, CommandHistory
from outrider.service.commands.evidence import WATCHED_KEY, WatchedTime
from outrider.service.config.declarations import policies_of, twin_of
from outrider.service.config.loaded import LoadedConfig
from outrider.service.core.source_state import SourceState
from outrider.service.daemon.daemon_state import DaemonState
from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.daemon.levers import close_levers
from outrider.service.daemon.pump import Pumps
from outrider.service.daemon.reload import reload
from outrider.service.host.sdnotify import ServiceManager
from outrider.service.journal.recording import Recording
from outrider.service.journal.restart import StartProgress
from outrider.service.modes.commander import Commander
from outrider.service.modes.gathering import gather, stated_by
from outrider.service.modes.guard_watch import GuardWatch
from outrider.service.modes.mode_changes import ModeChanges
from outrider.service.shapes.values import Evidence
from outrider.service.twin.child import TwinChild
from outrider.service.twin.starts_file import keep_planned_starts


class Supervisor:
    """Runs the sources of one configuration until it is cancelled.

    Args:
        loaded: the configuration.
        recording: the state directory.
        service: the service manager that started the daemon.
        clock: returns Unix seconds.
        progress: receives the progress of the start.
        on_mode: called with the effective mode whenever it may have changed.

    Raises:
        OutriderError: the daemon cannot start with this configuration and state directory.
    """

    def __init__(
        self,
        loaded: LoadedConfig,
        recording: Recording,
        service: ServiceManager,
        clock: Callable[[], float] = time.time,
        progress: StartProgress | None = None,
        on_mode: Callable[[str], None] = lambda mode: None,
    ) -> None:
        self._state = DaemonState(loaded, recording, clock, progress)
        self._service = service
        self._on_mode = on_mode
        self._reloading = asyncio.Lock()
        history = CommandHistory(recording)
        self._history = history
        self._watched = WatchedTime(_watched_before(recording))
        self._modes = ModeChanges(self._state, self._activate, history, self._watched)
        self._guards = GuardWatch(self._state, self._modes.fall_back)
        self._trials = TrialWatch(
            self._state, history.record, lambda config: stated_by(self.view.twin.file, config)
        )
        self._commander = Commander(self._state, self._modes, history, self._evidence)
        on_mode(self._state.loaded.config.mode)

    @property
    def view(self) -> DaemonView:
        """The daemon's view for the web layer."""
        return self._state.view

    @property
    def adapters(self) -> list[str]:
        """Labels of the active adapters."""
        return list(self._state.adapters)

    async def run(self) -> None:
        """Read every source and keep the journal until cancelled; then write a last snapshot."""
        state = self._state
        state.await_history()
        await state.record_set_aside()
        await self._note_mode("the daemon was started")
        try:
            async with asyncio.TaskGroup() as tasks:
                self._pumps = Pumps(state, tasks)
                for label in state.adapters:
                    self._pumps.start(label)
                tasks.create_task(state.recording.retry_while_failed(), name="retry-recording")
                tasks.create_task(state.publisher.run(), name="publish")
                tasks.create_task(keep_journal(state), name="keep-journal")
                watch = SourceWatch(state, self._pumps)
                tasks.create_task(watch.run(), name="watch-sources")
                tasks.create_task(self._guards.run(), name="watch-guards")
                tasks.create_task(self._trials.run(), name="watch-trial")
                tasks.create_task(keep_watched_time(state, self._watched), name="watch-time")
                tasks.create_task(watch_loop(state.view), name="watch-loop")
                every_s = self._service.watchdog_every_s
                tasks.create_task(state.view.twin.run(), name="watch-twin")
                plans = keep_planned_starts(
                    state.recording.folder, lambda: state.adapters,
                    lambda: twin_of(state.loaded.config).asks_about_starts,
                )  # fmt: skip
                tasks.create_task(plans, name="keep-planned-starts")
                if not self._service.is_there:  # else outrider-twin.service runs it
                    child = TwinChild(lambda: state.loaded)
                    tasks.create_task(child.run(), name="twin")
                if every_s is not None:
                    tasks.create_task(feed_watchdog(self._service, every_s), name="feed-watchdog")
                state.view.commands = self._commander
                state.view.is_ready = True
        except Exception:
            log.critical("daemon_failed", exc_info=True)
            raise
        finally:
            state.view.is_ready = False
            self._commander.stop()
            note_watched_time(state, self._watched)
            async with state.lock:
                await state.snapshot()
            await close_levers(state.levers)

    async def reload(self, loaded: LoadedConfig) -> None:
        """Activate another configuration; see `outrider.service.daemon.reload.reload`.

        Raises:
            OutriderError: it cannot be activated; nothing has changed.
        """
        async with self._reloading:
            await self._replace(loaded)
            self._state.configured = loaded
        await self._note_mode("the configuration was read again")

    async def _activate(self, choose: Callable[[], LoadedConfig], note: str | None = None) -> None:
        """Reload, one at a time; the configuration is chosen once the previous one is done."""
        async with self._reloading:
            await self._replace(choose(), note)

    async def _replace(self, loaded: LoadedConfig, note: str | None = None) -> None:
        await reload(self._state, self._pumps, loaded, note)
        await self._trials.look_now()  # another mode or configuration may break a trial off
        self._on_mode(self._state.loaded.config.mode)

    async def _note_mode(self, why: str) -> None:
        """Record a change of the effective mode that no command made."""
        before, mode = self._history.last_mode, self._state.loaded.config.mode
        if before != mode:
            await self._history.record(
                CommandRecord(time.time(), CONFIGURATION, None, "", before, mode, why=why)
            )

    def _evidence(self) -> Evidence:
        note_watched_time(self._state, self._watched)
        return gather(self._state, self._guards.figures, self._watched, self._history)


def _watched_before(recording: Recording) -> Any:
    """Return the watched time of policies as recorded in the journal."""
    try:
        with Journal(recording.path, read_only=True) as journal:
            return journal.meta(WATCHED_KEY)
    except (LedgerError, TypeError, ValueError) as error:
        log.error("watched_time_not_saved", error=str(error))
        return None


# -- housekeeping ----------------------------------------------------------------------------------
# Periodic tasks of the daemon besides the sources: snapshots, retention and monitoring.

_LAG_EVERY_S = 0.5
_PRUNE_EVERY_S = 6 * 3600.0
_DAY_S = 86_400.0
_MANY_FED = 5_000
_WATCHED_EVERY_S: Final = 10.0
_WATCHED_LOOKS: Final = 6
_FIRST_SNAPSHOT_S: Final = 10.0
"""Seconds until a failed snapshot is retried."""


async def keep_journal(state: DaemonState) -> None:
    """Periodically write snapshots and remove rows older than the retention."""
    pruned_at = -math.inf  # a daemon that is often restarted must prune, too
    # if the daemon is killed soon, these inputs need not be replayed again
    pause_s = 0.0 if state.recording.fed > _MANY_FED else _FIRST_SNAPSHOT_S
    while True:
        await asyncio.sleep(min(pause_s, state.loaded.config.snapshot_every_s))
        async with state.lock:
            went_well = await state.snapshot()
        pause_s = math.inf if went_well else _FIRST_SNAPSHOT_S
        if time.monotonic() - pruned_at > _PRUNE_EVERY_S:
            pruned_at = time.monotonic()
            await prune(state)
        await state.recording.retention.keep_within(state.loaded.config.journal_max_bytes)


async def prune(state: DaemonState) -> None:
    """Remove rows older than the retention, based on a plausible time.

    For a week after a leap of the clock, the age is counted from before the leap: nothing is lost
    if the clock was set ahead wrongly.
    """
    clock, now_s = state.site_clock, state.core.site.now
    leaps = state.recording.snapshots.leaps()
    latest_s = LAST_S if clock is None else clock.limits(now_s).latest_s
    if clock is not None and leaps:
        now_s = min(now_s, leaps[0].before_s)
    config = state.loaded.config
    await state.recording.retention.prune(
        now_s - config.retention_days * _DAY_S,
        latest_s,
        now_s - config.runs_retention_days * _DAY_S,
    )


async def keep_watched_time(state: DaemonState, watched: WatchedTime) -> None:
    """Count how long the policies have decided here, and record that every minute."""
    looks = 0
    while True:
        await asyncio.sleep(_WATCHED_EVERY_S)
        looks += 1
        note_watched_time(state, watched)
        if looks % _WATCHED_LOOKS == 0:
            await state.recording.submit(Entry(meta={WATCHED_KEY: watched.plain()}))


def note_watched_time(state: DaemonState, watched: WatchedTime) -> None:
    """Count the watched time since the last call."""
    config = state.loaded.config
    decides = config.mode != "observe" and state.history_read.is_set()
    watched.look(config.mode, policies_of(config), decides and state.core.is_fresh)


async def watch_loop(view: DaemonView) -> None:
    """Measure endlessly how late the event loop wakes this task."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _LAG_EVERY_S
        await asyncio.sleep(_LAG_EVERY_S)
        view.loop_lag_s = max(view.loop_lag_s, loop.time() - due)


async def feed_watchdog(service: ServiceManager, every_s: float) -> None:
    """Periodically report to the service manager that the event loop is alive."""
    while True:
        service.alive()
        await asyncio.sleep(every_s)


# -- source watch ----------------------------------------------------------------------------------
# Watch over the sources: a hanging one does not block others, and down ones are logged.

_EVERY_S: Final = 1.0

log = structlog.get_logger()


class SourceWatch:
    """Checks every source once a second.

    Args:
        state: the daemon's state.
        pumps: read the sources.
    """

    def __init__(self, state: DaemonState, pumps: Pumps) -> None:
        self._state = state
        self._pumps = pumps
        self._reported: dict[str, str] = {}  # the reported problem of each source that is down
        self._impaired: set[str] = set()  # the sources whose note was reported

    async def run(self) -> None:
        """Check the sources once a second, endlessly."""
        while True:
            await asyncio.sleep(_EVERY_S)
            sources = dict(self._state.core.sources)
            for label in self._reported.keys() - sources.keys():
                del self._reported[label]
            self._impaired &= sources.keys()
            for label, source in sources.items():
                self.report(source)
                if source.hangs and not source.up:
                    await self._pumps.continue_without(label)

    def report(self, source: SourceState) -> None:
        """Log when a source goes down, has another problem, or is up again; also a first note.

        A part of the batch system that does not answer is noted long before its age is too high.
        """
        is_noted = source.is_open and bool(source.note)
        if is_noted and source.label not in self._impaired:
            self._impaired.add(source.label)
            log.warning("adapter_impaired", adapter=source.label, error=source.note)
        elif not source.note and source.label in self._impaired:
            self._impaired.discard(source.label)
            log.info("adapter_recovered", adapter=source.label)
        reported = self._reported.get(source.label)
        if source.up:
            if reported is not None:
                del self._reported[source.label]
                log.info("adapter_up", adapter=source.label)
            return
        if not source.is_opening and reported != source.problem:
            self._reported[source.label] = source.problem
            log.error("adapter_down", adapter=source.label, error=source.down_because)
