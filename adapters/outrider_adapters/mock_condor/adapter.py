"""The adapter: a mock pool that lives by a script, watched by the calls of a real one."""

import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, Final

from outrider.api import Batch, ClusterSpec, build
from outrider.plugins.random_streams import stream
from outrider_adapters.htcondor import CondorAdapter, PoolCalls, PoolWatch, WatchSettings
from outrider_adapters.logtail import LogtailSettings
from outrider_adapters.mock_condor.bindings import AdType, HTCondorException
from outrider_adapters.mock_condor.config import PoolConfig
from outrider_adapters.mock_condor.faults import Faults
from outrider_adapters.mock_condor.feeding import Script, campus_script, file_script
from outrider_adapters.mock_condor.pool import MockPool
from outrider_adapters.mock_condor.settings import MockCondorSettings, campus_and_start

_WATCHER: Final = "outrider"
"""Who asks the pool: no superuser, as a daemon in shadow mode should not be."""
_MOST_EVENTS: Final = 2_000
_BUSY_FOR_S: Final = 0.25


class MockCondorAdapter(CondorAdapter):
    """A mock HTCondor pool on a clock of its own.

    The pool's negotiator is the incumbent. Looks fall at fixed moments of the pool's clock, so the
    same settings give the same events; the cursor is the number of looks taken, and after a
    restart the pool lives through them again.

    Raises:
        ConfigurationError: the settings do not fit together, or a file that they name is wrong.
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
        self._faults = build(Faults, settings.faults, f"[adapters.{label}.faults]")
        self._campus, self._start_s = campus_and_start(settings)
        self._clusters = self._script().clusters
        self._site: _Site | None = None
        self._leaving = False

    def clusters(self) -> list[ClusterSpec]:
        """The campus's clusters with their opening hours and sleep; none of a pool by hand."""
        return self._clusters

    def begin(self, cursor: Any) -> None:
        """Set the pool up and live through the looks that were taken before."""
        self._leaving = False
        try:
            looks = 0 if cursor is None else int(cursor["looks"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"no cursor of the mock_condor adapter: {cursor!r}") from error
        site = self._site = _Site(self._script(), self._settings, self._faults, self._start_s)
        while site.looks < looks and not self._leaving:
            site.look()
        site.keep_pace()

    def look(self) -> Batch:
        """The looks that are due by now, as one batch; without any, a sign of life."""
        site = self._site
        if site is None:
            raise RuntimeError("look() before begin()")
        batches: list[Batch] = []
        until_s = time.monotonic() + _BUSY_FOR_S
        while site.is_due() and time.monotonic() < until_s:
            batches.append(site.look())
            if sum(len(batch.events) for batch in batches) >= _MOST_EVENTS:
                break
        if not batches:
            return Batch(events=[], cursor={"looks": site.looks}, age_s=site.age_s)
        return _joined(batches, site.looks)

    def pause_s(self, batch: Batch) -> float:
        """None while the pool is behind its clock."""
        return 0.0 if self._site is not None and self._site.is_due() else _BUSY_FOR_S

    def end(self) -> None:
        """Take the pool down."""
        if self._site is not None:
            self._site.close()
            self._site = None

    async def __aexit__(self, *raised: Any) -> None:
        """Stop living through the past, if that is at hand; then close."""
        self._leaving = True
        await super().__aexit__(*raised)

    def _script(self) -> Script:
        if self._campus is not None:
            return campus_script(self._campus)
        return file_script(Path(self._settings.pool or ""))


class _Site:
    """The pool, what happens in it, and the watch on it."""

    def __init__(
        self, script: Script, settings: MockCondorSettings, faults: Faults, start_s: float
    ) -> None:
        self.looks = 0
        self.age_s = 0.0
        self._settings = settings
        self._start_s = start_s
        self._happenings = script.happenings
        self._next = next(script.happenings, None)
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
        calls = PoolCalls(
            self._pool.schedd(_WATCHER), self._pool.collector(), AdType.Startd, HTCondorException,
            self._pool.schedd_name,
        )  # fmt: skip
        # the log is written by this very thread: whatever stands in it, is whole
        log = LogtailSettings(
            paths=(str(path),), format="htcondor", start_at="beginning", settle_s=0.0
        )
        self._watch = PoolWatch(calls, log, settings, lambda: self._pool.now_s)
        self._watch.start(None)

    def look(self) -> Batch:
        """Let time pass until the next look, and look."""
        pool = self._pool
        until_s = self._next_look_s()
        while self._next is not None and self._start_s + self._next[0] <= until_s:
            pool.advance(self._start_s + self._next[0])
            self._next[1](pool)
            self._next = next(self._happenings, None)
        pool.advance(until_s)
        self.looks += 1
        batch = self._watch.look()
        self.age_s = batch.age_s
        return batch

    def keep_pace(self) -> None:
        """From now on the clock runs."""
        self._began_s = time.monotonic()
        self._from_s = max(self._start_s + self._settings.head_start_s, self._pool.now_s)

    def is_due(self) -> bool:
        """Whether it is time for the next look; never after the end of the script."""
        ran_s = (time.monotonic() - self._began_s) * self._settings.speed
        return self._next_look_s() <= min(self._from_s + ran_s, self._until_s)

    def close(self) -> None:
        """Take it down."""
        self._watch.close()
        self._log.close()
        self._folder.cleanup()

    def _next_look_s(self) -> float:
        return self._start_s + self.looks * self._settings.look_s

    def _sleep(self, seconds: float) -> None:
        """Calls are slow only in the present."""
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
