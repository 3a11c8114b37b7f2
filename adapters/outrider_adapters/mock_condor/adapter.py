"""The adapter: a mock pool driven by a script, watched by the same calls as a real pool."""

import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, Final

from outrider.api import Batch, ClusterSpec, WaitingReason, build
from outrider.plugins.random_streams import stream
from outrider_adapters.htcondor import (
    AccessPoint,
    CondorAdapter,
    PoolCalls,
    PoolWatch,
    WatchSettings,
    ask_why,
)
from outrider_adapters.htcondor.bindings import AdType, HTCondorException
from outrider_adapters.logtail import LogtailSettings
from outrider_adapters.mock_condor.config import PoolConfig
from outrider_adapters.mock_condor.faults import Faults
from outrider_adapters.mock_condor.pool import MockPool
from outrider_adapters.mock_condor.scripts import Script, campus_script, file_script
from outrider_adapters.mock_condor.settings import MockCondorSettings, campus_and_start

_WATCHER: Final = "outrider"
"""The user of the queries: no superuser, as a daemon in shadow mode should not be."""
_MAX_EVENTS: Final = 2_000
_BUSY_FOR_S: Final = 0.25


class MockCondorAdapter(CondorAdapter):
    """A mock HTCondor pool on a clock of its own.

    The pool's negotiator is the incumbent. The pool is polled at fixed times of its clock, so the
    same settings give the same events; the cursor is the number of polls ("looks"), and after a
    restart the pool is simulated up to there again.

    Raises:
        ConfigurationError: the settings contradict each other, or a file that they name is wrong.
        PluginError: HTCondor's Python bindings are not installed.
    """

    name: ClassVar[str] = "mock_condor"
    description: ClassVar[str] = "a mock HTCondor pool that evaluates real ClassAds"
    api_version = 1
    settings_type: ClassVar[type[WatchSettings]] = MockCondorSettings
    lateness_s = 0.0
    own_clock: ClassVar[bool] = True

    def __init__(self, label: str, settings: MockCondorSettings) -> None:
        super().__init__(label, settings)
        self._settings = settings
        self._faults = build(Faults, settings.faults, "faults")
        self._campus, self._start_s = campus_and_start(settings)
        self._clusters = self._script().clusters
        self._site: _WatchedPool | None = None
        self._closing = False

    def clusters(self) -> list[ClusterSpec]:
        """The campus's clusters with opening hours and sleep; none for a hand-written pool."""
        return self._clusters

    def begin(self, cursor: Any) -> None:
        """Create the pool and simulate it up to the cursor."""
        self._closing = False
        try:
            looks = 0 if cursor is None else int(cursor["looks"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"no cursor of the mock_condor adapter: {cursor!r}") from error
        site = self._site = _WatchedPool(
            self._script(), self._settings, self._faults, self._start_s
        )
        while site.looks < looks and not self._closing:
            site.look()
        site.start_clock()

    def look(self) -> Batch:
        """The polls that are due, as one batch; an empty batch if none is."""
        site = self._site
        if site is None:
            raise RuntimeError("look() before begin()")
        batches: list[Batch] = []
        until_s = time.monotonic() + _BUSY_FOR_S
        while site.is_due() and time.monotonic() < until_s:
            batches.append(site.look())
            if sum(len(batch.events) for batch in batches) >= _MAX_EVENTS:
                break
        if not batches:
            return Batch(events=[], cursor={"looks": site.looks}, age_s=site.age_s)
        return _joined(batches, site.looks)

    async def waiting_reason(self, job: str) -> WaitingReason | None:
        """Why a job of the pool is not running. Raises `PeerError`: the pool does not answer."""
        return await self.answer(lambda: None if self._site is None else self._site.why(job))

    def pause_s(self, batch: Batch) -> float:
        """Seconds until the next `look`; 0 while polls are due."""
        return 0.0 if self._site is not None and self._site.is_due() else _BUSY_FOR_S

    def end(self) -> None:
        """Close the pool."""
        if self._site is not None:
            self._site.close()
            self._site = None

    async def __aexit__(self, *raised: Any) -> None:
        """Stop a simulation of the past that is in progress; then close."""
        self._closing = True
        await super().__aexit__(*raised)

    def _script(self) -> Script:
        if self._campus is not None:
            return campus_script(self._campus)
        return file_script(Path(self._settings.pool or ""))


class _WatchedPool:
    """The pool, its script, and the watch on it."""

    def __init__(
        self, script: Script, settings: MockCondorSettings, faults: Faults, start_s: float
    ) -> None:
        self.looks = 0
        self.age_s = 0.0
        self._settings = settings
        self._start_s = start_s
        self._script_events = script.script_events
        self._next = next(script.script_events, None)
        self._until_s = start_s + script.until_s
        self._began_s = float("inf")
        self._from_s = start_s
        self._folder = tempfile.TemporaryDirectory(prefix="mock-condor-")
        path = Path(self._folder.name) / "EventLog"
        self._log = path.open("w", encoding="utf-8")
        self._pool = MockPool(
            script.machines,
            now_s=start_s,
            rng=random.Random(stream(settings.seed, "mock_condor").random()),
            event_log=self._log,
            config=PoolConfig(negotiator_interval_s=settings.negotiator_interval_s),
            faults=faults,
            sleep=self._sleep,
        )
        name = self._pool.schedd_name
        point = AccessPoint(name, self._pool.schedd(_WATCHER), HTCondorException)
        calls = PoolCalls(self._pool.collector(), AdType.Startd, HTCondorException, (point,))
        # this thread also writes the log, so its records are always complete
        log = LogtailSettings(
            paths=(str(path),), format="htcondor", start_at="beginning", settle_s=0.0
        )
        self._calls = calls
        self._watch = PoolWatch(calls, {name: log}, settings, lambda: self._pool.now_s)
        self._watch.start(None)

    def look(self) -> Batch:
        """Advance the pool to the time of the next poll, and poll it."""
        pool = self._pool
        until_s = self._next_look_s()
        while self._next is not None and self._start_s + self._next[0] <= until_s:
            pool.advance(self._start_s + self._next[0])
            self._next[1](pool)
            self._next = next(self._script_events, None)
        pool.advance(until_s)
        self.looks += 1
        batch = self._watch.look()
        self.age_s = batch.age_s
        return batch

    def why(self, job: str) -> WaitingReason | None:
        """Why a job is not running."""
        return ask_why(self._watch, self._calls, job)

    def start_clock(self) -> None:
        """Start the clock: from now on pool time follows real time."""
        self._began_s = time.monotonic()
        self._from_s = max(self._start_s + self._settings.head_start_s, self._pool.now_s)

    def is_due(self) -> bool:
        """Whether the next poll is due; never after the end of the script."""
        ran_s = (time.monotonic() - self._began_s) * self._settings.speed
        return self._next_look_s() <= min(self._from_s + ran_s, self._until_s)

    def close(self) -> None:
        """Close the watch and delete the log."""
        self._watch.close()
        self._log.close()
        self._folder.cleanup()

    def _next_look_s(self) -> float:
        return self._start_s + self.looks * self._settings.look_s

    def _sleep(self, seconds: float) -> None:
        """Delay calls (`Faults.answer_delay_s`), but not while simulating the past."""
        if self._began_s < float("inf"):
            time.sleep(seconds)


def _joined(batches: list[Batch], looks: int) -> Batch:
    rejected: Counter[str] = Counter()
    ignored: Counter[str] = Counter()
    for batch in batches:
        rejected.update(batch.rejected)
        ignored.update(batch.ignored)
    last = batches[-1]
    return Batch(
        events=[event for batch in batches for event in batch.events],
        cursor={"looks": looks},
        seen_until_s=last.seen_until_s,
        age_s=last.age_s,
        rejected=dict(rejected),
        ignored=dict(ignored),
        note=last.note,
    )
