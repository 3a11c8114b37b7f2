"""Runs for policy tests: on a simulated campus or grid, or in shadow of a campus."""

import datetime as dt
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from typing import Any, ClassVar, Final, NamedTuple, Self

import msgspec
import numpy as np
from msgspec.structs import astuple

from outrider.api import Job, JobSpec, MachineSpec, Policy
from outrider.api.capabilities import Decides, Groups
from outrider.api.policy import PolicySettings
from outrider.api.site_view import SiteView
from outrider.engine import Engine, EventMerger, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.state.site import Site
from outrider.formats.campus.campus import Campus
from outrider.formats.workload import BATCH, INTERACTIVE, Workload
from outrider.model import events as ev
from outrider.model.decisions import NOWHERE, START, Choice, Decision, Names
from outrider.model.events import JOB_KINDS, KIND_NAMES, STARTED, TICK, Event, NamedEvent
from outrider.model.localtime import TraceTime, ZoneTime
from outrider.model.machines import ClusterSpec
from outrider.model.modes import FIRST_FIT, STRICT, Discipline
from outrider.model.utility import Constant, Linear, TimeUtility
from outrider.plugins.finding import stream
from outrider.replay.grid_run import GridRun
from outrider.replay.run import CampusRun, keep_nothing

SOURCE = "trace"
_START_DELAY_S = 0.5
_EPOCH_S = 1800.0


class Row(NamedTuple):
    """Compared part of a decision log row."""

    time_s: float
    job: str
    action: str
    machine: str | None
    cpus: int
    reason: str

    @classmethod
    def of(cls, decision: Decision, names: Names) -> Self:
        """Return the compared part of a decision; `names` are those of jobs and machines."""
        d = decision
        place = None if d.machine == NOWHERE else names.machine_names[d.machine]
        return cls(d.time_s, names.job_names[d.job], d.action, place, d.cpus, d.reason)


