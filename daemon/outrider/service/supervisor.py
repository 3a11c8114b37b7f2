"""The supervisor: which tasks run, who owns them, and how they end.

One task for each source pumps its batches through the core into the ledger; others watch the disk,
the watchdog and the event loop itself. All share one core, which only changes under one lock. A
source that fails is stale until it can be read again; a policy that fails loses its runner;
neither ends the daemon.
"""

import asyncio
import time
from collections.abc import Callable

import structlog

from outrider.model.errors import LedgerError, OutriderError
from outrider.service.config.loaded import LoadedConfig
from outrider.service.daemon_state import DaemonState
from outrider.service.daemon_view import DaemonView
from outrider.service.demotion import Demotion, in_shadow, keep, note_of
from outrider.service.guard_watch import GuardWatch
from outrider.service.housekeeping import feed_watchdog, keep_ledger, watch_loop
from outrider.service.levers import close_levers
from outrider.service.pump import Pumps
from outrider.service.recording import Recording
from outrider.service.reload import reload
from outrider.service.sdnotify import ServiceManager
from outrider.service.source_watch import SourceWatch
from outrider.service.start_progress import StartProgress

log = structlog.get_logger()


class Supervisor:
    """Runs the sources of one configuration until it is cancelled.

    Args:
        loaded: the configuration.
        recording: the state directory.
        service: the service manager that started the daemon.
        clock: Unix seconds now.
        progress: is told how far the start has come.
        tell_mode: is told which mode is in force, whenever that may have changed.

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
        tell_mode: Callable[[str], None] = lambda mode: None,
    ) -> None:
        self._state = DaemonState(loaded, recording, clock, progress)
        self._service = service
        self._tell_mode = tell_mode
        self._reloading = asyncio.Lock()
        tell_mode(self._state.loaded.config.mode)

    @property
    def view(self) -> DaemonView:
        """What the web may see of the daemon."""
        return self._state.view

    @property
    def adapters(self) -> list[str]:
        """Labels of the adapters in force."""
        return list(self._state.adapters)

    async def run(self) -> None:
        """Pump every source and keep the ledger, until cancelled; then write a last snapshot."""
        state = self._state
        if state.recording.is_new:
            state.core.engine.be_silent()
        else:
            state.history_read.set()
        await state.record_set_aside()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._pumps = Pumps(state, tasks)
                for label in state.adapters:
                    self._pumps.start(label)
                tasks.create_task(state.recording.mend(), name="mend-recording")
                tasks.create_task(state.publisher.run(), name="publish")
                tasks.create_task(keep_ledger(state), name="keep-ledger")
                watch = SourceWatch(state, self._pumps)
                tasks.create_task(watch.run(), name="watch-sources")
                guards = GuardWatch(state, self._fall_back)
                tasks.create_task(guards.run(), name="watch-guards")
                tasks.create_task(watch_loop(state.view), name="watch-loop")
                every_s = self._service.watchdog_every_s
                if every_s is not None:
                    tasks.create_task(feed_watchdog(self._service, every_s), name="feed-watchdog")
                state.view.is_ready = True
        except Exception:
            log.critical("fail_daemon", exc_info=True)
            raise
        finally:
            state.view.is_ready = False
            async with state.lock:
                await state.snapshot()
            await close_levers(state.levers)

    async def reload(self, loaded: LoadedConfig) -> None:
        """Put another configuration in force; see `outrider.service.reload.reload`.

        Raises:
            OutriderError: it cannot be put in force; nothing has changed.
        """
        await self._reload(loaded)

    async def _reload(self, loaded: LoadedConfig, note: str | None = None) -> None:
        async with self._reloading:
            await reload(self._state, self._pumps, loaded, note)
            self._tell_mode(self._state.loaded.config.mode)

    async def _fall_back(self, demotion: Demotion) -> None:
        """Change nothing any more, and take back what was changed; also after a restart.

        Raises:
            OutriderError: a shadow of the configuration cannot be put in force.
        """
        try:
            keep(demotion, self._state.recording.folder)
        except LedgerError as error:  # then a restart or a reload acts again: better than to act on
            log.error("forget_demotion", reason=str(error))
        try:
            await self._reload(in_shadow(self._state.loaded), note_of(demotion))
        except OutriderError:
            self.view.add_note(note_of(demotion))
            levers, self._state.levers = self._state.levers, None
            await close_levers(levers)  # whatever the mode is called: nothing is changed any more
            raise
