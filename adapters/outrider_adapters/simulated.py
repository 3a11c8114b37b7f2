"""Simulated campus as a batch system: owners, jobs and an incumbent that starts them.

For demonstrations, tests and training: the daemon sees it as a real site. The incumbent (by
default HTCondor's random matching) is a separate policy on a separate engine; decisions of the
daemon's shadow candidates never reach it.
"""

import asyncio
import datetime as dt
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from math import floor, inf
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta

from outrider.api import (
    Adapter,
    AdapterSettings,
    Batch,
    Choice,
    ClusterSpec,
    ConfigurationError,
    DecisionRow,
    Groups,
    Job,
    Learns,
    Lever,
    Listens,
    NamedEvent,
    Orders,
    PeerError,
    Plans,
    Policy,
    Ranks,
    SiteHabits,
    SiteView,
    events,
)
from outrider.engine.state.site import Site
from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import clock_text, read_campus
from outrider.model.decisions import DEFER, NOWHERE
from outrider.model.jobs import QUEUED
from outrider.plugins.finding import make_policy
from outrider.replay.run import CampusRun, keep_nothing
from outrider.simulation.generators.campus import generate_campus

# -- simulated leases ------------------------------------------------------------------------------
# Acting on a simulated campus: leases, and an incumbent that honours them.
#
# As with a real batch system, Outrider only sets leases that expire. The incumbent matches jobs in
# cycles and reads the leases then. A deferred job stays in the queue. A job that is to start goes
# to the machine of the decision, or to another of its group or, if that has none, to any.

_CYCLE_OFFSET_S: Final = 0.5
"""Offset of the cycles from full seconds, on which reboots and shifts fall."""
_TIME_TOLERANCE_S: Final = 1e-3
_UNSUPPORTED: Final = (Groups, Learns, Listens, Orders, Plans, Ranks)


class _Lease(NamedTuple):
    action: str
    machine: str | None
    until_s: float


class LeaseBoard:
    """Leases that Outrider set, by job; all times are seconds of the campus.

    Args:
        cycle_s: seconds between two matchings; 0: no leases are possible.

    Attributes:
        now_s: the current time.
    """

    def __init__(self, cycle_s: float) -> None:
        self.cycle_s = cycle_s
        self.now_s = -inf
        self.is_queued: Callable[[str], bool] = lambda job: False
        self._leases: dict[str, _Lease] = {}

    def follow(self, site: Site, campus: Campus) -> None:
        """Set the site whose waiting jobs can get leases."""
        numbers = {name: number for number, name in enumerate(campus.job_names)}

        def is_queued(name: str) -> bool:
            job = site.jobs.get(numbers.get(name, -1))
            return job is not None and job.state == QUEUED

        self.is_queued = is_queued

    def put(self, job: str, action: str, machine: str | None, lease_s: float) -> None:
        """Set a lease that starts now, and forget expired ones."""
        leases = self._leases
        leases.pop(job, None)
        leases[job] = _Lease(action, machine, self.now_s + lease_s)
        while (oldest := next(iter(leases))) != job and leases[oldest].until_s <= self.now_s:
            del leases[oldest]

    def take(self, job: str) -> bool:
        """Revoke the lease of a job; return whether it had one."""
        return self._leases.pop(job, None) is not None

    def take_all(self) -> int:
        """Revoke all leases; return how many were active."""
        n = sum(lease.until_s > self.now_s for lease in self._leases.values())
        self._leases.clear()
        return n

    def lease_now(self, job: str) -> tuple[str, str | None] | None:
        """Return action and machine of a job's active lease; None: it has none."""
        lease = self._leases.get(job)
        return None if lease is None or lease.until_s <= self.now_s else lease[:2]


