"""Read-only view of the daemon for the web layer, with its response caches."""

import asyncio
import gzip
import platform
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from math import inf
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from outrider import __version__
from outrider.acting.lever_runner import LeverRunner
from outrider.api.adapter import Adapter
from outrider.engine.accounting.report import report
from outrider.service.commands.command import CommandPort
from outrider.service.core.core import Core
from outrider.service.core.mode_limit import ModeLimit
from outrider.service.core.source_state import StateWords
from outrider.service.core.user_privacy import KnownUsers, Pseudonyms, Viewer
from outrider.service.journal.recording import Recording
from outrider.service.journal.restart import StartProgress
from outrider.service.metrics import MetricStore, Snapshot
from outrider.service.metrics.exporter import MetricsExporter
from outrider.service.mqtt.publisher import Publisher
from outrider.service.shapes.site import UserRow
from outrider.service.shapes.values import TrialShown
from outrider.service.twin.watch import TwinWatch
from outrider.service.views.expected_starts import ExpectedStarts, kept_jobs
from outrider.service.views.explanation import JobIndex
from outrider.service.views.one_machine import MachineHistories
from outrider.service.views.over_time import KeptJobsOverTime, KeptUseOverTime
from outrider.service.views.status import levers_shown, sentence
from outrider.service.views.twin import saving_text, twin_shown
from outrider.service.views.users_and_vos import user_rows
from outrider.service.views.waiting_reasons import WaitingReasons

_REFUSED: Final = "reload refused: "
_MAX_NOTES: Final = 100
"""Largest number of notes: texts of errors may differ each time. The oldest are dropped."""


class DaemonView:
    """The daemon's present core, its journal, and the supervisor's notes.

    Args:
        core: the core, replaced by `show` after a reload.
        recording: the journal.
        publisher: publishes to an MQTT broker.
        adapters: returns the active adapters, by label.
        levers: returns the levers that apply decisions; None in a mode that never acts.

    Attributes:
        notes: notes for operators, one sentence each.
        loop_lag_s: longest delay of the event loop since the last scrape, seconds.
        failed_requests: requests answered with 500, because a handler raised.
        is_ready: True once the sources are being read.
        start_s: duration of the start, in seconds.
        own_clock: True for a simulated site with its own clock.
        scraping: held by the one scrape that is being rendered.
        waiting_reasons: queries the batch systems for reasons why a job waits.
        state_words: the batch systems' words for the states of jobs.
        commands: executes commands; None until the sources are being read.
        configured_mode: returns the configured mode, the ceiling of the effective one.
        twin: the results that the twin process has written.
        mode_limit: returns the limit on the mode; None: there is none.
        jobs_over_time: numbers of waiting and running jobs, from the journal.
        use_over_time: CPUs in use, from the journal.
        machine_histories: history of single machines, from the journal.
        trial: returns the last canary trial for display; None: there was none.
        answers: cache of answers, shared by all clients.
        job_index: finds jobs by short forms of their names.
    """

    def __init__(
        self,
        core: Core,
        recording: Recording,
        publisher: Publisher,
        adapters: Callable[[], Mapping[str, Adapter]] = dict,
        levers: Callable[[], LeverRunner | None] = lambda: None,
    ) -> None:
        self.notes: list[str] = []
        self.loop_lag_s = 0.0
        self.is_ready = False
        self.failed_requests = 0
        self.own_clock = False
        self.scraping = asyncio.Lock()
        self.recording = recording
        self.publisher = publisher
        self.levers = levers
        self.waiting_reasons = WaitingReasons(adapters)
        self.state_words = StateWords(adapters)
        self.commands: CommandPort | None = None
        self.configured_mode: Callable[[], str] = lambda: self.core.config.mode
        self.mode_limit: Callable[[], ModeLimit | None] = lambda: None
        self.trial: Callable[[], TrialShown | None] = lambda: None
        self.start_s = 0.0
        self.use_over_time = KeptUseOverTime()
        self.machine_histories = MachineHistories()
        self.jobs_over_time = KeptJobsOverTime()
        self.twin = TwinWatch(recording.folder, lambda: self.own_clock)
        self.show(core)

    def show(self, core: Core) -> None:
        """Show this core and its metrics from now on."""
        self.core = core
        self._exporter = MetricsExporter(core)
        self.answers = SharedAnswers()
        self.job_index = JobIndex()
        self._snapshot: CachedValue[Snapshot] = CachedValue(cheap_s=SCRAPE_CHEAP_S)
        self._user_rows: dict[bool, CachedValue[list[UserRow]]] = {
            apart: CachedValue(cheap_s=SCRAPE_CHEAP_S) for apart in (False, True)
        }

    @property
    def journal(self) -> Path:
        """The file of the journal."""
        return self.recording.path

    def add_note(self, text: str) -> None:
        """Add a note for operators once; beyond a hundred the oldest is dropped."""
        if text not in self.notes:
            self.notes = [*self.notes, text][-_MAX_NOTES:]
            self.answers.forget()

    def note_refusal(self, why: str) -> None:
        """Note that a reload was refused; the next reload replaces this note."""
        kept = [note for note in self.notes if not note.startswith(_REFUSED)]
        self.notes = [*kept, f"{_REFUSED}{why}"]
        self.answers.forget()

    def names(self, shown: bool) -> Viewer:
        """Return the display of users to a client: by name or by pseudonym."""
        return Viewer(self.recording.pseudonyms, self.core.known_users, shown)

    def sentence(self) -> str:
        """Return a summary of the site and the policies, in one sentence."""
        figures = report(self.core.site, self.core.accounting)
        return sentence(self.core, figures, self.saving())

    def user_rows(self, apart: bool) -> list[UserRow]:
        """Return a row for each user of each VO with jobs now, from a cache; see `user_rows`."""
        return self._user_rows[apart].of(lambda: user_rows(self.core.site, apart))

    def twin_shown(self) -> dict[str, Any] | None:
        """Return the last result of the twin; None: there is none yet."""
        return twin_shown(self.twin.file, self.core.config, time.time())

    def expected_starts(self) -> ExpectedStarts:
        """Return the current expected starts of waiting jobs."""
        kept = kept_jobs(self.core, self.levers())
        return ExpectedStarts(self.twin, self.core, self.own_clock, kept)

    def saving(self) -> str:
        """Return the twin's estimated saving, in words."""
        return saving_text(self.twin_shown(), self.core.config, time.time())

    def ready(self) -> tuple[bool, list[str]]:
        """Return whether the daemon is ready, and the reasons if it is not."""
        reasons = [] if self.is_ready else ["still starting"]
        if self.is_ready and self.core.engine.silent:
            reasons.append("the history of the sources is being read")
        if self.recording.failure is not None:
            reasons.append(f"not recording: {self.recording.failure}")
        reasons += self.core.sources_down.values()
        return not reasons, reasons

    def metrics(self) -> Snapshot:
        """Return the values of all metrics, and reset the longest delay of the loop to 0."""
        return self._snapshot.of(self._metrics_now)

    def _metrics_now(self) -> Snapshot:
        lag_s, self.loop_lag_s = self.loop_lag_s, 0.0
        return self._exporter.take(
            self.recording.figures(),
            lag_s,
            self.publisher.figures(),
            self.failed_requests,
            self.start_s,
            levers_shown(self.levers()),
            self.twin,
        )


