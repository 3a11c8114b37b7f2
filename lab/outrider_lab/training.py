"""Training before going live: a policy watches another decide, and what it learned is kept.

It sits in shadow and learns as it would beside a live site, through `observe`; nobody acts on
what it would do. Who decides is the behaviour policy: any on workloads (Perez et al. 2008, III.C:
an early deadline first policy), or the site's own scheduler in what was recorded of it (their
conclusion: calibrated "off-line by using the results of a real scheduler").
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from outrider import __version__
from outrider.api.capabilities import Learns
from outrider.api.policy import Policy
from outrider.engine import Engine, EventMerger, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.state.site import Site
from outrider.formats.workload import DECLARED, Workload
from outrider.journal import Journal
from outrider.journal.journal_events import JournalEvents
from outrider.model.errors import ConfigurationError, TraceError
from outrider.model.events import REMOVED, Event
from outrider.model.localtime import ZoneTime
from outrider.plugins.finding import make_policy
from outrider.replay.grid_run import RECONSIDER_S, RECORDED, GridRun, RecordedRun
from outrider.replay.log_files import Ingestion, LogFile, NoDecisionLog
from outrider.replay.run import keep_nothing
from outrider.replay.trials import effective_settings
from outrider.simulation.estimates import oracle_used

# -- demonstrations --------------------------------------------------------------------------------
# Demonstrations: what a policy in training watches. One who acts, or a record of who acted.

_CUT_OFF: Final = "unknown"
"""The reason for which those jobs leave: the record ends before them."""


class ShadowedRun(NamedTuple):
    """A demonstration beside a learner: the engine, the learner's runner, what to show."""

    engine: Engine
    runner: PolicyRunner
    show: Callable[[], object]

    @property
    def site(self) -> Site:
        """Site that the learner reads."""
        return self.engine.site

    def watch(self) -> None:
        """Show all of it; remove jobs that remain at the end, whose ends are unknown."""
        self.show()
        now = self.site.now
        self.engine.feed([(now, REMOVED, number, _CUT_OFF) for number in list(self.site.jobs)])


class Demonstration(Protocol):
    """Source of decisions that a learner can watch.

    Attributes:
        name: of the trace.
        behaviour: the policy whose decisions are watched.
        class_source: where the classes of jobs come from; known once it was shown.
        truth: what of the truth its jobs tell (`oracle_used`); known once it was shown.
    """

    name: str
    behaviour: str
    class_source: str
    truth: Sequence[str]

    def shadow(self, learner: Policy) -> ShadowedRun:
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

    def shadow(self, learner: Policy) -> ShadowedRun:
        """Let a policy shadow the behaviour policy, on the same engine."""
        workload = self._make()
        self.class_source = workload.class_source
        self.truth = oracle_used(workload.class_source, workload.estimate_source)
        if self.behaviour == RECORDED:
            recorded = RecordedRun(workload, [learner], keep_nothing, self._until_s, exact=False)
            return ShadowedRun(recorded.engine, recorded.runners[0], recorded.run)
        behaviour = make_policy(self.behaviour, {}, 0, f"--behaviour {self.behaviour}")
        behaviour.wants_scores = False
        run = GridRun(workload, [behaviour, learner], keep_nothing, self._until_s, exact=False)
        return ShadowedRun(run.engine, run.runners[1], run.run)


class LogsDemonstration:
    """Logs of a batch system, merged by time.

    Args:
        files: read from their beginning when it is their turn.
    """

    def __init__(self, files: list[LogFile]) -> None:
        self.name = ", ".join(str(file.path) for file in files)
        self.behaviour = RECORDED
        self.class_source = DECLARED
        self.truth: Sequence[str] = ()
        self._files = files

    def shadow(self, learner: Policy) -> ShadowedRun:
        """Let a policy shadow the scheduler that wrote the logs."""
        ingestion = Ingestion(self._files)
        return _shadow_of_record(learner, ingestion.merger, ingestion.events)


class JournalDemonstration:
    """Inputs in the journal of a daemon, even while it runs.

    Args:
        path: of the journal.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.behaviour = RECORDED
        self.class_source = DECLARED
        self.truth: Sequence[str] = ()
        self._path = path

    def shadow(self, learner: Policy) -> ShadowedRun:
        """Let a policy shadow the recorded scheduler."""
        recorded = JournalEvents()
        return _shadow_of_record(learner, recorded.merger, lambda: self._events(recorded))

    def _events(self, recorded: JournalEvents) -> Iterator[Event]:
        with Journal(self._path, read_only=True) as journal:
            yield from recorded.all_of(journal)
        if recorded.latest_event_s == -inf:
            raise TraceError(
                f"{self._path}: holds no events of a site; expected the journal of a daemon "
                "(what a replay writes are decisions only)"
            )


def _shadow_of_record(
    learner: Policy, merger: EventMerger, events: Callable[[], Iterator[Event]]
) -> ShadowedRun:
    """Return an engine without an acting scheduler, fed with recorded events."""
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
        """Start nothing: the record contains the starts."""

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at the present moment; ignore a later one."""
        if time_s <= self._merger.now:
            self._merger.wake_at(time_s)


