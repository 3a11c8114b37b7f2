"""The virtual site: what really happens to machines and jobs, given who starts what.

The generator `VirtualSite.events` merges what is certain (owners, reboots, submissions) with
what decisions bring about (ends of runs, wake-ups). It resumes after the engine has handled an
event, so it sees the starts decided on it. A run has one entry in the heap: at its start the
site looks up which comes first, its end, the next log-in or the reboot.
"""

import heapq
from bisect import bisect_left
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
from outrider.model.machines import MachineSpec
from outrider.virtual.campus import Campus
from outrider.virtual.stream import END, certain_events, owner_stretches, reboot_times


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
        self._stream = certain_events(campus, stretches, self.until_s)
        self._first = stretches.first.tolist()
        self._came: list[float] = stretches.came_s.tolist()
        self._at = self._first[:-1]  # the next stretch of each machine, not yet begun
        self._reboots = [*reboot_times(campus).tolist(), inf]
        self._next_reboot = 0
        self._run_s: list[float] = campus.run_s.tolist()
        self._has_job = bytearray(len(campus.machine_names))
        self._run: dict[int, tuple[int, int]] = {}  # job -> (machine, run number)
        self._queued: set[int] = set()
        self._runs = 0
        self._heap: list[tuple[float, int, int, int, Any]] = []
        self._started: list[Event] = []
        self._tick_due = False

    # -- the sink -----------------------------------------------------------------------------

    def start(self, job: int, machine: int) -> None:
        """Start a queued job on a machine without a job. Raises `ValueError` if that cannot be."""
        if job not in self._queued or self._has_job[machine]:
            raise ValueError(f"job {job} cannot start on machine {machine} at {self.now:g} s")
        now = self.now
        login = self._next_login(machine, now)
        while self._reboots[self._next_reboot] <= now:
            self._next_reboot += 1
        reboot = self._reboots[self._next_reboot]
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
        self._has_job[machine] = 1
        self._run[job] = (machine, run)
        self._started.append((now, STARTED, job, (machine, 1)))

    def _next_login(self, machine: int, now: float) -> float:
        """When an owner comes next. Time only goes on, so the search does too."""
        came, at, after = self._came, self._at[machine], self._first[machine + 1]
        while at < after and came[at] <= now:
            at += 1
        self._at[machine] = at
        return came[at] if at < after else inf

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s`, after all other events of that moment."""
        if time_s <= self.now:
            self._tick_due = True
        else:
            heapq.heappush(self._heap, (time_s, TICK, 0, 0, None))

    # -- the oracle ---------------------------------------------------------------------------

    def run_s(self, job: int) -> float:
        """The truth: seconds until the job ends by itself; nan if it never does."""
        return self._run_s[job]

    def next_login_s(self, machine: int, after_s: float) -> float:
        """The truth: when an owner next sits down at the machine, at or after a moment."""
        after = self._first[machine + 1]
        at = bisect_left(self._came, after_s, self._first[machine], after)
        return self._came[at] if at < after else inf

    def unfinished_run_s(self) -> Iterator[tuple[int, float]]:
        """The truth about jobs still there: (job, run time), those that would have ended."""
        for job in [*self._queued, *self._run]:
            if not isnan(self._run_s[job]):
                yield job, self._run_s[job]

    # -- events -------------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """Everything that happens, in order, until the end.

        One flat generator: an inner one for every moment costs a quarter of a replay's time.
        """
        yield from self._join()
        heap, started, queued = self._heap, self._started, self._queued
        for chunk in self._stream.chunks():
            for event in chunk:
                while True:
                    # kinds of the heap never stand in the stream: time and kind always decide
                    due = heap[0] if heap and heap[0] < event else event
                    time_s = due[0]
                    if time_s > self.now:
                        if self._tick_due:
                            self._tick_due = False
                            yield self.now, TICK, 0, None
                            yield from started
                            started.clear()
                            continue
                        self.now = time_s
                    if due is event:
                        break
                    _, kind, job, run, extra = heapq.heappop(heap)
                    if kind == TICK:
                        self._tick_due = True
                    elif self._turn(kind, job, run):
                        yield time_s, kind, job, extra
                kind = event[1]
                if kind == SUBMITTED:
                    queued.add(event[2])
                elif kind == END or (kind == REMOVED and not self._forget(event[2])):
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
            )
            yield 0.0, JOINED, machine, spec

    def _turn(self, kind: int, job: int, run: int) -> bool:
        """A run takes a turn, here always its end. False if it was cut short before."""
        place = self._run.get(job)
        if place is None or place[1] != run:
            return False
        del self._run[job]
        self._has_job[place[0]] = 0
        if kind == EVICTED:
            self._queued.add(job)
        return True

    def _forget(self, job: int) -> bool:
        """A job is killed. False if it had ended already."""
        if job in self._queued:
            self._queued.discard(job)
            return True
        place = self._run.get(job)
        return place is not None and self._turn(REMOVED, job, place[1])


def _known_w(watts: float) -> float | None:
    return None if isnan(watts) else float(watts)
