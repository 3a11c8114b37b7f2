"""The supervisor: which tasks run, who owns them, and how they end.

One task a source pumps its batches through the core into the ledger; others watch the disk, the
watchdog and the loop itself. All share one core, which only changes under one lock. A source
that fails degrades to "stale" and is tried again; a policy that fails loses its runner; neither
ends the daemon.
"""

import asyncio
import math
import time
from collections.abc import Iterable
from typing import Final

import structlog

from outrider.api.adapter import Adapter, Batch
from outrider.ledger import Entry
from outrider.model.errors import ConfigurationError, OutriderError
from outrider.service.config.declarations import Config
from outrider.service.config.loaded import LoadedConfig
from outrider.service.core import Core
from outrider.service.daemon_view import DaemonView
from outrider.service.mqtt.publisher import Publisher
from outrider.service.pseudonyms import Pseudonyms, load_key
from outrider.service.recording import Recording
from outrider.service.sdnotify import ServiceManager
from outrider.service.set_aside_log import SetAsideLog
from outrider.service.sources import (
    SourceState,
    check_batch,
    make_adapters,
    opened,
    seen_until,
)

_SLICE_EVENTS = 50
_FIRST_BACKOFF_S = 1.0
_LONGEST_BACKOFF_S = 60.0
_LAG_EVERY_S = 0.5
_PRUNE_EVERY_S = 6 * 3600.0
_DAY_S = 86_400.0
_MANY_FED = 5_000
_CLOSING_S = 5.0
_FIRST_SNAPSHOT_S = 10.0
"""How soon a snapshot is tried again that failed."""
_FIXED: Final = (
    "state_dir", "listen", "tls_cert", "tls_key", "token_file", "log_format",
)  # fmt: skip

log = structlog.get_logger()


def make_core(loaded: LoadedConfig, adapters: dict[str, Adapter], recording: Recording) -> Core:
    """A core for these adapters, empty."""
    sources = [
        SourceState(label, adapter.name, adapter.inferred, adapter.lateness_s)
        for label, adapter in adapters.items()
    ]
    clusters = [spec for adapter in adapters.values() for spec in adapter.clusters()]
    hide = None
    if loaded.config.pseudonymise_users:
        hide = Pseudonyms(load_key(recording.folder / "pseudonym.key"))
    return Core(loaded, sources, clusters, hide)


def _notes_on(loaded: LoadedConfig) -> list[str]:
    """What the person on call should know of a configuration."""
    note = loaded.discipline().note
    return [*loaded.broken.values(), *([note] if note else [])]


def _log_discipline(core: Core) -> None:
    chosen = core.discipline
    log.info("choose_discipline", discipline=chosen.name, source=chosen.source, why=chosen.why)


