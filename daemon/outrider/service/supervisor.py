"""The supervisor: which tasks run, who owns them, and how they end.

One task a source pumps its batches through the core into the ledger; others watch the disk, the
watchdog and the loop itself. All share one core, which only changes under one lock. A source
that fails degrades to "stale" and is tried again; a policy that fails loses its seat; neither
ends the daemon.
"""

import asyncio
import time

import structlog

from outrider.api.adapter import Adapter, Batch
from outrider.api.plugins import load_adapter
from outrider.ledger import Entry
from outrider.model.errors import OutriderError, PluginError
from outrider.model.settings import build
from outrider.service.answers import Answers
from outrider.service.config import LoadedConfig, adapter_of
from outrider.service.core import Core, SourceState
from outrider.service.pseudonyms import Pseudonyms, load_key
from outrider.service.recording import Recording
from outrider.service.sdnotify import ServiceManager

_SLICE_EVENTS = 100
_FIRST_BACKOFF_S = 1.0
_LONGEST_BACKOFF_S = 60.0
_LAG_EVERY_S = 0.5
_PRUNE_EVERY_S = 6 * 3600.0
_DAY_S = 86_400.0
_MANY_FED = 5_000

log = structlog.get_logger()


def make_adapters(loaded: LoadedConfig) -> tuple[dict[str, Adapter], list[str]]:
    """The adapters of a configuration, and notes on those that could not be made.

    Raises:
        PluginError: not one of them could be made.
    """
    adapters: dict[str, Adapter] = {}
    broken: list[str] = []
    for label, given in loaded.config.adapters.items():
        kind, options = adapter_of(label, given)
        try:
            adapter = load_adapter(kind)
            where = f"{loaded.source} [adapters.{label}]"
            adapters[label] = adapter(label, build(adapter.settings_type, options, where))
        except PluginError as error:
            broken.append(str(error))
    if not adapters:
        raise PluginError("; ".join(broken) or "no adapter is configured")
    return adapters, broken


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
        self.adapters, notes = make_adapters(loaded)
        self.core = make_core(loaded, self.adapters, recording)
        self.cursors, recalled = recording.recall(self.core)
        self.answers = Answers(self.core, recording)
        self.answers.notes = notes + recalled
        self.answers.own_clock = any(a.own_clock for a in self.adapters.values())
        self._lock = asyncio.Lock()
        self._told: set[str] = set()
        self._past_told = asyncio.Event()
        self._pumps: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Pump every source and keep house, until cancelled; then write a last snapshot."""
        if self.recording.is_new:
            self.core.engine.silent = True
        else:
            self._past_told.set()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for label in self.adapters:
                    self._start_pump(label)
                tasks.create_task(self.recording.mend(), name="mend-recording")
                tasks.create_task(self._keep_house(), name="keep-house")
                tasks.create_task(self._watch_loop(), name="watch-loop")
                if self._service.watchdog_every_s is not None:
                    tasks.create_task(
                        self._feed_watchdog(self._service.watchdog_every_s), name="feed-watchdog"
                    )
                self.answers.is_ready = True
        finally:
            self.answers.is_ready = False
            async with self._lock:
                await self.recording.snapshot(self.core)

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
                async with adapter:
                    log.info("open_source", adapter=label, resumes=label in self.cursors)
                    async for batch in adapter.batches(self.cursors.get(label)):
                        await self._process(label, adapter, batch)
                        backoff_s = _FIRST_BACKOFF_S
                problem = "the source ended"
            except OutriderError as error:
                problem = str(error)
            except Exception as error:  # a plugin's fault must not end the daemon
                log.exception("fail_source", adapter=label)
                problem = f"{type(error).__name__}: {error}"
            source = self.core.sources[label]
            source.up, source.note = False, problem
            log.warning("close_source", adapter=label, reason=problem, again_in_s=backoff_s)
            await self._tell_past(label)
            opened = time.monotonic()
            await asyncio.sleep(backoff_s)
            source.age_s += time.monotonic() - opened
            backoff_s = min(2 * backoff_s, _LONGEST_BACKOFF_S)

    async def _process(self, label: str, adapter: Adapter, batch: Batch) -> None:
        """One batch: through the core in slices, then into the ledger as one entry."""
        if not batch.history:
            await self._tell_past(label)
        async with self._lock:
            core = self.core
            stream = core.take(label, batch, _seen_until(adapter, batch))
            while core.step(stream, _SLICE_EVENTS):  # noqa: ASYNC110 - it waits for nobody,
                await asyncio.sleep(0)  # others get their turn between slices
            self.cursors[label] = batch.cursor
            if batch.history and core.engine.silent:
                return
            entry = core.entry(label, batch)
            if entry is not None:
                await self.recording.submit(entry)

    async def _tell_past(self, label: str) -> None:
        """Wait until every source has told its past; the last one begins the present."""
        self._told.add(label)
        if self._past_told.is_set() or self._told < set(self.adapters):
            await self._past_told.wait()
            return
        async with self._lock:
            if not self._past_told.is_set():
                self.core.begin()
                await self.recording.snapshot(self.core)
                await self.recording.submit(Entry(cursors=dict(self.cursors)))
                self._past_told.set()

    # -- reload -------------------------------------------------------------------------------

    async def reload(self, loaded: LoadedConfig) -> None:
        """Build the new beside the old, then swap. If it cannot be built, the old stays.

        Raises:
            OutriderError: the new configuration cannot be put in place; nothing has changed.
        """
        fixed = [
            key
            for key in ("state_dir", "listen", "tls_cert", "tls_key", "token_file", "log_format")
            if getattr(loaded.config, key) != getattr(self.loaded.config, key)
        ]
        adapters, notes = make_adapters(loaded)
        async with self._lock:
            core = make_core(loaded, adapters, self.recording)
            state = await asyncio.to_thread(self.core.save)
            fresh = core.restore(state)
            for label, source in core.sources.items():
                if label in self.core.sources:
                    old = self.core.sources[label]
                    source.rejected, source.ignored = old.rejected, old.ignored
            changed = {
                label
                for label in {*adapters, *self.adapters}
                if loaded.config.adapters.get(label) != self.loaded.config.adapters.get(label)
            }
            kept = {n: a for n, a in self.adapters.items() if n not in changed}
            self.core, self.loaded = core, loaded
            self.adapters = {label: kept.get(label, new) for label, new in adapters.items()}
            self.answers.show(core)
            if fresh:
                notes.append(f"policies that start afresh: {', '.join(fresh)}")
            if fixed:
                notes.append(f"needs a restart to change: {', '.join(fixed)}")
            self.answers.notes = notes
            await self.recording.snapshot(core)
        for label in changed:
            if label in self._pumps:
                self._pumps.pop(label).cancel()
            if label in self.adapters:
                self._start_pump(label)

    # -- house --------------------------------------------------------------------------------

    async def _keep_house(self) -> None:
        """Snapshots and retention, for ever."""
        pruned = time.monotonic()
        # what had to be fed again must not be fed a third time, should we be killed soon
        pause_s = 0.0 if self.recording.fed > _MANY_FED else self.loaded.config.snapshot_every_s
        while True:
            await asyncio.sleep(pause_s)
            pause_s = self.loaded.config.snapshot_every_s
            async with self._lock:
                await self.recording.snapshot(self.core)
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
            self.answers.loop_lag_s = max(self.answers.loop_lag_s, loop.time() - due)

    async def _feed_watchdog(self, every_s: float) -> None:
        while True:
            self._service.alive()
            await asyncio.sleep(every_s)


def _seen_until(adapter: Adapter, batch: Batch) -> float | None:
    """Up to which event time the source has been seen, less what may still come late."""
    if batch.seen_until_s is not None:
        return batch.seen_until_s - adapter.lateness_s
    if batch.events:
        return max(event[0] for event in batch.events) - adapter.lateness_s
    if adapter.own_clock:
        return None
    # it cannot say, and the others must not wait for it: what it tells later is counted as late
    return time.time() - adapter.lateness_s
