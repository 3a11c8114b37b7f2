"""Acting on a simulated campus: what was asked for a while, and an incumbent that heeds it.

As beside a real batch system, Outrider only leaves notes that lapse. The incumbent matches jobs in
cycles, and looks at the notes as it does: a deferred job stays in the queue, one that is to start
goes to the machine that was decided for, or to another of its group; where that has none, to any.
"""

from collections.abc import Callable, Iterator, Sequence
from math import floor, inf
from typing import Any, Final, NamedTuple

from outrider.api import (
    Choice,
    ConfigurationError,
    DecisionRow,
    Groups,
    Job,
    Learns,
    Lever,
    Listens,
    Orders,
    PeerError,
    Plans,
    Policy,
    Ranks,
    SiteView,
    events,
)
from outrider.engine.state.site import Site
from outrider.formats.campus.campus import Campus
from outrider.model.decisions import DEFER, NOWHERE
from outrider.model.jobs import QUEUED
from outrider.replay.run import CampusRun

_PHASE_S: Final = 0.5
"""Of the cycles: beside full seconds, on which reboots and shifts fall."""
_SAME_S: Final = 1e-3
_MORE: Final = (Groups, Learns, Listens, Orders, Plans, Ranks)


class _Lease(NamedTuple):
    action: str
    machine: str | None
    until_s: float


class LeaseBoard:
    """What Outrider asked for, by job, until when; all times are seconds of the campus.

    Args:
        cycle_s: between two matchings; 0: nothing can be asked for.

    Attributes:
        now_s: the present.
    """

    def __init__(self, cycle_s: float) -> None:
        self.cycle_s = cycle_s
        self.now_s = -inf
        self.is_queued: Callable[[str], bool] = lambda job: False
        self._leases: dict[str, _Lease] = {}

    def follow(self, site: Site, campus: Campus) -> None:
        """The jobs that wait are those of this site."""
        numbers = {name: number for number, name in enumerate(campus.job_names)}

        def is_queued(name: str) -> bool:
            job = site.jobs.get(numbers.get(name, -1))
            return job is not None and job.state == QUEUED

        self.is_queued = is_queued

    def put(self, job: str, action: str, machine: str | None, lease_s: float) -> None:
        """Ask for something, for a while from now; what has lapsed is forgotten."""
        leases = self._leases
        leases.pop(job, None)
        leases[job] = _Lease(action, machine, self.now_s + lease_s)
        while (oldest := next(iter(leases))) != job and leases[oldest].until_s <= self.now_s:
            del leases[oldest]

    def take(self, job: str) -> bool:
        """Take back what was asked for a job; whether anything was."""
        return self._leases.pop(job, None) is not None

    def take_all(self) -> int:
        """Take back everything; of how many jobs."""
        n = sum(lease.until_s > self.now_s for lease in self._leases.values())
        self._leases.clear()
        return n

    def standing(self, job: str) -> tuple[str, str | None] | None:
        """Action and machine that stand for a job now; None: nothing does."""
        lease = self._leases.get(job)
        return None if lease is None or lease.until_s <= self.now_s else lease[:2]


class SimulatedLever(Lever):
    """Keeps jobs of a simulated campus in the queue, or sends them to a group of machines.

    It needs `cycle_s` of the adapter: else jobs are matched before anybody could act.
    """

    name = "simulated_leases"
    description = "keeps jobs of a simulated campus in the queue, or sends them to a machine group"
    actions = ("start", "defer")

    def __init__(self, adapter: Any) -> None:
        super().__init__(adapter)
        self._board: LeaseBoard = adapter.board
        self._lease_s: float = adapter.settings.lease_s
        self.lease_s = self._lease_s / (adapter.settings.speed or 1.0)

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        """As `Lever.apply`; refused are jobs that do not wait."""
        board, refused = self._board, {}
        if not board.cycle_s:
            raise PeerError("jobs are matched at once; right would be cycle_s above 0")
        for decision in decisions:
            if board.is_queued(decision.job):
                board.put(decision.job, decision.action, decision.machine, self._lease_s)
            else:
                refused[decision.job] = "it does not wait in the queue"
        return refused

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        """As `Lever.withdraw`."""
        for job in jobs:
            self._board.take(job)
        return {}

    def withdraw_all(self) -> int:
        """As `Lever.withdraw_all`."""
        return self._board.take_all()


class HeedingIncumbent(Policy):
    """An incumbent that heeds what stands on a board, and otherwise does what it does.

    Args:
        incumbent: decides job by job, and learns nothing.
        board: what was asked for.
        campus: knows the names.
        where: of the setting, for errors.

    Raises:
        ConfigurationError: the incumbent is another kind of policy.
    """

    name = "heeding_incumbent"
    description = "an incumbent that heeds what Outrider asks for"
    api_version = 1

    def __init__(self, incumbent: Policy, board: LeaseBoard, campus: Campus, where: str) -> None:
        super().__init__(incumbent.settings, incumbent.rng)
        if isinstance(incumbent, _MORE):
            raise ConfigurationError(
                f'{where}: "cycle_s" with the incumbent "{incumbent.name}"; right would be one '
                "that decides job by job and learns nothing, such as random_match"
            )
        self._incumbent = incumbent
        self._board = board
        self._names = campus.job_names
        self._numbers = {name: number for number, name in enumerate(campus.machine_names)}
        self.reconsider_s = board.cycle_s

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """As the board says, else as the incumbent does."""
        standing = self._board.standing(self._names[job.number])
        if standing is not None:
            action, machine = standing
            if action == DEFER:
                return Choice(NOWHERE, "kept")
            at = self._place(machine, view)
            if at is not None:
                return Choice(at, "sent")
        return self._incumbent.choose(job, evaluation, view, may_defer)

    def _place(self, machine: str | None, view: SiteView) -> int | None:
        """This machine if it is free, else another of its group; None: there is none."""
        number = self._numbers.get(machine or "")
        if number is None:
            return None
        if view.is_free(number):
            return number
        group = view.cluster_of(number)
        return view.draw_in(group, self.rng) if view.free_n[group] else None


def in_cycles(run: CampusRun, cycle_s: float) -> Iterator[events.Event]:
    """The events of a run whose incumbent matches every `cycle_s` seconds, where there is a need.

    Each is yielded after the engine has handled it, as of `TraceRun.stream`, but for ticks: these
    are yielded before, so that what is asked for until the next event is asked for counts.
    """
    for event in run.simulation.events():
        time_s, kind = event[:2]
        if kind == events.TICK:
            due_s = _cycle_from(time_s, cycle_s)
            if due_s > time_s + _SAME_S:
                run.simulation.wake_at(due_s)
                continue
            yield event
            run.engine.feed((event,))
        else:
            run.engine.feed((event,))
            yield event


def _cycle_from(time_s: float, cycle_s: float) -> float:
    """The first matching at a time or after it."""
    due_s = floor((time_s - _PHASE_S) / cycle_s) * cycle_s + _PHASE_S
    return due_s if due_s >= time_s else due_s + cycle_s