class Supervisor:
    """Runs the sources of one configuration until it is cancelled.

    Args:
        loaded: the configuration.
        recording: the state directory.
        service: who started us and wants to hear of it.
    """

    def __init__(self, loaded: LoadedConfig, recording: Recording, service: ServiceManager) -> None:
        self.loaded = loaded
        self.recording = recording
        self._service = service
        self.adapters = make_adapters(loaded, {})
        self.core = make_core(loaded, self.adapters, recording)
        self.cursors, notes = recording.recall(self.core)
        self.publisher = Publisher(recording, lambda: self.core)
        self.publisher.follow(loaded.config)
        self.view = DaemonView(self.core, recording, self.publisher)
        self.view.notes = [*_notes_on(loaded), *notes]
        for note in self.view.notes:
            log.warning("note_problem", reason=note)
        _log_discipline(self.core)
        self.view.own_clock = any(a.own_clock for a in self.adapters.values())
        self._lock = asyncio.Lock()
        self._told: set[str] = set()
        self._past_told = asyncio.Event()
        self._pumps: dict[str, asyncio.Task[None]] = {}
        self._set_aside_log = SetAsideLog()
        self._at_hand: str | None = None
        """Whose batch is in the core but not yet in the ledger's hands."""

    async def run(self) -> None:
        """Pump every source and keep house, until cancelled; then write a last snapshot."""
        if self.recording.is_new:
            self.core.engine.be_silent()
        else:
            self._past_told.set()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for label in self.adapters:
                    self._start_pump(label)
                tasks.create_task(self.recording.mend(), name="mend-recording")
                tasks.create_task(self.publisher.run(), name="publish")
                tasks.create_task(self._keep_house(), name="keep-house")
                tasks.create_task(self._watch_loop(), name="watch-loop")
                if self._service.watchdog_every_s is not None:
                    tasks.create_task(
                        self._feed_watchdog(self._service.watchdog_every_s), name="feed-watchdog"
                    )
                self.view.is_ready = True
        except Exception:
            log.critical("fail_daemon", exc_info=True)
            raise
        finally:
            self.view.is_ready = False
            async with self._lock:
                await self._snapshot()

    async def _snapshot(self) -> bool:
        """Write a snapshot, unless a restart must not find the core as it is now."""
        if self._at_hand is not None or not self._past_told.is_set():
            return False
        return await self.recording.snapshot(self.core)

    def _start_pump(self, label: str) -> None:
        adapter = self.adapters[label]
        self._pumps[label] = self._tasks.create_task(
            self._pump(label, adapter), name=f"pump-{label}"
        )

    # -- sources ------------------------------------------------------------------------------

    async def _pump(self, label: str, adapter: Adapter) -> None:
        """Read one source for ever; after an error, open it again, later and later."""
        backoff_s = _FIRST_BACKOFF_S
        while True:
            try:
                log.info("open_source", adapter=label, resumes=self.cursors.get(label) is not None)
                async with opened(adapter, self.cursors.get(label)) as batches:
                    async for batch in batches:
                        await self._process(label, adapter, batch)
                        backoff_s = _FIRST_BACKOFF_S
                problem = "the source ended"
            except Exception as error:  # a plugin's fault must not end the daemon
                if self._at_hand == label:
                    raise  # but this is one of our own, and the core is in doubt
                problem = str(error)
                if not isinstance(error, OutriderError):
                    log.exception("fail_source", adapter=label)
                    problem = f"{type(error).__name__}: {error}"
            self.core.sources[label].lose(problem)
            self.core.merger.excuse(label)
            log.warning("close_source", adapter=label, reason=problem, again_in_s=backoff_s)
            await self._tell_past(label)
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _LONGEST_BACKOFF_S)

    async def _process(self, label: str, adapter: Adapter, batch: Batch) -> None:
        """One batch: through the core in slices, then into the ledger as one entry."""
        if not batch.history:
            await self._tell_past(label)
        async with self._lock:
            core = self.core
            if batch.history and not core.engine.silent:
                await self._pass_over(label, batch)
                return
            check_batch(batch)
            until_s = seen_until(adapter, batch, time.time())
            self._at_hand = label  # and remains so, should this be cut short
            feed = core.take(label, batch, until_s)
            while core.step(feed, _SLICE_EVENTS):  # noqa: ASYNC110 - it waits for nobody,
                await asyncio.sleep(0)  # others get their turn between slices
            self.cursors[label] = batch.cursor
            entry = None if core.engine.silent else core.entry(label, batch)
            if entry is not None:
                self._set_aside_log.note(entry.set_aside)
                await self.recording.submit(entry)
            self._at_hand = None

    async def _pass_over(self, label: str, batch: Batch) -> None:
        """The past of a source that came while we already count: its totals are not ours."""
        note = f"{label}: added while running; what it held by then is passed over"
        if note not in self.view.notes:
            log.warning("pass_over_history", adapter=label)
            self.view.notes = [*self.view.notes, note]
        self.cursors[label] = batch.cursor
        await self.recording.submit(Entry(cursors={label: batch.cursor}))

    async def _tell_past(self, label: str) -> None:
        """Wait until every source has told its past; the last one begins the present."""
        if not self._past_told.is_set():
            self._told.add(label)
            self.core.merger.excuse(label)  # the pasts of the others need not pile up meanwhile
            await self._begin_if_told()
            await self._past_told.wait()

    async def _begin_if_told(self) -> None:
        async with self._lock:
            if self._past_told.is_set() or not self._told.issuperset(self.adapters):
                return
            past = self.core.past(time.time())
            while self.core.step(past, _SLICE_EVENTS):  # noqa: ASYNC110 - as in `_process`
                await asyncio.sleep(0)
            self.core.begin()
            self.view.show(self.core)  # metrics that count from now on
            # a restart that finds no snapshot after this tells the past again
            await self.recording.submit(Entry(cursors=dict(self.cursors)))
            self._past_told.set()
            await self._snapshot()

    # -- reload -------------------------------------------------------------------------------

    async def reload(self, loaded: LoadedConfig) -> None:
        """Build the new beside the old, then swap. If it cannot be built, the old stays.

        Raises:
            OutriderError: the new configuration cannot be put in place; nothing has changed.
        """
        before = self.loaded.config.adapters
        same = {
            n: a for n, a in self.adapters.items() if before[n] == loaded.config.adapters.get(n)
        }
        adapters = await asyncio.to_thread(make_adapters, loaded, same)
        async with self._lock:
            self.core.accounting.work_out()  # or the thread and a reader might do it at once
            core, fresh = await asyncio.to_thread(self._successor, loaded, adapters, same)
            notes = _notes_on(loaded)
            if fresh:
                notes.append(f"policies that start afresh: {', '.join(fresh)}")
            if left := {s.name for s in self.core.runners} - {s.name for s in core.runners}:
                notes.append(f"policies that left with what they learned: {', '.join(left)}")
            if fixed := _needs_restart(self.loaded.config, loaded.config):
                notes.append(f"needs a restart to change: {', '.join(fixed)}")
            gone = [self._pumps.pop(label) for label in self.adapters.keys() - same.keys()]
            for pump in gone:
                pump.cancel()
            self.core, self.loaded, self.adapters = core, loaded, adapters
            _log_discipline(core)
            self._told.intersection_update(same)
            self.publisher.follow(loaded.config)
            self.view.show(core)
            self.view.notes = notes
            self.view.own_clock = any(a.own_clock for a in adapters.values())
            await self._snapshot()
        if gone:
            await asyncio.wait(gone, timeout=_CLOSING_S)
        for label in adapters.keys() - same.keys():
            if label not in self.cursors:
                self.cursors[label] = await asyncio.to_thread(self.recording.cursor, label)
            self._start_pump(label)
        await self._begin_if_told()  # the one that was waited for may be gone

    def _successor(
        self, loaded: LoadedConfig, adapters: dict[str, Adapter], same: Iterable[str]
    ) -> tuple[Core, list[str]]:
        """A core for another configuration in the state of ours, and who starts afresh in it."""
        core = make_core(loaded, adapters, self.recording)
        try:
            fresh = core.restore(self.core.save())
        except Exception as error:  # policies save and restore: a stranger's code
            raise ConfigurationError(
                f"{loaded.source}: what was learned does not fit: {type(error).__name__}: {error}"
            ) from error
        sound = {runner.name for runner in self.core.runners if not runner.broken}
        for runner in core.runners:
            if runner.broken and runner.name in sound:
                raise ConfigurationError(
                    f"{loaded.source}: what was learned is lost: {runner.broken}"
                )
        core.succeed(self.core, same)
        return core, fresh

    # -- house --------------------------------------------------------------------------------

    async def _keep_house(self) -> None:
        """Snapshots and retention, for ever."""
        pruned = time.monotonic()
        # what had to be fed again must not be fed a third time, should we be killed soon
        pause_s = 0.0 if self.recording.fed > _MANY_FED else _FIRST_SNAPSHOT_S
        while True:
            await asyncio.sleep(min(pause_s, self.loaded.config.snapshot_every_s))
            async with self._lock:
                went_well = await self._snapshot()
            pause_s = math.inf if went_well else _FIRST_SNAPSHOT_S
            if time.monotonic() - pruned > _PRUNE_EVERY_S:
                pruned = time.monotonic()
                before_s = self.core.site.now - self.loaded.config.retention_days * _DAY_S
                await self.recording.prune(before_s)

    async def _watch_loop(self) -> None:
        """How late the loop wakes us is how long something blocked it."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LAG_EVERY_S
            await asyncio.sleep(_LAG_EVERY_S)
            self.view.loop_lag_s = max(self.view.loop_lag_s, loop.time() - due)

    async def _feed_watchdog(self, every_s: float) -> None:
        while True:
            self._service.alive()
            await asyncio.sleep(every_s)


def _needs_restart(old: Config, new: Config) -> list[str]:
    """Settings that differ and that a reload cannot change."""
    return [key for key in _FIXED if getattr(old, key) != getattr(new, key)]
