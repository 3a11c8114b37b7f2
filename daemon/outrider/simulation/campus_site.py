"""Discrete-event simulation of a campus: events of machines and jobs under given starts.

The generator `SimulatedSite.events` merges exogenous events (owners, reboots, submissions) with
those that follow from decisions (ends of runs, ticks). It resumes after the engine has handled
an event, so it sees the starts decided on it. A run has one entry in the heap: when it starts,
the site looks up which comes first, its end, the next log-in or the reboot.
"""

from bisect import bisect_left
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import chain
from math import inf, isnan, nextafter
from typing import Any, Final

import numpy as np

from outrider.formats.campus.campus import PLAIN_RUNS, Amounts, Campus, Floats
from outrider.model.events import (
    COMPLETED,
    CPUS_GIVEN_BACK,
    ELIGIBLE,
    EVICTED,
    JOINED,
    REMOVED,
    RESIZED,
    RESUMED,
    STARTED,
    SUBMITTED,
    SUSPENDED,
    TICK,
    Event,
)
from outrider.model.localtime import TraceTime
from outrider.model.machines import MachineSpec
from outrider.simulation.exogenous_events import (
    OwnerIntervals,
    exogenous_events,
    owner_intervals,
    reboot_times,
)
from outrider.simulation.grid_site import Run

NO_RUN: Final = -1
_GONE: Final = -2
"""Values instead of a machine number: the job does not run, or has left."""
_TICK_LAST: Final = 64
"""Sort key after all event kinds of the same time: decisions see everything of that time."""
_END: Final = 127
"""Sort key after every kind: the end of the trace."""
_AFTER_ALL: Final = (inf, _END, 0, None)