class SimulatedLever(Lever):
    """Lever that defers jobs of a simulated campus, or sends them to a group of machines.

    It needs `cycle_s` of the adapter: without it jobs are matched before a policy can act.
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
        """Apply decisions; jobs that do not wait are refused. See `Lever.apply`."""
        board, refused = self._board, {}
        if not board.cycle_s:
            raise PeerError("jobs are matched immediately; expected cycle_s above 0")
        for decision in decisions:
            if board.is_queued(decision.job):
                board.put(decision.job, decision.action, decision.machine, self._lease_s)
            else:
                refused[decision.job] = "it does not wait in the queue"
        return refused

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        """Withdraw leases; see `Lever.withdraw`."""
        for job in jobs:
            self._board.take(job)
        return {}

    def withdraw_all(self) -> int:
        """Withdraw all leases; see `Lever.withdraw_all`."""
        return self._board.take_all()


class LeaseAwareIncumbent(Policy):
    """Incumbent that honours the leases on a board, and otherwise decides as before.

    Args:
        incumbent: a policy that decides job by job, and learns nothing.
        board: the leases.
        campus: the campus, for names.
        where: the place of the setting, for errors.

    Raises:
        ConfigurationError: the incumbent is another kind of policy.
    """

    name = "heeding_incumbent"
    description = "an incumbent that honours Outrider's leases"
    api_version = 1

    def __init__(self, incumbent: Policy, board: LeaseBoard, campus: Campus, where: str) -> None:
        super().__init__(incumbent.settings, incumbent.rng)
        if isinstance(incumbent, _UNSUPPORTED):
            raise ConfigurationError(
                f'{where}: "cycle_s" with the incumbent "{incumbent.name}"; expected one '
                "that decides job by job and learns nothing, such as random_match"
            )
        self._incumbent = incumbent
        self._board = board
        self._names = campus.job_names
        self._numbers = {name: number for number, name in enumerate(campus.machine_names)}
        self.reconsider_s = board.cycle_s

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose by the board's lease, else by the incumbent."""
        lease = self._board.lease_now(self._names[job.number])
        if lease is not None:
            action, machine = lease
            if action == DEFER:
                return Choice(NOWHERE, "kept")
            at = self._place(machine, view)
            if at is not None:
                return Choice(at, "sent")
        return self._incumbent.choose(job, evaluation, view, may_defer)

    def _place(self, machine: str | None, view: SiteView) -> int | None:
        """Return this machine if it is free, else another of its group; None: there is none."""
        number = self._numbers.get(machine or "")
        if number is None:
            return None
        if view.is_free(number):
            return number
        group = view.cluster_of(number)
        return view.draw_in(group, self.rng) if view.free_n[group] else None


def in_cycles(run: CampusRun, cycle_s: float) -> Iterator[events.Event]:
    """Yield the events of a run whose incumbent matches every `cycle_s` seconds, if needed.

    Each is yielded after the engine has handled it, like `TraceRun.stream`, except ticks. These are
    yielded before, so that leases set until the next event is requested count.
    """
    for event in run.simulation.events():
        time_s, kind = event[:2]
        if kind == events.TICK:
            due_s = _cycle_from(time_s, cycle_s)
            if due_s > time_s + _TIME_TOLERANCE_S:
                run.simulation.wake_at(due_s)
                continue
            yield event
            run.engine.feed((event,))
        else:
            run.engine.feed((event,))
            yield event


def _cycle_from(time_s: float, cycle_s: float) -> float:
    """Return the time of the first matching at or after a time."""
    due_s = floor((time_s - _CYCLE_OFFSET_S) / cycle_s) * cycle_s + _CYCLE_OFFSET_S
    return due_s if due_s >= time_s else due_s + cycle_s


# -- simulated -------------------------------------------------------------------------------------

_MAX_EVENTS = 2_000


