"""Present state of a site, followed in its journal while the daemon writes it."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterable, Iterator
from itertools import groupby
from math import ceil, inf, nan
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import structlog

from outrider.engine import Engine, EventMerger
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.ingest.machine_registry import inferred_machine
from outrider.engine.scheduling.placement import Possible, fits, kind_of
from outrider.engine.state.machines import FREE, Machines, Room
from outrider.engine.state.site import Site, machine_events
from outrider.forecast.closures import ClosureHistory, RecentClosures, closure_history, usable_cpus
from outrider.forecast.queue_state import Floats, Jobs, QueueState, RecentArrivals
from outrider.forecast.recent_jobs import KEPT_S, RecentJobs, groups_in
from outrider.forecast.run_times import GROUP_LEVELS, RunTimeHistory
from outrider.journal import Journal
from outrider.journal.journal_events import JournalEvents, last_moment_s
from outrider.journal.records import decode_extra
from outrider.journal.snapshots import read_snapshot
from outrider.model import events as ev
from outrider.model.errors import LedgerError
from outrider.model.events import Event, NamedEvent
from outrider.model.jobs import HELD_STATE, QUEUED, RUNNING, SUSPENDED_STATE, Job, JobSpec
from outrider.model.localtime import HOUR_S, ZoneTime
from outrider.replay.log_files import NoDecisionLog

# -- initial state --------------------------------------------------------------------------------
# Site state in a snapshot of its daemon, converted to events.
#
# Machines and jobs that a daemon finds at its first look are history: no journal has them. Nor does
# it have events before the oldest one that it still keeps.

log = structlog.get_logger()


class InitialState(NamedTuple):
    """Machine and job state at a snapshot, as events.

    Attributes:
        seq: number of the journal's last input by then.
        time_s: end of the seen period, Unix seconds.
        machines: events of machines, and of who may use them.
        jobs: events of each job, by its name.
        awaited: events received but not yet due by the daemon's clock.
    """

    seq: int
    time_s: float
    machines: list[NamedEvent]
    jobs: dict[str, list[NamedEvent]]
    awaited: list[NamedEvent]


def oldest_initial_state(folder: Path) -> InitialState | None:
    """Return the state in the oldest readable snapshot of a folder; None if there is none."""
    for path in sorted(folder.glob("snapshot-*.bin")):
        try:
            seq, state = read_snapshot(path)
            return _initial_state(seq, state)
        except (LedgerError, LookupError, TypeError, ValueError) as error:
            log.warning("snapshot_skipped", file=str(path), error=str(error))
    return None


def _initial_state(seq: int, state: dict[str, Any]) -> InitialState:
    merger = EventMerger((), inferred_machine)
    merger.restore(state["merger"], _event_of)
    site = Site(ZoneTime("UTC"), [])
    site.restore(state["engine"]["site"])
    machine_names, job_names = merger.normaliser.machine_names, merger.normaliser.job_names
    jobs = {
        job_names[job.number]: list(
            _job_events(job, job_names[job.number], machine_names, site.now)
        )
        for job in site.jobs.values()
    }
    first_s = min((event[0] for events in jobs.values() for event in events), default=site.now)
    machines = list(machine_events(site, machine_names, first_s))
    awaited = [_event_of(event) for _, _, _, event in state["merger"]["waiting"]]
    return InitialState(seq, site.now, machines, jobs, awaited)


def _job_events(job: Job, name: str, machines: list[str], now_s: float) -> Iterator[NamedEvent]:
    yield now_s if job.submit_s is None else job.submit_s, ev.SUBMITTED, name, job.spec
    if job.state in (RUNNING, SUSPENDED_STATE):
        yield job.start_s, ev.STARTED, name, (machines[job.machine], job.cpus)
    if job.state == SUSPENDED_STATE:
        yield now_s, ev.SUSPENDED, name, ev.CPUS_GIVEN_BACK if job.gave_back else None
    if job.state == HELD_STATE:
        yield now_s, ev.HELD, name, job.held_because or None


def _event_of(plain: list[Any]) -> NamedEvent:
    time_s, kind, subject, extra = plain
    return time_s, kind, subject, decode_extra(kind, extra)


# -- followed site ---------------------------------------------------------------------------------


class FollowedSite:
    """Present state of a site, and its history of run times, from a journal that grows.

    Args:
        path: the journal.
        snapshots: folder of its daemon's snapshots, for the state before the journal; None: none.

    Attributes:
        recent: recent arrivals, and the history of run times.
        closures: recent closures of machines.
        requeueing: position in the queue of jobs that lost their runs.
        started: jobs that began to run since this was emptied, with the time.
        left: jobs that left since this was emptied.
    """

    def __init__(self, path: Path, snapshots: Path | None = None) -> None:
        self._path = path
        self._initial = None if snapshots is None else oldest_initial_state(snapshots)
        self._recorded = JournalEvents()
        self._merger = self._recorded.merger
        utc = ZoneTime("UTC")
        self._site = Site(utc, [])
        self._engine = Engine(self._site, Accounting(utc), [], self._merger, NoDecisionLog())
        self._possible = Possible(self._site)
        self.recent = RecentJobs()
        self.closures = RecentClosures()
        self.requeueing = Requeueing()
        self.started: list[tuple[int, float]] = []
        self.left: list[int] = []

    @property
    def seq(self) -> int:
        """Number of the journal's last input that was read, at the end of a step of time."""
        return self._recorded.seq

    @property
    def now_s(self) -> float:
        """Time up to which the journal was read, Unix seconds."""
        return self._site.now

    def catch_up(self) -> Iterator[float]:
        """Read the journal's new inputs.

        Yields after each step of time, and at the full hours within it, Unix seconds.

        Raises:
            LedgerError: the journal cannot be read.
        """
        with Journal(self._path, read_only=True) as journal:
            initial_seq = -1
            if self._initial is not None:
                # the snapshot knows the machines; of the first look's, some may have left since
                self._recorded.resume_after(self.seq)
                for time_s, events in self._recorded.read(journal, self._initial.seq):
                    yield from self._advance(time_s, events)
                self._take_initial_state(self._initial)
                initial_seq = self.seq
            for time_s, events in self._recorded.read(journal):
                yield from self._advance(time_s, events)
            if self.seq == initial_seq:  # nothing came since
                yield self.now_s

    def _advance(self, time_s: float, events: Iterator[Event]) -> Iterator[float]:
        """Apply all events up to a moment, hour by hour: a step may be days long."""
        for hours, of_hour in groupby(events, lambda event: ceil(event[0] / HOUR_S)):
            self._engine.feed(self._watched(of_hour))
            full_hour_s = hours * HOUR_S
            if self.now_s < full_hour_s < time_s:
                self._engine.reach(full_hour_s)
                yield self.now_s
        self._engine.reach(time_s)
        yield self.now_s

    def recorded_until_s(self) -> float:
        """Return the end of the record, Unix seconds of its clock; -inf if it is empty."""
        with Journal(self._path, read_only=True) as journal:
            last_s = last_moment_s(journal)
        return -inf if last_s is None else last_s

    def _take_initial_state(self, initial: InitialState) -> None:
        """Apply the state at this point of the journal, without jobs that are in the journal."""
        is_known = self._merger.normaliser.known_by
        of_jobs = [e for job, of in initial.jobs.items() if is_known(job) is None for e in of]
        awaited = [] if self.seq else initial.awaited  # else the journal had them, too
        self._recorded.resume_after(initial.seq)
        before, started_n = self.recent.arrivals, len(self.started)
        self._merger.arrive("snapshot", [*initial.machines, *of_jobs, *awaited])
        self._engine.feed(self._watched(self._merger.advance(initial.time_s)))
        self._engine.reach(initial.time_s)
        # of earlier arrivals only the present jobs are known: it is no record of arrivals
        self.recent.arrivals = before
        del self.started[started_n:]
        self._initial = None

    def _watched(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            time_s, kind, job, extra = event
            if kind == ev.SUBMITTED:
                self.recent.submitted(time_s, job, extra)
                self.requeueing.came(time_s, job)
            elif kind == ev.STARTED:
                self.started.append((job, time_s))
                self.recent.started(time_s, job)
                self.requeueing.started(time_s, job)
            elif kind in (ev.COMPLETED, ev.EVICTED, ev.REMOVED):
                self.recent.ended(time_s, job, leaves=kind != ev.EVICTED)
                if kind == ev.EVICTED:
                    self.requeueing.lost(time_s, job)
                else:
                    self.requeueing.left(job)
                    self.left.append(job)
            elif kind == ev.HELD:
                self.requeueing.drop(job)
            self.closures.watch(event)
            yield event

    # -- the present --------------------------------------------------------------------------

    def name(self, job: int) -> str:
        """Return the batch system's name of a job."""
        return self._merger.normaliser.job_names[job]

    def submit_s(self, job: int) -> float:
        """Return the submission of a job, Unix seconds; now if it was not seen."""
        came = self.recent.known(job)
        return self.now_s if came is None else came.submit_s

    def waiting(self) -> list[int]:
        """Return jobs that could start if CPUs were free, in the order of the queue."""
        jobs = [job for job, may_run in self._eligible() if may_run]
        if self.requeueing.goes_behind:
            joined_s = self.requeueing.lost_s
            jobs.sort(key=lambda job: joined_s.get(job) or self.submit_s(job))
        return jobs

    def without_machine(self) -> list[int]:
        """Return jobs that fit no machine of the site that they may use, even a free one."""
        return [job for job, may_run in self._eligible() if not may_run]

    def _eligible(self) -> Iterator[tuple[int, bool]]:
        """Yield queued jobs that may start, and whether any machine could run them."""
        site = self._site
        for number, job in site.jobs.items():
            if job.state == QUEUED and (job.spec.eligible_s or -inf) <= site.now:
                yield number, self.may_run(job.spec)

    def may_run(self, spec: JobSpec) -> bool:
        """Return whether any machine could run such a job if it were free."""
        if spec.cpus > self._site.widest:  # it takes several machines of unknown size
            spec = msgspec.structs.replace(spec, cpus=1, resources=None)
        return self._possible(spec)

    def has_room(self, spec: JobSpec) -> bool:
        """Return whether a machine has space for such a job now."""
        return find_room(self._site, [spec])[0]

    def find_room(self, jobs: list[int]) -> list[bool]:
        """Return which of these jobs fit on a machine now, one after the other."""
        return find_room(self._site, [self._site.jobs[job].spec for job in jobs])

    def state(self) -> QueueState:
        """Return the site now; CPUs that owners hold count in total; groups are of `run_times`."""
        site = self._site
        running = self._running()
        waiting = [site.jobs[number] for number in self.waiting()]
        free = sum(
            site.cpus[machine] - site.busy[machine]
            for machine, state in enumerate(site.state)
            if state == FREE
        )
        # a job on several machines is on record with all its CPUs on the first of them
        elsewhere = sum(max(0, n - cpus) for n, cpus in zip(site.busy, site.cpus, strict=True))
        free = max(0, free - elsewhere)
        used = sum(job.cpus for job in running)
        kept = sum(usable_cpus(site, machine) for machine, *_ in self.closures.kept())
        since_s = np.array([job.start_s for job in running], dtype=np.float64)
        return QueueState(
            self.now_s, site.week_second(), free, free + used + kept,
            self._jobs(running, running=True), since_s,
            self._jobs(waiting, running=False), self._lost_s(waiting),
        )  # fmt: skip

    def arrivals(self) -> RecentArrivals:
        """Return the arrivals of the last days."""
        still_there = [*(job.number for job in self._running()), *self.waiting()]
        place = {job: n for n, job in enumerate(still_there)}
        rows = [came for came in self.recent.jobs if came.job in place or came.run_s == came.run_s]
        return RecentArrivals(
            self.known_since_s,
            np.array([came.submit_s for came in rows], dtype=np.float64),
            np.array([came.spec.cpus for came in rows], dtype=np.int64),
            np.array([came.estimate_s for came in rows], dtype=np.float64),
            np.array([came.run_s for came in rows], dtype=np.float64),
            np.array([place.get(came.job, -1) for came in rows], dtype=np.int64),
        )

    def closure_history(self) -> ClosureHistory:
        """Return the closures by owners and reboots in the last days."""
        return closure_history(
            self.closures, self._site, self.known_since_s, self.requeueing.goes_behind
        )

    @property
    def run_times(self) -> RunTimeHistory:
        """History of run times for simulations with `closure_history`.

        Where owners evict, these are whole runs: a run that an owner ended has no known length.
        """
        return self.recent.whole_runs if self.closures.evicting else self.recent.history

    @property
    def known_since_s(self) -> float:
        """Begin of the period of known arrivals and closures, Unix seconds."""
        return max(self.recent.first_s, self.now_s - KEPT_S)

    def groups_named(self, name: str, spec: JobSpec) -> list[int]:
        """Return (levels,) groups of a job in `RecentJobs.whole_runs`.

        Args:
            name: of the job; its request at submission is used if it is known.
            spec: its request otherwise.
        """
        known = self._merger.normaliser.known_by(name)
        came = None if known is None else self.recent.known(known.number)
        return groups_in(self.recent.whole_runs, spec if came is None else came.spec)

    def machine_name(self, machine: int) -> str:
        """Return the name of a machine."""
        return self._merger.normaliser.machine_names[machine]

    def _running(self) -> list[Job]:
        return [
            job
            for job in self._site.jobs.values()
            if job.state == RUNNING or (job.state == SUSPENDED_STATE and not job.gave_back)
        ]

    def _jobs(self, jobs: list[Job], running: bool) -> Jobs:
        estimate_s = np.array(
            [nan if job.spec.estimate_s is None else job.spec.estimate_s for job in jobs],
            dtype=np.float64,
        )
        groups = [
            self.groups_named(self.name(job.number), job.spec)
            if self.closures.evicting
            else self.recent.groups_of(job.number, job.spec)
            for job in jobs
        ]
        cpus = [job.cpus if running else job.spec.cpus for job in jobs]
        return Jobs(
            np.array(cpus, dtype=np.int64), estimate_s, estimate_s,
            np.array(groups, dtype=np.int64).reshape(-1, GROUP_LEVELS),
        )  # fmt: skip

    def _lost_s(self, waiting: list[Job]) -> Floats:
        """Return (waiting,) the longest lost run of each; only if run times are whole runs."""
        lost_s = np.array([job.consumed_s for job in waiting], dtype=np.float64)
        return lost_s if self.closures.evicting else np.zeros(len(waiting))


# -- requeueing ------------------------------------------------------------------------------------
# Position in the queue of a job that lost its run: its old one, or at the end.

RECENT_S: Final = 6 * 3_600.0
"""Maximal wait of a job that counts as evidence: a longer one may need a certain machine."""


class Requeueing:
    """Detector of the order of starts: by submission, or by joining the queue.

    A start of a job that never lost a run counts for the second order, if a job that was submitted
    before it, and recently lost its run, still waits. A start of a job that lost a run counts for
    the first order, if a job still waits that came before that loss.

    Attributes:
        lost_s: time at which each job that waits again lost its run, Unix seconds.
        before: starts that count for the order of submission.
        behind: starts that count for the order of joining the queue.
    """

    def __init__(self) -> None:
        self.lost_s: dict[int, float] = {}
        self.before = 0
        self.behind = 0
        self._submit_s: dict[int, float] = {}
        self._fresh: list[tuple[float, int]] = []  # (submitted, job)
        self._lost: list[tuple[float, int]] = []  # (lost, job)

    @property
    def goes_behind(self) -> bool:
        """True if a job that lost its run joins the end of the queue; False if undecided."""
        return self.behind > self.before

    def came(self, time_s: float, job: int) -> None:
        """Record that a job was submitted."""
        self._submit_s[job] = time_s
        insort(self._fresh, (time_s, job))

    def lost(self, time_s: float, job: int) -> None:
        """Record that a job lost its run and waits again."""
        if job in self._submit_s:
            self.drop(job)
            self.lost_s[job] = time_s
            insort(self._lost, (time_s, job))

    def started(self, time_s: float, job: int) -> None:
        """Record that a job starts."""
        came_s = self._submit_s.get(job)
        lost_s = self.lost_s.get(job)
        self.drop(job)
        if came_s is None:
            return
        if lost_s is None:
            after = bisect_right(self._lost, (max(came_s, time_s - RECENT_S), inf))
            self.behind += any(self._submit_s[other] < came_s for _, other in self._lost[after:])
        else:
            before = bisect_left(self._fresh, (lost_s, -1)) - 1
            since_s = max(came_s, time_s - RECENT_S)
            self.before += before >= 0 and self._fresh[before][0] > since_s

    def drop(self, job: int) -> None:
        """Drop a job from the comparison: it is held, or no longer waits."""
        lost_s = self.lost_s.pop(job, None)
        times = self._fresh if lost_s is None else self._lost
        entry = (self._submit_s.get(job, inf) if lost_s is None else lost_s, job)
        place = bisect_left(times, entry)
        if place < len(times) and times[place] == entry:
            del times[place]

    def left(self, job: int) -> None:
        """Record that a job left the system."""
        self.drop(job)
        self._submit_s.pop(job, None)


# -- fit now ---------------------------------------------------------------------------------------
# Jobs that fit on a single machine now; the forecast itself treats CPUs as one pool.


def find_room(site: Machines, specs: Iterable[JobSpec]) -> list[bool]:
    """Return whether each of these jobs fits on a machine now, after those before it.

    A job that is wider than any machine takes several of unknown size, and counts as fitting.

    Args:
        site: now.
        specs: of the jobs, in the order in which they start.
    """
    rooms: dict[int, Room] = {}
    next_try: dict[
        Hashable, int
    ] = {}  # free capacity only shrinks: a machine too small for a kind stays so
    found: list[bool] = []
    for spec in specs:
        kind = kind_of(spec)
        machine = next_try.get(kind, 0)
        while machine < site.machines_n and not _holds(site, rooms, spec, machine):
            machine += 1
        next_try[kind] = machine
        is_there = machine < site.machines_n
        if is_there:
            rooms.setdefault(machine, site.room(machine)).take(spec.cpus, spec.resources)
        found.append(is_there or spec.cpus > site.widest)
    return found


def _holds(site: Machines, rooms: dict[int, Room], spec: JobSpec, machine: int) -> bool:
    room = rooms.get(machine)
    if room is None:
        return fits(site, spec, machine)
    may_start = site.state[machine] == FREE and site.is_eligible(spec, machine)
    return may_start and room.holds(spec.cpus, spec.resources)