# -- shared answers --------------------------------------------------------------------------------
# Cache of answers for clients that ask the same at about the same time: encoded, compressed once.

MAX_ANSWERS: Final = 16
"""Largest number of cached answers."""
_LEVEL: Final = 6


class SharedAnswer:
    """Body of an answer, shared by several clients.

    Args:
        body: the uncompressed body.
    """

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._packed: bytes | None = None

    def packed(self) -> bytes:
        """Return the body compressed by gzip, compressed at the first call."""
        if self._packed is None:
            self._packed = gzip.compress(self.body, _LEVEL, mtime=0)
        return self._packed


class SharedAnswers:
    """Cache of answers by question, each for the lifetime of its `CachedValue`.

    Args:
        cost_s: returns CPU-seconds of this thread.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        cost_s: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cost_s = cost_s
        self._clock = clock
        self._by_question: OrderedDict[Hashable, CachedValue[SharedAnswer]] = OrderedDict()

    async def of(self, question: Hashable, make: Callable[[], Awaitable[bytes]]) -> SharedAnswer:
        """Return the answer, computed now or recently. Exceptions of `make` are not cached."""
        reused = self._by_question.get(question)
        if reused is None:
            reused = self._by_question[question] = CachedValue(self._cost_s, self._clock)
            if len(self._by_question) > MAX_ANSWERS:
                self._by_question.popitem(last=False)
        self._by_question.move_to_end(question)

        async def answer() -> SharedAnswer:
            return SharedAnswer(await make())

        return await reused.of_coroutine(answer)

    def forget(self) -> None:
        """Clear the cache after a manual change, so that the next client sees it."""
        self._by_question.clear()


# -- reused ----------------------------------------------------------------------------------------
# A cache for expensive results: recomputed at a bounded rate, shared by all callers.

T = TypeVar("T")
CHEAP_S: Final = 0.001
"""Cost in seconds below which a value is not cached, as usual on an ordinary site."""
SCRAPE_CHEAP_S: Final = 0.02
"""The same threshold for values with few callers, such as scrapers, which want new values."""
LIFETIME_FACTOR: Final = 50.0
"""Lifetime of a value as a multiple of its cost beyond the threshold.