class SimulatedSettings(AdapterSettings, frozen=True):
    """Settings of a simulated campus."""

    campus: Annotated[
        str | None,
        Meta(
            description="Folder of a campus to replay. Unset: one is generated.",
            examples=["campus"],
        ),
    ] = None
    machines: Annotated[int, Meta(ge=1, description="Machines of a generated campus.")] = 120
    clusters: Annotated[int, Meta(ge=1, description="Clusters of a generated campus.")] = 6
    weeks: Annotated[float, Meta(gt=0, description="Length of a generated campus, weeks.")] = 8.0
    start: Annotated[
        str,
        Meta(description="First day of a generated campus; terms begin in February, YYYY-MM-DD."),
    ] = "2010-02-01"
    seed: Annotated[int, Meta(ge=0, description="Seed of the campus and of the incumbent.")] = 1
    speed: Annotated[
        float,
        Meta(ge=0, description="Simulated seconds per real second; 0: as fast as possible."),
    ] = 1.0
    head_start_s: Annotated[
        float,
        Meta(ge=0, description="Simulated seconds delivered immediately before the clock starts."),
    ] = 0.0
    incumbent: Annotated[
        str, Meta(description="Policy that starts jobs in the role of the batch system.")
    ] = "random_match"
    batch_s: Annotated[float, Meta(gt=0, description="Real seconds between two batches.")] = 0.25
    cycle_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Simulated seconds between two matchings of the batch system. Waiting jobs "
            "are matched only then, and Outrider can act before. 0: jobs are matched "
            "immediately, and Outrider cannot act.",
        ),
    ] = 0.0
    lease_s: Annotated[
        float,
        Meta(
            gt=0,
            description="In the modes canary and active: simulated seconds after which a change "
            "expires if it is not renewed. It should be many times `speed`.",
        ),
    ] = 3600.0
    until_s: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Second of the campus after which nothing happens. Unset: its last."),
    ] = None


class SimulatedAdapter(Adapter):
    """Adapter of a simulated campus with its own incumbent, on a clock of real time x `speed`.

    Event times are the campus's wall clock read as UTC. The cursor is the number of events yielded:
    the same seed gives the same events, so a restart simulates up to there and continues. Changes
    by its lever are the exception: a restart simulates a site without them.
    """

    name = "simulated"
    description = "a simulated campus with owners, jobs and its own incumbent"
    api_version = 1
    settings_type = SimulatedSettings
    sees = (
        "joined", "owner_came", "owner_went", "usable", "rebooted", "submitted", "started",
        "evicted", "completed", "removed", "suspended", "resumed", "eligible",
    )  # fmt: skip
    lateness_s = 0.0
    own_clock = True
    discipline = "first_fit"  # of the incumbent's run
    levers = (SimulatedLever,)

    def __init__(self, label: str, settings: SimulatedSettings) -> None:
        super().__init__(label, settings)
        self._campus = _campus(settings)
        self.incumbent = settings.incumbent
        self.board = LeaseBoard(settings.cycle_s)
        self.habits = _habits(self._campus)
        self._epoch_s = self._campus.start.replace(tzinfo=dt.UTC).timestamp()
        self._end_s = self._campus.span_s
        if settings.until_s is not None:
            self._end_s = min(settings.until_s, self._end_s)

    def clusters(self) -> list[ClusterSpec]:
        """Return the campus's clusters with their opening hours and sleep."""
        return self._campus.clusters

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        """Yield the events up to the present moment of simulated time, without end."""
        yielded_n = int(cursor or 0)
        stream = self._events()
        reported = (event for event in stream if event[1] != events.TICK)
        for skipped in range(0, yielded_n, _MAX_EVENTS):
            for _ in itertools.islice(reported, min(_MAX_EVENTS, yielded_n - skipped)):
                pass
            await asyncio.sleep(0)
        clock = _SimulatedClock(self.settings.speed)
        ahead: list[NamedEvent] = []
        while True:
            is_at_end = not _read_ahead(stream, ahead)
            if not clock.started and ahead:
                clock.start(ahead[0][0] + self.settings.head_start_s)
            now = clock.now() if ahead and self.settings.speed else float("inf")
            due = _due(ahead, now)
            batch, ahead = ahead[:due], ahead[due:]
            seen = self._seen_until(batch, ahead, now)
            if batch and batch[-1][1] == events.TICK:  # at the next request the stream matches
                batch.pop()
            yielded_n += len(batch)
            yield Batch(events=batch, cursor=yielded_n, seen_until_s=seen)
            await asyncio.sleep(0 if ahead and due == _MAX_EVENTS else self.settings.batch_s)
            if is_at_end and not ahead:
                await asyncio.sleep(self.settings.batch_s)

    def _seen_until(
        self, batch: list[NamedEvent], ahead: list[NamedEvent], now: float
    ) -> float | None:
        """Return a time before which no event will come; after the last, the end of the campus."""
        if not ahead and not batch:
            return self._epoch_s + self._end_s
        last = batch[-1][0] if batch else None
        if ahead:
            bound = min(now, ahead[0][0] - 1e-6)
            return bound if last is None else max(bound, last - 1e-6)
        return last

    def _events(self) -> Iterator[NamedEvent]:
        """Yield events of the incumbent's run of the campus, with names and Unix times.

        With `cycle_s` a tick comes before each matching, which is made at the next request.
        """
        settings, where = self.settings, f"[adapters.{self.label}]"
        policy = make_policy(settings.incumbent, {}, settings.seed, where)
        if settings.cycle_s:
            policy = LeaseAwareIncumbent(policy, self.board, self._campus, where)
        run = CampusRun(
            self._campus, [policy], keep_nothing, self._end_s, exact=False,
            discipline=self.discipline,
        )  # fmt: skip
        self.board.follow(run.site, self._campus)
        jobs, machines, epoch_s = self._campus.job_names, self._campus.machine_names, self._epoch_s
        stream = in_cycles(run, settings.cycle_s) if settings.cycle_s else run.stream()
        for time_s, kind, subject, extra in stream:
            if kind == events.TICK:
                if settings.cycle_s:
                    self.board.now_s = time_s
                    yield epoch_s + time_s, kind, "", None
                continue
            if kind == events.ELIGIBLE:
                class_name, members, _ = extra
                yield epoch_s + time_s, kind, class_name, tuple(machines[m] for m in members)
                continue
            name = jobs[subject] if kind in events.JOB_KINDS else machines[subject]
            named = (machines[extra[0]], extra[1]) if kind == events.STARTED else extra
            yield epoch_s + time_s, kind, name, named