class SimulatedSite:
    """Simulator of a campus: executes starts and delivers ticks (`outrider.engine.Actuator`).

    A machine has one job at a time here; `DetailedSite` has machines of several CPUs.

    Args:
        campus: the trace, with true run times.
        until_s: stop after events of this second; None: the end of the trace.

    Attributes:
        now: time of the latest event that followed from a decision, seconds.
    """

    def __init__(self, campus: Campus, until_s: float | None = None) -> None:
        self.campus = campus
        self.until_s = campus.span_s if until_s is None else until_s
        self.now = -inf
        intervals = owner_intervals(campus)
        self._exogenous = exogenous_events(campus, intervals, self.until_s)
        self._logins_s: list[float] = by_machine(intervals, intervals.came_s)
        self._first: list[int] = (intervals.first + np.arange(len(intervals.first))).tolist()
        self._at: list[int] = self._first.copy()  # the next log-in at each machine
        self._reboots: list[float] = [*reboot_times(campus).tolist(), inf]
        self._next_reboot = 0
        self._run_s: list[float] = campus.run_s.tolist()
        self._has_job = bytearray(len(campus.machine_names))
        self._place = [NO_RUN] * len(campus.job_names)  # the machine of each running job
        # One entry per run. If the job is killed first, its entry is ignored when it comes up.
        self._heap: list[Event] = [(nextafter(self.until_s, inf), _END, 0, None)]
        self._started: list[Event] = []

    # -- actuator -----------------------------------------------------------------------------

    def start(self, job: int, machine: int) -> None:
        """Start a queued job. Raises `ValueError` if it is not, or the machine has a job."""
        if self._place[job] != NO_RUN or self._has_job[machine]:
            raise ValueError(f"job {job} cannot start on machine {machine} at {self.now:g} s")
        now = self.now
        login = self._next_login(machine)
        reboot = self._reboots[self._next_reboot]
        if reboot <= now:
            reboot = self._reboot_after_now()
        end = now + self._run_s[job]  # nan if it never ends
        if end <= login and end <= reboot:
            heappush(self._heap, (end, COMPLETED, job, None))
        elif login < reboot:
            heappush(self._heap, (login, EVICTED, job, "owner"))
        elif reboot < inf:
            heappush(self._heap, (reboot, EVICTED, job, "reboot"))
        self._place[job] = machine
        self._has_job[machine] = 1
        self._started.append((now, STARTED, job, (machine, 1)))

    def _next_login(self, machine: int) -> float:
        """Return the time of the next log-in, inf if none; the search resumes where it was."""
        now, logins_s, at = self.now, self._logins_s, self._at[machine]
        login = logins_s[at]
        while login <= now:
            at += 1
            login = logins_s[at]
        self._at[machine] = at
        return login

    def _reboot_after_now(self) -> float:
        """Return the time of the next reboot, inf if none; the search resumes where it was."""
        while self._reboots[self._next_reboot] <= self.now:
            self._next_reboot += 1
        return self._reboots[self._next_reboot]

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s` (not in the past), after all other events of that time."""
        heappush(self._heap, (time_s, _TICK_LAST, 0, None))

    # -- oracle -------------------------------------------------------------------------------

    def run_s(self, job: int) -> float:
        """Return the true run time, seconds; nan if the job never ends by itself."""
        return self._run_s[job]

    def next_login_s(self, machine: int, after_s: float) -> float:
        """Return the machine's first true log-in at or after `after_s`; inf if none."""
        first, after = self._first[machine], self._first[machine + 1]
        return self._logins_s[bisect_left(self._logins_s, after_s, first, after - 1)]

    def unfinished_run_s(self) -> Iterator[tuple[int, float]]:
        """Yield (job, true run time) of submitted jobs that have not left and would end."""
        submitted = (self.campus.submit_s <= self.until_s).tolist()
        for job, run_s in enumerate(self._run_s):
            if submitted[job] and self._place[job] != _GONE and not isnan(run_s):
                yield job, run_s

    # -- events -------------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """Yield all events in order, until the end of the trace.

        One flat generator: an inner one per time step costs a quarter of a replay's time.
        """
        yield from self._join()
        heap, started = self._heap, self._started
        for event in chain(self._exogenous.events(), (_AFTER_ALL,)):
            while heap[0] < event:
                due = heappop(heap)
                self.now, kind, job, _ = due
                if kind == _TICK_LAST:
                    while heap[0] == due:  # requested more than once
                        heappop(heap)
                    yield self.now, TICK, 0, None
                    yield from started
                    started.clear()
                elif kind == _END:
                    return
                elif self._advance_run(kind, job):
                    yield due
            if event[1] > SUBMITTED and not self._kill_job(event):
                continue
            yield event

    def _join(self) -> Iterator[Event]:
        campus = self.campus
        self.now = 0.0
        for machine in range(len(campus.machine_names)):
            spec = MachineSpec(
                cluster=campus.clusters[campus.machine_cluster[machine]].name,
                active_w=_known_w(campus.active_w[machine]),
                idle_w=_known_w(campus.idle_w[machine]),
                sleep_w=_known_w(campus.sleep_w[machine]),
                **_declared(campus, machine),
            )
            yield 0.0, JOINED, machine, spec
        for only in dict.fromkeys(campus.only or ()):
            if only:
                yield 0.0, ELIGIBLE, 0, (only, tuple(campus.members_of(only)), True)

    def _advance_run(self, kind: int, job: int) -> bool:
        """Apply the next event of a job's run, here its end; return False if it is over."""
        machine = self._place[job]
        if machine < 0:
            return False
        self._place[job] = NO_RUN if kind == EVICTED else _GONE
        self._has_job[machine] = 0
        return True

    def _kill_job(self, killed: Event) -> bool:
        """Remove a job, and end its run if it has one; return False if it had left already."""
        self.now, _, job, _ = killed
        if self._place[job] == NO_RUN:
            self._place[job] = _GONE
            return True
        return self._advance_run(REMOVED, job)


def by_machine(intervals: OwnerIntervals, times_s: Floats) -> list[float]:
    """Return the times of each machine's intervals, by machine, each list ended by inf."""
    times: list[float] = np.insert(times_s, intervals.first[1:], inf).tolist()
    return times


def _declared(campus: Campus, machine: int) -> dict[str, Any]:
    """Return what a machine declares besides its cluster and watts."""
    capacities = campus.capacities
    if capacities is None:
        return {}
    return {"cpus": int(capacities.cpus[machine]), "resources": capacities.declared(machine)}


def _known_w(watts: float) -> float | None:
    return None if isnan(watts) else float(watts)


# -- detailed site ---------------------------------------------------------------------------------
# Simulation of a campus with rules for runs, and with machines that several jobs share.
#
# The rules (`outrider.formats.campus.campus.RunRules`: wake-up delays, data transfer, suspension
# and checkpoints) and machines of several CPUs have a separate class, so that a plain campus,
# whose year must replay in seconds, does not pay for them.


class DetailedRun(Run):
    """Run of a job on a machine of a campus.

    Its `rate` is the part of the requested CPUs that it has.

    Attributes:
        woke: whether its machine was woken for it.
        setup_s: seconds of wake-up and data transfer before it works, part of `left_s`.
        busy_s: seconds that it had run at rate 1, setup included, when it was last suspended.
        due: time and kind of its next event in the heap; other entries are outdated.
    """

    __slots__ = ("busy_s", "due", "setup_s", "woke")

    def __init__(self, machine: int, woke: bool, setup_s: float, work_s: float, now: float) -> None:
        super().__init__(machine, setup_s + work_s)
        self.due: tuple[float, int] | None = None
        self.woke = woke
        self.setup_s = setup_s
        self.busy_s = 0.0
        self.since_s = now

    def pause(self, now: float) -> float:
        """Suspend the run; return the seconds of work that it did since it began to work."""
        worked_s = super().pause(now)
        self.busy_s += worked_s
        return worked_s

    def worked_s(self, now: float) -> float:
        """Return the seconds of work done by `now`, setup excluded."""
        went_s = max(0.0, now - self.since_s) * self.rate
        return max(0.0, self.busy_s + went_s - self.setup_s)


class DetailedSite(SimulatedSite):
    """Simulator of a campus with rules for runs, and machines of several CPUs.

    A job occupies its CPUs from its start: it waits until the machine is awake, copies its data,
    then works. It is suspended when the owner logs in, and resumes if the owner logs out within
    `suspend_s`; otherwise it is evicted after that time. A run writes a checkpoint after every
    `checkpoint_every_s` of work; the job's next run needs only the work not yet saved. An event of
    a machine affects all jobs that run there: its owner evicts them all.
    """

    def __init__(self, campus: Campus, until_s: float | None = None) -> None:
        super().__init__(campus, until_s)
        self.rules = campus.run_rules
        intervals = owner_intervals(campus)
        self._logouts_s = by_machine(intervals, intervals.went_s)
        self._clock = TraceTime(campus.start)
        self._reboot_times = frozenset(self._reboots)
        self._idle_from = [0.0] * len(campus.machine_names)
        self._asked: list[int] = _cpus(campus.requests, len(campus.job_names))
        self._left: list[int] = _cpus(campus.capacities, len(campus.machine_names))
        self._runs_n = [0] * len(campus.machine_names)
        self._running: dict[int, DetailedRun] = {}
        self._saved_s: dict[int, float] = {}

    # -- oracle -------------------------------------------------------------------------------

    def run_s(self, job: int) -> float:
        """Return the true length, seconds, of a run started now on a machine that is awake."""
        left_s = self._run_s[job] - self.saved_s(job)
        return left_s if isnan(left_s) else self.rules.transfer_s + left_s

    def work_s(self, job: int) -> float:
        """Return the true work of the whole job, seconds; nan if it never ends by itself."""
        return self._run_s[job]

    def saved_s(self, job: int) -> float:
        """Return the seconds of a job's work in its checkpoints; 0 once it has left."""
        return self._saved_s.get(job, 0.0)

    def woke(self, job: int) -> bool:
        """Return whether the machine was woken for the present run of a job."""
        return self._running[job].woke

    # -- runs ---------------------------------------------------------------------------------

    def start(self, job: int, machine: int) -> None:
        """Start a queued job. Raises `ValueError` if it is not, or too wide for the machine.

        Memory and GPUs are not checked: the engine places by them.
        """
        self._begin(job, machine, self._asked[job])

    def _begin(self, job: int, machine: int, cpus: int) -> None:
        if self._place[job] != NO_RUN or cpus > self._left[machine]:
            raise ValueError(f"job {job} cannot start on machine {machine} at {self.now:g} s")
        now = self.now
        self._next_login(machine)
        woke = self._sleeps(machine)
        setup_s = self.rules.transfer_s + (self.rules.wake_s if woke else 0.0)
        work_s = inf if isnan(self._run_s[job]) else self._run_s[job] - self.saved_s(job)
        run = self._running[job] = DetailedRun(machine, woke, setup_s, work_s, now)
        self._give(job, run, cpus)
        self._schedule_next_event(job, run)
        self._place[job] = machine
        self._started.append((now, STARTED, job, (machine, cpus)))

    def _give(self, job: int, run: DetailedRun, cpus: int) -> None:
        """Set the number of CPUs of a run from now on; 0: none."""
        machine = run.machine
        self._left[machine] += run.cpus - cpus
        self._runs_n[machine] += (cpus > 0) - (run.cpus > 0)
        run.cpus, run.rate = cpus, cpus / self._asked[job]
        if not self._runs_n[machine]:
            self._idle_from[machine] = self.now

    def _schedule(
        self, job: int, run: DetailedRun, time_s: float, kind: int, why: str | None
    ) -> None:
        run.due = time_s, kind
        heappush(self._heap, (time_s, kind, job, why))

    def _schedule_next_event(self, job: int, run: DetailedRun) -> None:
        """Schedule the first event of a run: its end, the next log-in or the reboot."""
        login, reboot = self._next_login(run.machine), self._reboot_after_now()
        end = run.end_s()
        if end <= login and end <= reboot:
            run.due = None
            if end < inf:
                self._schedule(job, run, end, COMPLETED, None)
        elif reboot <= login:
            self._schedule(job, run, reboot, EVICTED, "reboot")
        elif self.rules.suspend_s:
            self._schedule(job, run, login, SUSPENDED, None)
        else:
            self._schedule(job, run, login, EVICTED, "owner")

    def _advance_run(self, kind: int, job: int) -> bool:
        """Suspend, resume or end a job's run; return False if it, or this event of it, is over."""
        run = self._running.get(job)
        if run is None or (kind != REMOVED and run.due != (self.now, kind)):
            return False
        if kind in (SUSPENDED, RESUMED):
            (self._suspend if kind == SUSPENDED else self._resume)(job, run)
            return True
        super()._advance_run(kind, job)
        del self._running[job]
        self._save_work(kind, job, run)
        self._give(job, run, 0)
        return True

    def _suspend(self, job: int, run: DetailedRun) -> None:
        """Suspend a run at a log-in; schedule its eviction, or its resumption if that is sooner."""
        run.pause(self.now)
        self._next_login(run.machine)
        leaves = self._logouts_s[self._at[run.machine] - 1]
        evicts = self.now + self.rules.suspend_s
        if leaves > evicts:
            self._schedule(job, run, evicts, EVICTED, "owner")
        elif leaves in self._reboot_times:
            self._schedule(job, run, leaves, EVICTED, "reboot")
        else:
            self._schedule(job, run, leaves, RESUMED, None)

    def _resume(self, job: int, run: DetailedRun) -> None:
        """Continue a suspended run."""
        run.since_s = self.now
        self._schedule_next_event(job, run)

    def _save_work(self, kind: int, job: int, ended: DetailedRun) -> None:
        """Keep the work that checkpoints of an ended run hold; drop it if the job completed."""
        every_s = self.rules.checkpoint_every_s
        if kind == COMPLETED:
            self._saved_s.pop(job, None)
        elif every_s < inf:
            saved_s = every_s * (ended.worked_s(self.now) // every_s)
            self._saved_s[job] = self.saved_s(job) + saved_s

    def _kill_job(self, killed: Event) -> bool:
        """Remove a job and its checkpoints; return False if it had left already."""
        was_there = super()._kill_job(killed)
        self._saved_s.pop(killed[2], None)
        return was_there

    # -- machines -----------------------------------------------------------------------------

    def _sleeps(self, machine: int) -> bool:
        """Return whether an idle machine sleeps now; `_next_login` must be called before."""
        if not (self.rules.wake_s or self.rules.wake_j) or self._runs_n[machine]:
            return False
        at = self._at[machine]
        left_s = self._logouts_s[at - 1] if at > self._first[machine] else 0.0
        self._reboot_after_now()
        night_s = self._reboots[self._next_reboot - 1] if self._next_reboot else 0.0
        idle_from: float = max(self._idle_from[machine], left_s, night_s)
        habits = self.campus.clusters[self.campus.machine_cluster[machine]]
        sleeps_at: float = idle_from + habits.sleep_after_s(self._clock.week_second(idle_from))
        return self.now >= sleeps_at


def _cpus(amounts: Amounts | None, rows_n: int) -> list[int]:
    """Return the CPUs of each machine or job."""
    return [1] * rows_n if amounts is None else amounts.cpus.tolist()


# -- shared site -----------------------------------------------------------------------------------
# Simulation of a campus of wide machines, where policies may also plan.


class SharedSite(DetailedSite):
    """Simulator of wide machines that also executes plans (`outrider.engine.ports.PlanActuator`).

    On fewer CPUs than it requests a job works at that fraction of its speed. A job that a policy
    preempts keeps its work and its machine, where it can be resumed.
    """

    def shrink(self, job: int, machine: int, cpus: int) -> None:
        """Start a queued job on `cpus` CPUs, or give a running one that many."""
        run = self._running.get(job)
        if run is None:
            self._begin(job, machine, cpus)
            return
        self._refuse_too_many(job, run, cpus)
        run.pause(self.now)
        self._go_on(job, run, cpus)
        self._started.append((self.now, RESIZED, job, cpus))

    def preempt(self, job: int) -> None:
        """Suspend a running job; it gives its CPUs back and keeps its work."""
        run = self._running[job]
        run.pause(self.now)
        run.due = None
        self._give(job, run, 0)
        self._started.append((self.now, SUSPENDED, job, CPUS_GIVEN_BACK))

    def resume(self, job: int, cpus: int) -> None:
        """Resume a preempted job, without loss of work."""
        run = self._running[job]
        self._refuse_too_many(job, run, cpus)
        self._go_on(job, run, cpus)
        self._started.append((self.now, RESUMED, job, (run.machine, cpus)))

    def _go_on(self, job: int, run: DetailedRun, cpus: int) -> None:
        self._give(job, run, cpus)
        run.since_s = self.now
        self._schedule_next_event(job, run)

    def _refuse_too_many(self, job: int, run: DetailedRun, cpus: int) -> None:
        if cpus > self._left[run.machine] + run.cpus:
            raise ValueError(f"job {job} cannot have {cpus} CPUs at {self.now:g} s")


def simulated_site(campus: Campus, until_s: float | None = None) -> SimulatedSite:
    """Return the simulation of a campus, of the fastest class that suffices for it."""
    if campus.shares_machines:
        return SharedSite(campus, until_s)
    return (SimulatedSite if campus.run_rules == PLAIN_RUNS else DetailedSite)(campus, until_s)
