"""Discrete-event simulation of a campus: what happens to machines and jobs under given starts.

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

from outrider.formats.campus.campus import Campus, Floats
from outrider.model.events import (
    COMPLETED,
    ELIGIBLE,
    EVICTED,
    JOINED,
    REMOVED,
    STARTED,
    SUBMITTED,
    TICK,
    Event,
)
from outrider.model.machines import MachineSpec
from outrider.simulation.exogenous_events import (
    OwnerIntervals,
    exogenous_events,
    owner_intervals,
    reboot_times,
)

NO_RUN: Final = -1
_GONE: Final = -2
"""Instead of a machine number: the job does not run, or has left (completed or killed)."""

_TICK_LAST: Final = 64
"""Sorts after all event kinds of the same time: decisions see everything that happened then."""
_END: Final = 127
"""Sorts after every kind: the end of the trace."""
_AFTER_ALL: Final = (inf, _END, 0, None)


class SimulatedSite:
    """Simulates a campus; carries out starts and delivers ticks (`outrider.engine.ports.Actuator`).

    A machine has one job at a time here; `DetailedSite` has machines of several CPUs.

    Args:
        campus: the trace, truth included.
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
        """Start a job. Raises `ValueError` if it runs or has left, or the machine has a job."""
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
        """Time of the next log-in; inf if none. Time never decreases, so the search resumes."""
        now, logins_s, at = self.now, self._logins_s, self._at[machine]
        login = logins_s[at]
        while login <= now:
            at += 1
            login = logins_s[at]
        self._at[machine] = at
        return login

    def _reboot_after_now(self) -> float:
        """Time of the next reboot; inf if none. Time never decreases, so the search resumes."""
        while self._reboots[self._next_reboot] <= self.now:
            self._next_reboot += 1
        return self._reboots[self._next_reboot]

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s` (not in the past), after all other events of that time."""
        heappush(self._heap, (time_s, _TICK_LAST, 0, None))

    # -- oracle -------------------------------------------------------------------------------

    def run_s(self, job: int) -> float:
        """True run time, seconds; nan if the job never ends by itself."""
        return self._run_s[job]

    def next_login_s(self, machine: int, after_s: float) -> float:
        """True time of the machine's first log-in at or after `after_s`; inf if none."""
        first, after = self._first[machine], self._first[machine + 1]
        return self._logins_s[bisect_left(self._logins_s, after_s, first, after - 1)]

    def unfinished_run_s(self) -> Iterator[tuple[int, float]]:
        """Submitted jobs that have not left and would end by themselves: (job, true run time)."""
        submitted = (self.campus.submit_s <= self.until_s).tolist()
        for job, run_s in enumerate(self._run_s):
            if submitted[job] and self._place[job] != _GONE and not isnan(run_s):
                yield job, run_s

    # -- events -------------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """All events in order, until the end of the trace.

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
        """Apply the next event of a job's run, here always its end. False if the run is over."""
        machine = self._place[job]
        if machine < 0:
            return False
        self._place[job] = NO_RUN if kind == EVICTED else _GONE
        self._has_job[machine] = 0
        return True

    def _kill_job(self, killed: Event) -> bool:
        """Remove a job, and end its run if it has one. False if it had left already."""
        self.now, _, job, _ = killed
        if self._place[job] == NO_RUN:
            self._place[job] = _GONE
            return True
        return self._advance_run(REMOVED, job)


def by_machine(intervals: OwnerIntervals, times_s: Floats) -> list[float]:
    """Times of each machine's intervals, machine after machine, each list ended by inf."""
    times: list[float] = np.insert(times_s, intervals.first[1:], inf).tolist()
    return times


def _declared(campus: Campus, machine: int) -> dict[str, Any]:
    """What a machine declares besides its cluster and watts."""
    capacities = campus.capacities
    if capacities is None:
        return {}
    return {"cpus": int(capacities.cpus[machine]), "resources": capacities.declared(machine)}


def _known_w(watts: float) -> float | None:
    return None if isnan(watts) else float(watts)