class _SimulatedClock:
    """Simulated clock: a start, and the real seconds since then times `speed`."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self.started = False
        self._from_s = 0.0
        self._began = 0.0

    def start(self, at_s: float) -> None:
        self.started, self._from_s, self._began = True, at_s, time.monotonic()

    def now(self) -> float:
        return self._from_s + (time.monotonic() - self._began) * self.speed


def _read_ahead(stream: Iterator[NamedEvent], ahead: list[NamedEvent]) -> bool:
    """Read ahead up to a limit or the next matching; return False at the end of events."""
    while len(ahead) < _MAX_EVENTS:
        if ahead and ahead[-1][1] == events.TICK:
            return True
        if (event := next(stream, None)) is None:
            return False
        ahead.append(event)
    return True


def _due(ahead: list[NamedEvent], now: float) -> int:
    if ahead and ahead[-1][0] <= now:
        return len(ahead)
    return next((n for n, event in enumerate(ahead) if event[0] > now), len(ahead))


def _habits(campus: Campus) -> SiteHabits:
    return SiteHabits(
        reboot=clock_text(campus.reboot_s),
        idle_before_job_open_s=campus.idle_before_job_open_s,
        idle_before_job_closed_s=campus.idle_before_job_closed_s,
        reconsider_s=campus.reconsider_s,
        **campus.run_rules._asdict(),
    )


def _campus(settings: SimulatedSettings) -> Campus:
    if settings.campus is not None:
        return read_campus(Path(settings.campus))
    try:
        start = dt.date.fromisoformat(settings.start)
    except ValueError as error:
        raise ConfigurationError(
            f'"start" = {settings.start!r}: expected a date like "2010-02-01"'
        ) from error
    return generate_campus(
        settings.seed,
        weeks=settings.weeks,
        machines=settings.machines,
        clusters=settings.clusters,
        start=start,
    )
