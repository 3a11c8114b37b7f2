"""What the web may see of the daemon."""

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
from outrider.service.core.user_privacy import PersonalVos, Pseudonyms, UserNames
from outrider.service.journal.recording import Recording
from outrider.service.journal.restart import StartProgress
from outrider.service.journal.trial_record import TrialShown
from outrider.service.metrics import MetricStore, Snapshot
from outrider.service.metrics.exporter import MetricsExporter
from outrider.service.mqtt.publisher import Publisher
from outrider.service.twin.watch import TwinWatch
from outrider.service.views.commands import levers_shown
from outrider.service.views.expected_starts import ExpectedStarts
from outrider.service.views.one_machine import MachineHistories
from outrider.service.views.over_time import JobsOverTime, UseOverTime
from outrider.service.views.status import sentence
from outrider.service.views.twin import saving_text, twin_shown
from outrider.service.views.users_and_vos import user_rows
from outrider.service.views.waiting_reasons import WaitingReasons

_REFUSED: Final = "reload refused: "
_MOST_NOTES: Final = 100
"""Notes that name an error's own words may be new each time; the oldest give way."""


class DaemonView:
    """The core that is in place now, the ledger beside it, and what the supervisor notes.

    Args:
        core: replaced by `show` when a reload has built another.
        recording: the ledger.
        publisher: tells a broker of it.
        adapters: those in force, by label.
        levers: what carries decisions out, in a mode that acts.

    Attributes:
        notes: what an operator should know, one sentence each.
        loop_lag_s: longest delay of the event loop since the last scrape, seconds.
        failed_requests: requests answered with 500, because a handler raised.
        is_ready: the sources are being read.
        start_s: how long the start took, seconds.
        own_clock: a simulated site that lives on a clock of its own.
        scraping: held by the one scrape that is being rendered.
        waiting_reasons: asks the batch systems why a job waits.
        state_words: what the batch systems call the states of jobs.
        commands: carries out commands; None until the sources are being read.
        configured_mode: the configuration's, which a limit may be below.
        twin: what the process that asks the twin has written down.
        mode_limit: what lowers the mode; None: nothing does.
        jobs_over_time: how many waited and ran, by the journal.
        use_over_time: CPUs in use, by the journal.
        machine_histories: what the journal holds of one machine.
        trial: the last canary trial, as it is shown; None: there was none.
        answers: those that clients who ask the same share.
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
        self.use_over_time = UseOverTime()
        self.machine_histories = MachineHistories()
        self.jobs_over_time = JobsOverTime()
        self.twin = TwinWatch(recording.folder, lambda: self.own_clock)
        self.show(core)

    def show(self, core: Core) -> None:
        """From now on this core is seen, and its metrics."""
        self.core = core
        self._exporter = MetricsExporter(core)
        self.answers = SharedAnswers()
        self._snapshot: Reused[Snapshot] = Reused(cheap_s=FEW_ASK_S)
        self._user_rows: Reused[list[dict[str, Any]]] = Reused(cheap_s=FEW_ASK_S)

    @property
    def journal(self) -> Path:
        """The file of the journal."""
        return self.recording.path

    def add_note(self, text: str) -> None:
        """Show this to the operator, once; of a hundred, the oldest gives way."""
        if text not in self.notes:
            self.notes = [*self.notes, text][-_MOST_NOTES:]
            self.answers.forget()

    def note_refusal(self, why: str) -> None:
        """A reload was refused; the next one, refused or not, takes the place of this note."""
        kept = [note for note in self.notes if not note.startswith(_REFUSED)]
        self.notes = [*kept, f"{_REFUSED}{why}"]
        self.answers.forget()

    def names(self, shown: bool) -> UserNames:
        """How users are shown to a client: by their names, or by pseudonyms."""
        return UserNames(self.recording.pseudonyms, self.core.personal_vos, shown)

    def sentence(self) -> str:
        """What the daemon saw and thinks, in one sentence."""
        figures = report(self.core.site, self.core.accounting)
        return sentence(self.core, figures, self.saving())

    def user_rows(self) -> list[dict[str, Any]]:
        """A row for each user of each VO who has jobs now, as `views.users.user_rows`."""
        return self._user_rows.of(lambda: user_rows(self.core.site))

    def twin_shown(self) -> dict[str, Any] | None:
        """What the twin last answered; None: nothing yet."""
        return twin_shown(self.twin.file, self.core.config, time.time())

    def expected_starts(self) -> ExpectedStarts:
        """Return when jobs that wait are expected to start, as it is said now."""
        return ExpectedStarts(self.twin, self.core, self.own_clock)

    def saving(self) -> str:
        """The same in words."""
        return saving_text(self.twin_shown(), self.core.config, time.time())

    def ready(self) -> tuple[bool, list[str]]:
        """Return whether the daemon does its work, and if not, why."""
        reasons = [] if self.is_ready else ["still starting"]
        if self.recording.failure is not None:
            reasons.append(f"not recording: {self.recording.failure}")
        reasons += self.core.sources_down.values()
        return not reasons, reasons

    def metrics(self) -> Snapshot:
        """The values of all metrics now. The longest delay of the loop begins again at 0."""
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
# One answer for all who ask the same at about the same time: made, encoded, compressed once.

MOST: Final = 16
"""So many questions are remembered at most."""
_LEVEL: Final = 6


class SharedAnswer:
    """The body of an answer.

    Args:
        body: as it is sent to clients that take it as it is.
    """

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._packed: bytes | None = None

    def packed(self) -> bytes:
        """The same, compressed by gzip when it is first asked for."""
        if self._packed is None:
            self._packed = gzip.compress(self.body, _LEVEL, mtime=0)
        return self._packed


class SharedAnswers:
    """Answers by what was asked, as long as `Reused` holds them.

    Args:
        cost_s: CPU-seconds of this thread.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        cost_s: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cost_s = cost_s
        self._clock = clock
        self._by_question: OrderedDict[Hashable, Reused[SharedAnswer]] = OrderedDict()

    async def of(self, question: Hashable, make: Callable[[], Awaitable[bytes]]) -> SharedAnswer:
        """The answer, made now or a moment ago. What `make` raises is kept by nobody."""
        reused = self._by_question.get(question)
        if reused is None:
            reused = self._by_question[question] = Reused(self._cost_s, self._clock)
            if len(self._by_question) > MOST:
                self._by_question.popitem(last=False)
        self._by_question.move_to_end(question)

        async def answer() -> SharedAnswer:
            return SharedAnswer(await make())

        return await reused.of_coroutine(answer)

    def forget(self) -> None:
        """Something was changed by hand: who asks next sees it."""
        self._by_question.clear()