class AnyFreeMachine(Policy):
    """Current scheduler in tests: it starts the oldest job on any free machine."""

    name: ClassVar[str] = "any_free_machine"
    description: ClassVar[str] = "oldest job first, on any free machine"

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose any free machine; for more than one CPU the tightest that suffices."""
        if job.spec.cpus > 1:
            return super().choose(job, evaluation, view, may_defer)
        return Choice(view.draw(self.rng), "any")


def chance(name: str, seed: int = 0) -> random.Random:
    """Return the random stream of a policy of this name, as made by the commands."""
    return stream(seed, f"policy:{name}")


def incumbent(seed: int = 0) -> Policy:
    """Return a current scheduler for runs with policies in shadow."""
    return AnyFreeMachine(PolicySettings(), stream(seed, "testing:incumbent"))


def plans(policy: Policy) -> bool:
    """Return whether the policy plans whole passes; `Policy.choose` is never called then."""
    return policy.decides is Decides.PLAN


def evaluation(policy: Policy, job: Job, view: SiteView) -> Any:
    """Return the evaluation that the engine would pass to `Policy.choose` with this job."""
    return (
        policy.evaluate_group(policy.group_key(job, view), view)
        if isinstance(policy, Groups)
        else None
    )


def decisions_of(
    campus: Campus, policy: Policy, others: Sequence[Policy] = (), until_s: float | None = None
) -> list[Row]:
    """Return the decisions of a policy that acts on a campus, perhaps with others in shadow.

    A policy that plans acts on a grid derived from the campus: on a campus jobs only start.
    """
    decisions: list[Decision] = []
    policies = [policy, *others]
    trace = as_grid(campus) if plans(policy) else campus
    if isinstance(trace, Campus):
        CampusRun(trace, policies, decisions.append, until_s).run()
    else:
        GridRun(trace, policies, decisions.append, until_s).run()
    return [Row.of(decision, trace) for decision in decisions if decision.policy == policy.name]


def observed_events(campus: Campus) -> list[NamedEvent]:
    """Return the events that an adapter would yield for a campus under the current scheduler.

    A start comes half a second after the job could start, so that a shadow decides before it.
    """
    run = CampusRun(campus, [incumbent()], keep_nothing)
    events = [_named(event, campus) for event in run.stream() if event[1] != TICK]
    return sorted(events, key=lambda event: event[0])


def _named(event: Event, campus: Campus) -> NamedEvent:
    time_s, kind, subject, extra = event
    if kind == STARTED:
        machine, cpus = extra
        place = (campus.machine_names[machine], cpus)
        return time_s + _START_DELAY_S, kind, campus.job_names[subject], place
    names = campus.job_names if kind in JOB_KINDS else campus.machine_names
    return time_s, kind, names[subject], extra


class Shadow:
    """Policy in shadow of a stream of events, as in the daemon.

    Args:
        policy: the only candidate.
        clusters: declared clusters, in the order of their numbers.
        start: wall clock time of second 0.

    Attributes:
        rows: its decisions so far.
        site: the view that the policy gets.
    """

    def __init__(self, policy: Policy, clusters: Iterable[ClusterSpec], start: dt.datetime) -> None:
        clock = TraceTime(start)
        self.policy = policy
        self.rows: list[Row] = []
        self.site = Site(clock, list(clusters))
        self.runner = PolicyRunner(policy, False, _EPOCH_S)
        self._merger = EventMerger([SOURCE], lambda name: MachineSpec(inferred=True))
        accounting = Accounting(clock)
        self._engine = Engine(self.site, accounting, [self.runner], self._merger, self)

    def play(self, events: Iterable[NamedEvent], until_s: float | None = None) -> None:
        """Feed events in order, then advance time to `until_s`, or to the last event."""
        events = list(events)
        self._merger.arrive(SOURCE, events)
        end_s = events[-1][0] if until_s is None else until_s
        self._engine.feed(self._merger.seen(SOURCE, end_s))

    def save(self) -> bytes:
        """Return a snapshot, in the daemon's format."""
        return msgspec.msgpack.encode([self._merger.save(), self._engine.save()])

    def restore(self, saved: bytes) -> None:
        """Continue from a snapshot; only from one without pending events."""
        merger, engine = msgspec.msgpack.decode(saved)
        self._merger.restore(merger, tuple)
        self._engine.restore(engine)

    # -- decision log -------------------------------------------------------------------------

    def decided(self, decision: Decision, /) -> None:
        """Store a decision of the policy (`outrider.engine.DecisionLog`)."""
        self.rows.append(Row.of(decision, self._merger.normaliser))

    def ended(
        self, policy: str, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """Ignore the end of a run: outcomes are checked where the policy observes them."""


def events_until(events: Iterable[NamedEvent], time_s: float) -> list[NamedEvent]:
    """Return the events up to a time, inclusive."""
    return [event for event in events if event[0] <= time_s]


def events_after(events: Iterable[NamedEvent], time_s: float) -> Iterator[NamedEvent]:
    """Return the events after a time."""
    return (event for event in events if event[0] > time_s)


# -- grids -----------------------------------------------------------------------------------------
# Grid derived from a campus: for policies that preempt, shrink and resume, as no campus can.

_NEVER: Final = float("nan")
_REQUESTED_CPUS: Final = (1, 2, 3, 1, 2)
_ESTIMATES_S: Final = (900.0, 3600.0, 14_400.0, _NEVER)
_CLASSES: Final = (BATCH, BATCH, INTERACTIVE)


def as_grid(campus: Campus) -> Workload:
    """Return the jobs of a campus that complete, on one machine per cluster.

    Each machine has a CPU per computer of its cluster. A grid has no owners, no reboots and no
    kills. A job's request, estimate and class follow from its number only, and so reveal nothing
    of the future: two campuses that are equal until a fork become two grids that are.
    """
    ends = np.flatnonzero(~np.isnan(campus.run_s))
    numbers: list[int] = ends.tolist()
    rooms: list[int] = campus.machine_cluster.tolist()
    first = [rooms.index(room) for room in range(len(campus.clusters))]
    watts: list[float] = campus.active_w[first].tolist()
    return Workload(
        name=f"grid of {campus.name}",
        job_names=[campus.job_names[n] for n in numbers],
        submit_s=campus.submit_s[ends],
        run_s=campus.run_s[ends],
        cpus=np.array([_REQUESTED_CPUS[n % len(_REQUESTED_CPUS)] for n in numbers]),
        requested_s=np.full(len(ends), _NEVER),
        wait_s=np.full(len(ends), _NEVER),
        estimate_s=np.array([_ESTIMATES_S[n % len(_ESTIMATES_S)] for n in numbers]),
        user=[campus.user_names[campus.user[n]] for n in numbers],
        vo=[campus.vo_names[campus.vo[n]] for n in numbers],
        job_class=[_CLASSES[n % len(_CLASSES)] for n in numbers],
        machine_names=[campus.machine_names[machine] for machine in first],
        machines=[
            MachineSpec(cluster=spec.name, cpus=rooms.count(room), active_w=watts[room])
            for room, spec in enumerate(campus.clusters)
        ],
        start=campus.start,
    )


# -- hand site -------------------------------------------------------------------------------------
# Site controlled by a test: one policy acts on it, and started jobs run until the test ends them.


class KeptDecisions:
    """Recorder of an engine's decisions (`rows`) and ends of runs (`ends`), by number."""

    def __init__(self, site: Site) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.ends: list[tuple[Any, ...]] = []
        self._site = site

    def decided(self, decision: Decision, /) -> None:
        """Store a decision of the policy."""
        self.rows.append(astuple(decision)[:-1])

    def ended(
        self, policy: str, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """Store the end of a run."""
        self.ends.append(
            (self._site.now, policy, job.number, ending, reason, run_s, reward, on_policy)
        )


class HandSite:
    """Site with machines, jobs and times set by a test, and a policy that acts on them.

    ::

        site = HandSite(CoolestRoom, half_life_s=3600.0)
        site.machines(1, 4)
        site.submit(0, cpus=4)
        assert site.tick() == [0]

    Args:
        kind: the policy.
        discipline: which jobs may pass others in the queue.
        shares: target share of each VO; by default equal ones.
        **settings: of the policy, if they differ from its defaults.

    Attributes:
        policy: the acting policy, with the random stream that commands give it.
        site: the view that the policy gets.
        starts: (job, machine) in order.
        decision_log: its decisions, and the ends of runs.
        now: seconds.
    """

    def __init__(
        self, kind: type[Policy], discipline: Discipline = FIRST_FIT,
        shares: Mapping[str, float] | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        clock = ZoneTime("UTC")
        self.site = Site(clock, [])
        record = kind.settings_type(**settings) if settings else kind.settings_type()
        self.policy: Any = kind(record, chance(kind.name))  # each kind has its own methods
        self.runner = PolicyRunner(self.policy, True, 3600.0, discipline=discipline)
        self.decision_log = KeptDecisions(self.site)
        accounting = Accounting(clock, shares or {}, exact=True)
        self.engine = Engine(self.site, accounting, [self.runner], self, self.decision_log)
        self.starts: list[tuple[int, int]] = []
        self.now = 0.0
        self._to_start: list[tuple[int, int]] = []

    def start(self, job: int, machine: int) -> None:
        """Store a job that the engine starts."""
        self._to_start.append((job, machine))

    def wake_at(self, time_s: float) -> None:
        """Do nothing: the test itself calls `tick`."""

    def tell(self, kind: int, subject: int, extra: Any = None) -> None:
        """Feed an event that happens now."""
        self.engine.feed([(self.now, kind, subject, extra)])

    def machines(self, *cpus: int, **known: Any) -> None:
        """Let machines join, one for each number of CPUs."""
        for width in cpus:
            number = len(self.site.specs)
            self.tell(ev.JOINED, number, MachineSpec(cpus=width, **known))

    def submit(self, job: int, **spec: Any) -> None:
        """Let a job enter the queue."""
        self.tell(ev.SUBMITTED, job, JobSpec(**spec))

    def complete(self, job: int) -> None:
        """Let a running job end."""
        self.tell(ev.COMPLETED, job)

    def evict(self, job: int) -> None:
        """Evict a running job from its machine."""
        self.tell(ev.EVICTED, job, "owner")

    def tick(self, later_s: float = 0.0) -> list[int]:
        """Advance time, run a scheduling pass and apply it; return the started jobs in order."""
        self.now += later_s
        self.tell(ev.TICK, 0)
        started, self._to_start = self._to_start, []
        for job, machine in started:
            cpus = self.site.jobs[job].spec.cpus
            self.tell(ev.STARTED, job, (machine, cpus))
        self.starts += started
        return [job for job, _ in started]


# -- hand workload ---------------------------------------------------------------------------------
# Workloads written by hand, one job per line, and the starts of jobs under a policy.


class Asked(NamedTuple):
    """Job with its true run time, and the estimate for policies (None: the truth, nan: none)."""

    submit_s: float
    run_s: float
    cpus: int = 1
    estimate_s: float | None = None
    job_class: str = "batch"
    vo: str = "all"


def make_workload(machines: Sequence[int], jobs: Sequence[Asked]) -> Workload:
    """Return a workload; `machines` are the CPUs of each, jobs are named j0, j1, ..."""
    estimates = [job.run_s if job.estimate_s is None else job.estimate_s for job in jobs]
    return Workload(
        name="by hand",
        job_names=[f"j{number}" for number in range(len(jobs))],
        submit_s=np.array([job.submit_s for job in jobs], dtype=float),
        run_s=np.array([job.run_s for job in jobs], dtype=float),
        cpus=np.array([job.cpus for job in jobs], dtype=np.int64),
        requested_s=np.full(len(jobs), nan),
        wait_s=np.full(len(jobs), nan),
        estimate_s=np.array(estimates, dtype=float),
        user=["ann"] * len(jobs),
        vo=[job.vo for job in jobs],
        job_class=[job.job_class for job in jobs],
        machine_names=[f"m{number}" for number in range(len(machines))],
        machines=[MachineSpec(cpus=cpus) for cpus in machines],
    )


def started_at(
    workload: Workload, kind: type[Policy], discipline: Discipline = STRICT, **settings: Any
) -> dict[str, float]:
    """Return when each job first started, by name."""
    starts: dict[str, float] = {}

    def keep(decision: Decision) -> None:
        if decision.action == START:
            starts.setdefault(workload.job_names[decision.job], decision.time_s)

    policy = kind(kind.settings_type(**settings), chance(kind.name))
    GridRun(workload, [policy], keep, discipline=discipline).run()
    return starts


# -- planned ---------------------------------------------------------------------------------------

LINEAR: dict[str, TimeUtility] = {"batch": Linear(), "interactive": Constant()}
"""Vengerov's figure 1 for batch jobs; interactive ones represent those that never lose value."""


class Done(NamedTuple):
    """Result of a run: decisions (second, job, action, CPUs, reason), events and report."""

    rows: list[tuple[float, str, str, int, str]]
    events: dict[int, list[tuple[float, str, Any]]]
    report: dict[str, Any]

    def did(self, job: int, *actions: str) -> list[tuple[float, int]]:
        """Return when a job got one of these actions, and on how many CPUs."""
        name = f"j{job}"
        return [(t, cpus) for t, j, action, cpus, _ in self.rows if j == name and action in actions]

    def ended(self, job: int) -> float:
        """Return when a job completed."""
        return next(t for t, kind, _ in self.events[job] if kind == "completed")


def made(kind: type[Policy], **settings: Any) -> Policy:
    """Return a policy with its defaults, except for these settings."""
    return kind(kind.settings_type(**settings), chance(kind.name))


def played(
    policy: Policy,
    workload: Workload,
    utilities: dict[str, TimeUtility] | None = None,
    until_s: float | None = None,
) -> Done:
    """Let a policy act on a workload and return the result."""
    rows: list[tuple[float, str, str, int, str]] = []
    job_events: dict[int, list[tuple[float, str, Any]]] = {}

    def keep(decision: Decision) -> None:
        d = decision
        rows.append((d.time_s, workload.job_names[d.job], d.action, d.cpus, d.reason))

    run = GridRun(workload, [policy], keep, until_s=until_s, utilities=utilities or LINEAR)
    for time_s, kind, subject, extra in run.stream():
        job_events.setdefault(subject, []).append((time_s, KIND_NAMES[kind], extra))
    return Done(rows, job_events, run.run())


def on_one_machine(policy: Policy, cpus: int, *jobs: Asked, **more: Any) -> Done:
    """Let a policy act on jobs written by hand, on one machine."""
    return played(policy, make_workload([cpus], jobs), **more)
