"""Demonstrations: what a policy in training watches. One who acts, or a record of who acted."""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from outrider.api.policy import Policy
from outrider.engine import Engine, EventMerger, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.state.site import Site
from outrider.formats.workload import DECLARED, Workload
from outrider.journal import Journal
from outrider.journal.journal_events import JournalEvents
from outrider.model.errors import TraceError
from outrider.model.events import REMOVED, Event
from outrider.model.localtime import ZoneTime
from outrider.plugins.making import make_policy
from outrider.replay.grid_run import RECONSIDER_S, GridRun
from outrider.replay.ingestion import Ingestion, NoDecisionLog
from outrider.replay.keeping import keep_nothing
from outrider.replay.log_files import LogFile
from outrider.replay.recorded_run import RECORDED, RecordedRun
from outrider.simulation.truth_told import truth_told

_CUT_OFF: Final = "unknown"
"""The reason for which those jobs leave: the record ends before them."""


class ShadowedRun(NamedTuple):
    """A demonstration beside a learner: the engine, the learner's runner, what to show."""

    engine: Engine
    runner: PolicyRunner
    show: Callable[[], object]

    @property
    def site(self) -> Site:
        """What the learner looks at."""
        return self.engine.site

    def watch(self) -> None:
        """See all of it. Jobs that are there at the end are taken away: nobody tells theirs."""
        self.show()
        now = self.site.now
        self.engine.feed([(now, REMOVED, number, _CUT_OFF) for number in list(self.site.jobs)])


class Demonstration(Protocol):
    """Something to watch.

    Attributes:
        name: of the trace.
        behaviour: whose decisions are watched.
        class_source: where the classes of jobs come from; known once it was shown.
        truth: what of the truth its jobs tell (`truth_told`); known once it was shown.
    """

    name: str
    behaviour: str
    class_source: str
    truth: Sequence[str]

    def beside(self, learner: Policy) -> ShadowedRun:
        """Let a policy watch from the shadow. Raises `TraceError`, `ConfigurationError`."""
        ...


class WorkloadDemonstration:
    """A workload under a policy, or as its own scheduler ran it.

    Args:
        make: reads or draws the workload, when it is its turn.
        name: of the workload.
        behaviour: name of a policy, or `RECORDED`.
        until_s: watch until this second only; None: to the end.
    """

    def __init__(
        self,
        make: Callable[[], Workload],
        name: str,
        behaviour: str,
        until_s: float | None = None,
    ) -> None:
        self.name = name
        self.behaviour = behaviour
        self.class_source = DECLARED
        self.truth: Sequence[str] = ()
        self._make = make
        self._until_s = until_s

    def beside(self, learner: Policy) -> ShadowedRun:
        """Beside the behaviour policy, on the same engine."""
        workload = self._make()
        self.class_source = workload.class_source
        self.truth = truth_told(workload.class_source, workload.estimate_source)
        if self.behaviour == RECORDED:
            recorded = RecordedRun(workload, [learner], keep_nothing, self._until_s, exact=False)
            return ShadowedRun(recorded.engine, recorded.runners[0], recorded.run)
        behaviour = make_policy(self.behaviour, {}, 0, f"--behaviour {self.behaviour}")
        behaviour.wants_scores = False
        run = GridRun(workload, [behaviour, learner], keep_nothing, self._until_s, exact=False)
        return ShadowedRun(run.engine, run.runners[1], run.run)


class LogsDemonstration:
    """What a batch system wrote in its logs, merged by time.

    Args:
        files: read from their beginning when it is their turn.
    """

    def __init__(self, files: list[LogFile]) -> None:
        self.name = ", ".join(str(file.path) for file in files)
        self.behaviour = RECORDED
        self.class_source = DECLARED
        self.truth: Sequence[str] = ()
        self._files = files

    def beside(self, learner: Policy) -> ShadowedRun:
        """Beside the scheduler that was."""
        ingestion = Ingestion(self._files)
        return _beside_a_record(learner, ingestion.merger, ingestion.events)


class JournalDemonstration:
    """What a daemon saw: the inputs of its journal, even while it runs.

    Args:
        path: of the journal.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.behaviour = RECORDED
        self.class_source = DECLARED
        self.truth: Sequence[str] = ()
        self._path = path

    def beside(self, learner: Policy) -> ShadowedRun:
        """Beside the scheduler that was."""
        recorded = JournalEvents()
        return _beside_a_record(learner, recorded.merger, lambda: self._events(recorded))

    def _events(self, recorded: JournalEvents) -> Iterator[Event]:
        with Journal(self._path, read_only=True) as journal:
            yield from recorded.all_of(journal)
        if recorded.told_s == -inf:
            raise TraceError(
                f"{self._path}: holds no events of a site; right would be the journal of a daemon "
                "(what a replay writes are decisions only)"
            )


def _beside_a_record(
    learner: Policy, merger: EventMerger, events: Callable[[], Iterator[Event]]
) -> ShadowedRun:
    """An engine without anybody who acts, fed with what was recorded."""
    utc = ZoneTime("UTC")
    site = Site(utc, [])
    runner = PolicyRunner(learner, acting=False, reconsider_s=RECONSIDER_S)
    engine = Engine(site, Accounting(utc), [runner], _NoLaterLooks(merger), NoDecisionLog())
    return ShadowedRun(engine, runner, lambda: engine.feed(events()))


class _NoLaterLooks:
    """An merger that ticks when something happens only.

    Nobody acts on what a learner would do, and looking again at a job that the record never tells
    the end of would go on for ever.
    """

    def __init__(self, merger: EventMerger) -> None:
        self._merger = merger

    def start(self, job: int, machine: int) -> None:
        """Nothing starts: the record says what did."""

    def wake_at(self, time_s: float) -> None:
        """A tick at the present moment is delivered, a later one is not."""
        if time_s <= self._merger.now:
            self._merger.wake_at(time_s)