So it takes a fiftieth of the loop, however many clients ask."""
MAX_LIFETIME_S: Final = 2.0
"""Longest lifetime, in seconds: the page's interval between two requests."""
MIN_LIFETIME_FACTOR: Final = 10.0
"""Smallest multiple, even beyond the longest lifetime: it takes at most a tenth of the loop."""


class CachedValue(Generic[T]):
    """A value that is computed on demand, and cached for a while if it was expensive.

    Args:
        cost_s: returns CPU-seconds of this thread: the work of others is not counted.
        clock: seconds that only grow.
        cheap_s: cost in seconds below which the value is computed at each call.
    """

    def __init__(
        self,
        cost_s: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
        cheap_s: float = CHEAP_S,
    ) -> None:
        self._cheap_s = cheap_s
        self._cost_s = cost_s
        self._clock = clock
        self._until_s = -inf
        self._held: list[T] = []

    def of(self, make: Callable[[], T]) -> T:
        """Return the value, computed now or recently. Exceptions of `make` are not cached."""
        for held in self._fresh():
            return held
        began_s = self._cost_s()
        return self._keep(make(), began_s)

    async def of_coroutine(self, make: Callable[[], Awaitable[T]]) -> T:
        """Return the value of a coroutine like `of`; while it waits, others' work is counted."""
        for held in self._fresh():
            return held
        began_s = self._cost_s()
        return self._keep(await make(), began_s)

    def _fresh(self) -> list[T]:
        """Return the value in a list while it is valid; an expired one is freed."""
        if self._held and self._clock() >= self._until_s:
            self._held = []
        return self._held

    def _keep(self, made: T, began_s: float) -> T:
        held_s = held_for_s(self._cost_s() - began_s, self._cheap_s)
        if held_s:
            self._until_s, self._held = self._clock() + held_s, [made]
        return made


def held_for_s(took_s: float, cheap_s: float = CHEAP_S) -> float:
    """Return the lifetime of a value that took so many seconds to compute.

    >>> held_for_s(0.0005), round(held_for_s(0.011), 3), held_for_s(0.101), round(held_for_s(1.001))
    (0.0, 0.5, 2.0, 10)
    """
    over_s = took_s - cheap_s
    if over_s <= 0:
        return 0.0
    return max(min(LIFETIME_FACTOR * over_s, MAX_LIFETIME_S), MIN_LIFETIME_FACTOR * over_s)


# -- starting view ---------------------------------------------------------------------------------
# View of a daemon that is still starting.

_KNOWN_AT_START: Final = ("start_ratio", "start_seconds", "mode", "build_info")
"""Metrics with values during the start. A counter at 0 would look like a reset."""


class StartingView:
    """Substitute for `DaemonView` until there is one.

    Args:
        progress: the progress of the start.
        mode: the configured mode.

    Attributes:
        view: the daemon's view, once it exists.
        scraping: held by the one scrape that is being rendered.
        failed_requests: see `DaemonView`, counted until then.
    """

    def __init__(self, progress: StartProgress, mode: str) -> None:
        self.progress = progress
        self.view: DaemonView | None = None
        self.scraping = asyncio.Lock()
        self.failed_requests = 0
        self._mode = mode

    def ready(self) -> tuple[bool, list[str]]:
        """Return False, and the progress as the reason."""
        return False, [self.progress.sentence]

    def names(self, shown: bool) -> Viewer:
        """Return the display of users; no users are known yet."""
        return Viewer(Pseudonyms(b""), KnownUsers(), shown)

    def metrics(self) -> Snapshot:
        """Return every declared metric, with values of those known during the start."""
        store = MetricStore({"version": [__version__], "python": [platform.python_version()]})
        store.choose_state("mode", self._mode)
        store.set("start_ratio", self.progress.ratio)
        store.set("start_seconds", time.monotonic() - self.progress.began_at)
        all_metrics, numbers, observations = store.snapshot()
        return Snapshot(
            all_metrics,
            {name: series if name in _KNOWN_AT_START else {} for name, series in numbers.items()},
            {name: {} for name in observations},
        )