# -- training --------------------------------------------------------------------------------------

FIRST_SEED: Final = 10_000
"""Synthetic workloads from this seed on train; those below judge."""
_START: Final = "start"
_AFRESH: Final = "none"


class Learner(NamedTuple):
    """Policy to train, with its settings.

    Attributes:
        policy: name of the plugin.
        settings: given settings; they win over the preset's. A policy with a setting ``start``
            starts from ``none`` unless another is given.
        preset: one of the policy's named settings.
        seed: of its chance.
    """

    policy: str
    settings: Mapping[str, Any] = {}
    preset: str | None = None
    seed: int = 0

    def make(self, demonstration: int = 0) -> Policy:
        """Return a new policy; each demonstration has its own seed.

        Raises:
            PluginError: it cannot be loaded.
            ConfigurationError: a setting or the preset is wrong, or it never learns.
        """
        where = f"train {self.policy}"
        afresh = {_START: _AFRESH} if self._has_a_start() else {}
        settings = {**afresh, **self.settings}
        policy = make_policy(self.policy, settings, self.seed + demonstration, where, self.preset)
        if not isinstance(policy, Learns):
            raise ConfigurationError(
                f"{where}: this policy does not learn from runs; expected one that does"
            )
        policy.wants_scores = False
        return policy

    def _has_a_start(self) -> bool:
        from outrider.plugins.finding import load_policy

        return _START in load_policy(self.policy).settings_type.__struct_fields__


class Training(NamedTuple):
    """Result of a training.

    Attributes:
        state: what the policy says another one may start from (`Learns.start_state`), or all that
            it saves.
        runs: that it learned from.
        about: who was trained by whom on what, as plain data.
    """

    state: dict[str, Any]
    runs: int
    about: dict[str, Any]


def train(
    learner: Learner,
    demonstrations: Sequence[Demonstration],
    progress: Callable[[float], None] | None = None,
) -> Training:
    """Let a policy watch every demonstration, one after the other; what it learned goes on with it.

    Raises:
        TraceError: a trace cannot be read, or the policy learned from no run at all.
        ConfigurationError: the policy cannot go on from one trace to the next.
    """
    if not demonstrations:
        raise ConfigurationError(f"train {learner.policy}: no trace to learn from")
    saved: dict[str, Any] | None = None
    runs = 0
    for number, demonstration in enumerate(demonstrations):
        policy = learner.make(number)
        shadowed = demonstration.shadow(policy)
        if saved is not None:
            _go_on(policy, saved, shadowed.site, demonstration)
        shadowed.watch()
        runs += shadowed.runner.reward_n
        saved = policy.save(shadowed.site)
        if progress is not None:
            progress((number + 1) / len(demonstrations))
    if not runs:
        names = ", ".join(demonstration.name for demonstration in demonstrations)
        raise TraceError(
            f"{names}: {learner.policy} learned from no run; expected traces in which runs "
            "begin and end, and a policy with learning switched on"
        )
    site = shadowed.site
    started = policy.start_state(site) if isinstance(policy, Learns) else None
    settings = effective_settings(policy, shadowed.runner.reconsider_s)
    about = {
        "policy": learner.policy,
        "preset": learner.preset,
        "settings": settings,
        "fingerprint": fingerprint(settings),
        "outrider": __version__,
        "seed": learner.seed,
        "behaviour_policies": sorted({demonstration.behaviour for demonstration in demonstrations}),
        "class_sources": sorted({demonstration.class_source for demonstration in demonstrations}),
        "truth": list(
            dict.fromkeys(
                label for demonstration in demonstrations for label in demonstration.truth
            )
        ),
        "traces": [demonstration.name for demonstration in demonstrations],
        "runs": runs,
    }
    return Training(policy.save(site) if started is None else started, runs, about)


def fingerprint(settings: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the settings as JSON with sorted keys: the same anywhere."""
    return hashlib.sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()


def write_start(training: Training, path: Path) -> None:
    """Write a start file: the state, and under ``trained`` where it comes from.

    The same training gives the same bytes (on the same processor architecture and numpy).

    Raises:
        ConfigurationError: it cannot be written.
    """
    text = msgspec.json.encode({**training.state, "trained": training.about}, order="sorted")
    try:
        path.write_bytes(msgspec.json.format(text, indent=0) + b"\n")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be written: {error.strerror}") from error


def _go_on(policy: Policy, saved: dict[str, Any], site: Any, demonstration: Demonstration) -> None:
    try:
        policy.restore(saved, site)
    except ValueError as error:
        raise ConfigurationError(
            f"train {policy.name}: what it learned does not fit {demonstration.name}: {error}; "
            "expected traces of one site"
        ) from error