# -- reused ----------------------------------------------------------------------------------------
# What costs much to make is made seldom, and shown to all who ask meanwhile.

T = TypeVar("T")
CHEAP_S: Final = 0.001
"""What costs less is made anew each time: nobody sees anything old on an ordinary site."""
FEW_ASK_S: Final = 0.02
"""The same of what few ask for, as scrapers of metrics, which want the newest."""
PAUSES: Final = 50.0
"""So many times as long as what it cost beyond that it is shown: it takes a fiftieth of the loop,
however many clients ask."""
LONGEST_S: Final = 2.0
"""But for no longer than until the page asks again."""
FEWEST_PAUSES: Final = 10.0
"""Unless a tenth of the loop would not be enough for it otherwise."""


class Reused(Generic[T]):
    """A value that is made when somebody asks, unless it was costly and is fresh.

    Args:
        cost_s: CPU-seconds of this thread: what others do meanwhile makes nothing older.
        clock: seconds that only grow.
        cheap_s: what costs less is made anew each time.
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
        """The value, made now or a moment ago. What `make` raises is kept by nobody."""
        for held in self._fresh():
            return held
        began_s = self._cost_s()
        return self._keep(make(), began_s)

    async def of_coroutine(self, make: Callable[[], Awaitable[T]]) -> T:
        """The same of a coroutine. Where it waits, the work of others counts as its cost."""
        for held in self._fresh():
            return held
        began_s = self._cost_s()
        return self._keep(await make(), began_s)

    def _fresh(self) -> list[T]:
        """The value that is still shown, if there is one; what is old is not kept in memory."""
        if self._held and self._clock() >= self._until_s:
            self._held = []
        return self._held

    def _keep(self, made: T, began_s: float) -> T:
        held_s = held_for_s(self._cost_s() - began_s, self._cheap_s)
        if held_s:
            self._until_s, self._held = self._clock() + held_s, [made]
        return made


def held_for_s(took_s: float, cheap_s: float = CHEAP_S) -> float:
    """For how long something is shown that took so many seconds to make.

    >>> held_for_s(0.0005), round(held_for_s(0.011), 3), held_for_s(0.101), round(held_for_s(1.001))
    (0.0, 0.5, 2.0, 10)
    """
    over_s = took_s - cheap_s
    if over_s <= 0:
        return 0.0
    return max(min(PAUSES * over_s, LONGEST_S), FEWEST_PAUSES * over_s)


# -- starting view ---------------------------------------------------------------------------------
# What the web may see of a daemon that is still starting.

_TOLD: Final = ("start_ratio", "start_seconds", "mode", "build_info")
"""Metrics with values at the start. A counter at 0 would be taken for one that began again."""


class StartingView:
    """Stands in for `DaemonView` until there is one.

    Args:
        progress: how far the start has come.
        mode: the configured mode.

    Attributes:
        view: what may be seen of the daemon, once it is there.
        scraping: held by the one scrape that is being rendered.
        failed_requests: as in `DaemonView`, until then.
    """

    def __init__(self, progress: StartProgress, mode: str) -> None:
        self.progress = progress
        self.view: DaemonView | None = None
        self.scraping = asyncio.Lock()
        self.failed_requests = 0
        self._mode = mode

    def ready(self) -> tuple[bool, list[str]]:
        """It is not, and why."""
        return False, [self.progress.sentence]

    def names(self, shown: bool) -> UserNames:
        """How users are shown: nothing is known of any yet."""
        return UserNames(Pseudonyms(b""), PersonalVos(), shown)

    def metrics(self) -> Snapshot:
        """Every declared metric, of which those have values that are known at the start."""
        store = MetricStore({"version": [__version__], "python": [platform.python_version()]})
        store.choose_state("mode", self._mode)
        store.set("start_ratio", self.progress.ratio)
        store.set("start_seconds", time.monotonic() - self.progress.began_at)
        all_metrics, numbers, observations = store.snapshot()
        return Snapshot(
            all_metrics,
            {name: series if name in _TOLD else {} for name, series in numbers.items()},
            {name: {} for name in observations},
        )
