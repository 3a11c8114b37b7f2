"""Runs for policy tests: acting on a simulated campus or grid, or in shadow beside a campus."""

import datetime as dt
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final, NamedTuple, Self

import msgspec
import numpy as np

from outrider.api.capabilities import Decides, Groups
from outrider.api.policy import Policy, PolicySettings
from outrider.api.site_view import SiteView
from outrider.engine import Engine, EventMerger, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.state.site import Site
from outrider.formats.campus.campus import Campus
from outrider.formats.workload import BATCH, INTERACTIVE, Workload
from outrider.model.clusters import ClusterSpec
from outrider.model.decisions import NOWHERE, Choice, Decision, Names
from outrider.model.events import JOB_KINDS, STARTED, TICK, Event, NamedEvent
from outrider.model.jobs import Job
from outrider.model.localtime import TraceTime
from outrider.model.machines import MachineSpec
from outrider.plugins.random_streams import stream
from outrider.replay.grid_run import GridRun
from outrider.replay.keeping import keep_nothing
from outrider.replay.run import CampusRun

SOURCE = "trace"
_START_DELAY_S = 0.5
_EPOCH_S = 1800.0


class Row(NamedTuple):
    """The compared part of a ledger row."""

    time_s: float
    job: str
    action: str
    machine: str | None
    cpus: int
    reason: str

    @classmethod
    def of(cls, decision: Decision, names: Names) -> Self:
        """The compared part of a decision; `names` are those of jobs and machines."""
        d = decision
        place = None if d.machine == NOWHERE else names.machine_names[d.machine]
        return cls(d.time_s, names.job_names[d.job], d.action, place, d.cpus, d.reason)


class AnyFreeMachine(Policy):
    """The incumbent in tests: the oldest job, on any free machine."""

    name: ClassVar[str] = "any_free_machine"
    description: ClassVar[str] = "oldest job first, on any free machine"

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Any free machine; of more than one CPU the tightest that suffices."""
        if job.spec.cpus > 1:
            return super().choose(job, evaluation, view, may_defer)
        return Choice(view.draw(self.rng), "any")


def chance(name: str, seed: int = 0) -> random.Random:
    """The random stream of a policy of this name, as the commands make it."""
    return stream(seed, f"policy:{name}")


def incumbent(seed: int = 0) -> Policy:
    """An incumbent to run policies in shadow of."""
    return AnyFreeMachine(PolicySettings(), stream(seed, "testing:incumbent"))


def plans(policy: Policy) -> bool:
    """Whether the policy plans whole passes; `Policy.choose` is never asked then."""
    return policy.decides is Decides.PLAN


def evaluation(policy: Policy, job: Job, view: SiteView) -> Any:
    """The evaluation that the engine would pass to `Policy.choose` with this job."""
    return (
        policy.evaluate_group(policy.group_key(job, view), view)
        if isinstance(policy, Groups)
        else None
    )


def decisions_of(
    campus: Campus, policy: Policy, others: Sequence[Policy] = (), until_s: float | None = None
) -> list[Row]:
    """The decisions of a policy that acts on a campus, perhaps with others in shadow.

    A policy that plans acts on the grid made of the campus: on a campus jobs can only be started.
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
    """Events that an adapter would yield for a campus under the incumbent's decisions.

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
    """A policy in shadow beside a stream of events, as in the daemon.

    Args:
        policy: the only candidate.
        clusters: declared, in the order that gives them their numbers.
        start: wall clock of second 0.

    Attributes:
        rows: its decisions so far.
        site: the view that it sees.
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
        """A snapshot, as the daemon writes it."""
        return msgspec.msgpack.encode([self._merger.save(), self._engine.save()])

    def restore(self, saved: bytes) -> None:
        """Go on from a snapshot; only from one without pending events."""
        merger, engine = msgspec.msgpack.decode(saved)
        self._merger.restore(merger, tuple)
        self._engine.restore(engine)

    # -- decision log -------------------------------------------------------------------------

    def decided(self, decision: Decision, /) -> None:
        """A decision was made (`outrider.engine.DecisionLog`)."""
        self.rows.append(Row.of(decision, self._merger.normaliser))

    def ended(
        self, policy: str, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """Ignored: outcomes are checked where the policy observes them."""


def events_until(events: Iterable[NamedEvent], time_s: float) -> list[NamedEvent]:
    """The events up to a time, inclusive."""
    return [event for event in events if event[0] <= time_s]


def events_after(events: Iterable[NamedEvent], time_s: float) -> Iterator[NamedEvent]:
    """The events after a time."""
    return (event for event in events if event[0] > time_s)


# -- grids -----------------------------------------------------------------------------------------
# The grid made of a campus: for policies that preempt, shrink and resume, as no campus can.

_NEVER: Final = float("nan")
_REQUESTED_CPUS: Final = (1, 2, 3, 1, 2)
_ESTIMATES_S: Final = (900.0, 3600.0, 14_400.0, _NEVER)
_CLASSES: Final = (BATCH, BATCH, INTERACTIVE)


def as_grid(campus: Campus) -> Workload:
    """The jobs of a campus that complete; each cluster becomes one machine with a CPU per computer.

    A grid has no owners, no reboots and no kills. A job's request, estimate and class follow from
    its number only, and so reveal nothing of the future: two campuses that are equal until a fork
    become two grids that are.
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
