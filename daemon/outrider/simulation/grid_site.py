"""Discrete-event simulation of a grid: jobs with one or many CPUs under given decisions.

Runs end after their true run time; on fewer CPUs than requested or on a slower machine, later.
They can be preempted, resumed without loss, and given more or fewer CPUs while they run.
"""

import heapq
from collections import deque
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from outrider.formats.workload import Floats, Workload
from outrider.model.events import (
    COMPLETED,
    CPUS_GIVEN_BACK,
    ELIGIBLE,
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
from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility, utility_of

_SPEED: Final = -1
_NODE_QUEUE: Final = 1_000_000_000
"""CPUs reported for a machine with a local queue: it accepts every job."""
STALLED_AFTER_S: Final = 182 * 86_400.0
"""Seconds without progress after which a run is stalled.

Half a year: a policy that explores once in a thousand hours still starts its last job."""


class Run:
    """Run of a job, with its remaining work: of a grid, a campus or a forecast.

    Attributes:
        machine: number of its machine.
        cpus: CPUs that it has; 0 before it works and while it is preempted.
        rate: seconds of its work per second.
        left_s: seconds of work left at `since_s` at rate 1; inf if it never ends by itself.
        since_s: the time to which `left_s` refers; inf once `pause` was called.
    """

    __slots__ = ("cpus", "left_s", "machine", "rate", "since_s")

    def __init__(self, machine: int, left_s: float) -> None:
        self.machine = machine
        self.cpus = 0
        self.rate = 0.0
        self.left_s = left_s
        self.since_s = inf

    def pause(self, now: float) -> float:
        """Suspend the run; return the seconds of work that it did since it began to work."""
        worked_s = max(0.0, now - self.since_s) * self.rate
        self.left_s -= worked_s
        self.since_s = inf
        return worked_s

    def end_s(self) -> float:
        """Return when a run that works ends; inf if it never does."""
        return self.since_s + max(0.0, self.left_s) / self.rate


class GridRunningJob(Run):
    """Run of a job on a grid.

    Attributes:
        number: version of its scheduled end; entries of earlier versions are ignored.
    """

    __slots__ = ("number",)

    def __init__(self, machine: int, left_s: float) -> None:
        super().__init__(machine, left_s)
        self.number = 0


class GridSite:
    """Simulator of a workload: executes plans and delivers ticks (`PlanActuator`).

    Args:
        workload: the trace, with true run times.
        until_s: stop after events of this second; None: when every job is done.
        utilities: time utility functions by job class; used if hopeless jobs are withdrawn.
    """

    def __init__(
        self,
        workload: Workload,
        until_s: float | None = None,
        utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES,
    ) -> None:
        self.workload = workload
        self.until_s = inf if until_s is None else until_s
        self.now = -inf
        self._moved_s = -inf
        self._run_s: list[float] = workload.run_s.tolist()
        self._cpus: list[int] = workload.cpus.tolist()
        self._submit_s: list[float] = workload.submit_s.tolist()
        self._speed = [spec.speed for spec in workload.machines]
        self._worthless_s = (
            _worthless_s(workload, utilities) if workload.rules.drop_hopeless else None
        )
        self._next = 0
        self._first_start_s: list[float] = [inf] * len(self._submit_s)
        self._queued: set[int] = set()
        self._runs: dict[int, GridRunningJob] = {}
        self._sent: list[deque[int]] = [deque() for _ in workload.machines]
        self._schedules = 0
        self._heap: list[tuple[float, int, int, int, Any]] = [
            (change.time_s, _SPEED, change.machine, 0, change.speed)
            for change in workload.speed_changes
        ]
        heapq.heapify(self._heap)
        self._decided_events: list[Event] = []
        self._tick_due = False

    # -- actuator -----------------------------------------------------------------------------

    def start(self, job: int, machine: int) -> None:
        """Start a job on all the CPUs it requests. Raises `ValueError` if it is not queued."""
        self.shrink(job, machine, self._cpus[job])

    def shrink(self, job: int, machine: int, cpus: int) -> None:
        """Start a queued job on `cpus` CPUs, or give a running one that many."""
        run = self._runs.get(job)
        if run is not None and run.cpus:
            self._set_cpus(job, run, cpus)
            self._decided_events.append((self.now, RESIZED, job, cpus))
            return
        if job not in self._queued:
            raise ValueError(f"job {job} is not queued at {self.now:g} s")
        self._queued.discard(job)
        run = self._runs[job] = GridRunningJob(machine, self._run_s[job])
        self._first_start_s[job] = self.now
        self._decided_events.append((self.now, STARTED, job, (machine, cpus)))
        if self.workload.rules.node_queues:
            self._sent[machine].append(job)
            if len(self._sent[machine]) > 1:
                return  # it works once the jobs before it are done
        self._set_cpus(job, run, cpus)

    def preempt(self, job: int) -> None:
        """Suspend a running job; it releases its CPUs and keeps its work."""
        run = self._runs[job]
        self._set_cpus(job, run, 0)
        self._schedule_withdrawal(job, run.left_s, run.number)
        self._decided_events.append((self.now, SUSPENDED, job, CPUS_GIVEN_BACK))

    def resume(self, job: int, cpus: int) -> None:
        """Resume a preempted job, without loss of work."""
        run = self._runs[job]
        self._set_cpus(job, run, cpus)
        self._decided_events.append((self.now, RESUMED, job, (run.machine, cpus)))

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s`, after all other events of that moment."""
        if time_s <= self.now:
            self._tick_due = True
        else:
            heapq.heappush(self._heap, (time_s, TICK, 0, 0, None))

    # -- work ---------------------------------------------------------------------------------

    def _set_cpus(self, job: int, run: GridRunningJob, cpus: int) -> None:
        """Give the run `cpus` CPUs from now on and schedule its end."""
        if run.cpus:
            run.pause(self.now)
        run.since_s, run.cpus = self.now, cpus
        run.rate = self._work_rate(job, run)
        self._schedules += 1
        run.number = self._schedules
        if run.rate > 0.0:
            heapq.heappush(self._heap, (run.end_s(), COMPLETED, job, run.number, None))

    def _work_rate(self, job: int, run: Run) -> float:
        """Return seconds of work per second (Vengerov 2005, section 5).

        The run time is L x NI / min(NA, NI).
        """
        asked = self._cpus[job]
        return self._speed[run.machine] * min(run.cpus, asked) / asked

    def _change_speed(self, machine: int, speed: float) -> None:
        """Set the machine's speed and reschedule the ends of its runs."""
        self._speed[machine] = speed
        for job, run in self._runs.items():
            if run.machine == machine and run.cpus:
                self._set_cpus(job, run, run.cpus)

    # -- oracle -------------------------------------------------------------------------------

    def run_s(self, job: int) -> float:
        """Return the true run time on all requested CPUs at speed 1, seconds."""
        return self._run_s[job]

    def next_login_s(self, machine: int, after_s: float) -> float:
        """Return inf: the machines of a grid have no owners."""
        return inf

    def unfinished_run_s(self) -> Iterator[tuple[int, float]]:
        """Yield (job, true run time) of jobs that are queued, running or preempted."""
        for job in [*self._queued, *self._runs]:
            yield job, self._run_s[job]

    @property
    def is_done(self) -> bool:
        """True if every job has been submitted and has left."""
        return self._next == len(self._submit_s) and not self._queued and not self._runs

    @property
    def is_stalled(self) -> bool:
        """True if all remaining jobs are deferred repeatedly, and nothing else happens.

        It becomes true after `STALLED_AFTER_S` in which the site did nothing but call its policy,
        and only if no `until_s` ends it.
        """
        return (
            self.until_s == inf
            and self._next == len(self._submit_s)
            and bool(self._heap)
            and self._heap[0][0] - self._moved_s > STALLED_AFTER_S
            and all(kind == TICK for _, kind, *_ in self._heap)
        )

    def waits_s(self) -> Floats:
        """Return waits until start, seconds (jobs,); inf: never started, nan: not submitted."""
        waits_s: Floats = np.array(self._first_start_s) - self.workload.submit_s
        waits_s[self._next :] = np.nan
        return waits_s

    # -- events -------------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """Yield all events in order, until every job has left, `until_s`, or it is stalled."""
        yield from self._join()
        decided_events = self._decided_events
        while True:
            event = self._next_event()
            if self._tick_due and (event is None or event[0] > self.now):
                self._tick_due = False
                yield self.now, TICK, 0, None
                yield from decided_events
                decided_events.clear()
                continue
            if event is None or event[0] > self.until_s:
                return
            applied = self._apply(*event)
            if applied is not None:
                yield applied

    def _next_event(self) -> tuple[float, int, int, int, Any] | None:
        """Return the next event, by time and then by kind; None if nothing is left."""
        due = self._heap[0] if self._heap else None
        job = self._next
        if job < len(self._submit_s):
            at_s = self._submit_s[job]
            if due is None or at_s < due[0] or (at_s == due[0] and due[1] > SUBMITTED):
                return at_s, SUBMITTED, job, 0, None
        elif self.is_done or self.is_stalled:
            return None  # speed changes alone would change nothing
        return due

    def _apply(
        self, time_s: float, kind: int, subject: int, number: int, extra: Any
    ) -> Event | None:
        """Apply an event to the site; return the event for the engine, if there is one."""
        self.now = max(self.now, time_s)
        if kind == SUBMITTED:
            self._next += 1
            self._queued.add(subject)
            self._moved_s = self.now
            self._schedule_withdrawal(subject, self._run_s[subject], 0)
            return time_s, SUBMITTED, subject, self.workload.spec(subject)
        heapq.heappop(self._heap)
        if kind == TICK:
            self._tick_due = True
            return None
        self._moved_s = self.now
        if kind == _SPEED:
            self._change_speed(subject, extra)
        elif kind == COMPLETED and self._complete(subject, number):
            return time_s, COMPLETED, subject, None
        elif kind == REMOVED and self._withdraw(subject, number):
            return time_s, REMOVED, subject, "removed"
        return None

    def _complete(self, job: int, number: int) -> bool:
        """End a run; return False if its CPUs changed since this end was scheduled."""
        run = self._runs.get(job)
        if run is None or run.number != number:
            return False
        del self._runs[job]
        if self.workload.rules.node_queues:
            sent = self._sent[run.machine]
            sent.popleft()
            if sent:
                self._set_cpus(sent[0], self._runs[sent[0]], self._cpus[sent[0]])
        return True

    def _schedule_withdrawal(self, job: int, left_s: float, number: int) -> None:
        """Schedule a job's withdrawal for when an immediate start would have utility 0."""
        if self._worthless_s is not None:
            at_s = max(self.now, self._submit_s[job] + self._worthless_s[job] - left_s)
            if at_s < inf:
                heapq.heappush(self._heap, (at_s, REMOVED, job, number, None))

    def _withdraw(self, job: int, number: int) -> bool:
        """Withdraw a hopeless job; return False if it runs, or has run since."""
        if number == 0 and job in self._queued:
            self._queued.discard(job)
            return True
        run = self._runs.get(job)
        if run is None or run.cpus or run.number != number:
            return False
        del self._runs[job]
        if self.workload.rules.node_queues:
            self._sent[run.machine].remove(job)
        return True

    def _join(self) -> Iterator[Event]:
        self.now = 0.0
        queues = self.workload.rules.node_queues
        for machine, spec in enumerate(self.workload.machines):
            yield 0.0, JOINED, machine, replace(spec, cpus=_NODE_QUEUE) if queues else spec
        for name, machines in self.workload.classes.items():
            yield 0.0, ELIGIBLE, 0, (name, machines, True)


def _worthless_s(workload: Workload, utilities: Mapping[str, TimeUtility]) -> list[float]:
    """Return the turnaround (jobs,), seconds, from which a job's utility is 0."""
    classes = np.array(workload.job_class)
    out = np.empty(len(classes))
    for name in set(workload.job_class):
        of_class = classes == name
        out[of_class] = worthless_after_s(utility_of(utilities, name), workload.run_s[of_class])
    worthless_s: list[float] = out.tolist()
    return worthless_s


# -- patience --------------------------------------------------------------------------------------
# Turnaround from which a job no longer earns utility.

_HORIZONS: Final = 40
_HALVINGS: Final = 60


def worthless_after_s(utility: TimeUtility, ideal_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the turnaround (jobs,), seconds, from which a job's utility is 0; inf if never.

    Found by bisection, for a utility that does not rise with the turnaround and reaches 0 within
    2^40 ideal run times.

    Args:
        utility: time utility function of the jobs' class.
        ideal_s: (jobs,) run times, seconds.
    """
    low, high = ideal_s.copy(), np.maximum(ideal_s, 1e-3)
    for _ in range(_HORIZONS):
        high = np.where(utility.unit(high, ideal_s) > 0.0, 2.0 * high, high)
    never = utility.unit(high, ideal_s) > 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        worth = utility.unit(middle, ideal_s) > 0.0
        low, high = np.where(worth, middle, low), np.where(worth, high, middle)
    return np.where(never, np.inf, high)
