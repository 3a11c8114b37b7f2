"""The virtual site: what really happens to machines and jobs, given who starts what.

The generator `VirtualSite.events` merges what is certain (owners, reboots, submissions) with
what decisions bring about (ends of runs, wake-ups). It resumes after the engine has handled an
event, so it sees the starts decided on it. A run has one entry in the heap: at its start the
site looks up which comes first, its end, the next log-in or the reboot.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from math import inf, isnan
from typing import Any

from outrider.model.events import (
    COMPLETED,
    EVICTED,
    JOINED,
    REMOVED,
    STARTED,
    SUBMITTED,
    TICK,
    Event,
)
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.virtual.campus import Campus
from outrider.virtual.stream import certain_events, owner_stretches, reboot_times


class VirtualSite:
    """Physics of a campus; carries out starts and wakes the engine (`outrider.engine.Sink`).

    Args:
        campus: the trace, truth included.
        until_s: stop after events of this second; None: the end of the trace.
    """

    def __init__(self, campus: Campus, until_s: float | None = None) -> None:
        self.campus = campus
        self.until_s = campus.span_s if until_s is None else until_s
        self.now = -inf
        stretches = owner_stretches(campus)
        self._stream = certain_events(campus, stretches)
        self._first = stretches.first.tolist()
        self._came = stretches.came_s.tolist()
        self._reboots = reboot_times(campus).tolist()
        self._run_s = campus.run_s.tolist()
        self._occupant: dict[int, int] = {}
        self._run: dict[int, tuple[int, int]] = {}  # job -> (machine, run number)
        self._queued: set[int] = set()
        self._runs = 0
        self._heap: list[tuple[float, int, int, int, Any]] = []
        self._started: list[Event] = []
        self._tick_due = False
        self._specs = _job_specs(campus)

    # -- the sink -----------------------------------------------------------------------------

    def start(self, job: int, machine: int) -> None:
        """Start a queued job on a machine without a job. Raises `ValueError` if that cannot be."""
        if job not in self._queued or machine in self._occupant:
            raise ValueError(f"job {job} cannot start on machine {machine} at {self.now:g} s")
        now = self.now
        at = bisect_left(self._came, now, self._first[machine], self._first[machine + 1])
        login = self._came[at] if at < self._first[machine + 1] else inf
        at = bisect_right(self._reboots, now)
        reboot = self._reboots[at] if at < len(self._reboots) else inf
        run_s = self._run_s[job]
        end = inf if isnan(run_s) else now + run_s
        self._runs += 1
        run = self._runs
        if end <= login and end <= reboot:
            if end < inf:
                heapq.heappush(self._heap, (end, COMPLETED, job, run, None))
        elif login < reboot:
            heapq.heappush(self._heap, (login, EVICTED, job, run, "owner"))
        else:
            heapq.heappush(self._heap, (reboot, EVICTED, job, run, "reboot"))
        self._queued.discard(job)
        self._occupant[machine] = job
        self._run[job] = (machine, run)
        self._started.append((now, STARTED, job, (machine, 1)))

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s`, after all other events of that moment."""
        if time_s <= self.now:
            self._tick_due = True
        else:
            heapq.heappush(self._heap, (time_s, TICK, 0, 0, None))

    def unfinished_run_s(self) -> Iterator[tuple[int, float]]:
        """The truth about jobs still there: (job, run time), those that would have ended."""
        for job in [*self._queued, *self._run]:
            if not isnan(self._run_s[job]):
                yield job, self._run_s[job]

    # -- events -------------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """Everything that happens, in order, until the end."""
        yield from self._join()
        heap, until_s = self._heap, self.until_s
        for chunk in self._stream.chunks():
            for time_s, kind, subject in chunk:
                if time_s > self.now:
                    if time_s > until_s:
                        break
                    if self._tick_due or (heap and heap[0][0] < time_s):
                        yield from self._until(time_s)
                    self.now = time_s
                if heap and heap[0][0] == time_s and heap[0][1] < kind:
                    yield from self._same_moment(time_s, kind)
                if kind == SUBMITTED:
                    self._queued.add(subject)
                    yield time_s, SUBMITTED, subject, self._spec_of(subject)
                elif kind != REMOVED:
                    yield time_s, kind, subject, None
                elif self._forget(subject):
                    yield time_s, REMOVED, subject, "killed"
        yield from self._until(inf)

    def _join(self) -> Iterator[Event]:
        campus = self.campus
        self.now = 0.0
        for machine in range(len(campus.machine_names)):
            spec = MachineSpec(
                cluster=campus.clusters[campus.machine_cluster[machine]].name,
                active_w=float(campus.active_w[machine]),
                idle_w=float(campus.idle_w[machine]),
                sleep_w=float(campus.sleep_w[machine]),
            )
            yield 0.0, JOINED, machine, spec

    def _until(self, time_s: float) -> Iterator[Event]:
        """Ticks due now, then whatever the heap holds before `time_s`."""
        heap, until_s = self._heap, self.until_s
        while True:
            if self._tick_due:
                self._tick_due = False
                yield self.now, TICK, 0, None
                if self._started:
                    yield from self._started
                    self._started.clear()
            elif heap and heap[0][0] < time_s and heap[0][0] <= until_s:
                self.now = heap[0][0]
                yield from self._same_moment(self.now, TICK)
            else:
                return

    def _same_moment(self, time_s: float, before_kind: int) -> Iterator[Event]:
        """Ends of runs (and wake-ups) at this very moment that come before a kind."""
        heap = self._heap
        while heap and heap[0][0] == time_s and heap[0][1] <= before_kind:
            _, kind, job, run, extra = heapq.heappop(heap)
            if kind == TICK:
                self._tick_due = True
                continue
            place = self._run.get(job)
            if place is None or place[1] != run:
                continue  # that run was cut short
            del self._run[job]
            del self._occupant[place[0]]
            if kind == EVICTED:
                self._queued.add(job)
            yield time_s, kind, job, extra

    def _forget(self, job: int) -> bool:
        """A job is killed. False if it had ended already."""
        if job in self._queued:
            self._queued.discard(job)
            return True
        place = self._run.pop(job, None)
        if place is None:
            return False
        del self._occupant[place[0]]
        return True

    def _spec_of(self, job: int) -> JobSpec:
        campus = self.campus
        return self._specs[campus.user[job], campus.vo[job]]


def _job_specs(campus: Campus) -> dict[tuple[int, int], JobSpec]:
    """One specification for all jobs of a user and VO: they never differ in anything else."""
    pairs = {(int(u), int(v)) for u, v in zip(campus.user, campus.vo, strict=True)}
    return {(u, v): JobSpec(user=campus.user_names[u], vo=campus.vo_names[v]) for u, v in pairs}
