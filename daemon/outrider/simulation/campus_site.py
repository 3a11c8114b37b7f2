"""The virtual site: what really happens to machines and jobs, given who starts what.

The generator `VirtualSite.events` merges what is certain (owners, reboots, submissions) with
what decisions bring about (ends of runs, wake-ups). It resumes after the engine has handled an
event, so it sees the starts decided on it. A run has one entry in the heap: at its start the
site looks up which comes first, its end, the next log-in or the reboot.
"""

from bisect import bisect_left
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import chain
from math import inf, isnan, nextafter
from typing import Final

import numpy as np

from outrider.formats.campus.campus import Campus, Floats
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
from outrider.simulation.exogenous_events import (
    OwnerStretches,
    certain_events,
    owner_stretches,
    reboot_times,
)

NO_RUN: Final = -1
_GONE: Final = -2
"""In place of its machine, for a job that does not run, or is gone: completed, or killed."""

_ROUND: Final = 64
"""Beyond the kinds of all that happens at a moment: then decisions fall."""
_END: Final = 127
"""Beyond every kind: the trace ends here."""
_AFTER_ALL: Final = (inf, _END, 0, None)


class VirtualSite:
    """Physics of a campus; carries out starts and wakes the engine (`outrider.engine.Sink`).

    Args:
        campus: the trace, truth included.
        until_s: stop after events of this second; None: the end of the trace.

    Attributes:
        now: the moment of what the site itself brought about last.
    """

    def __init__(self, campus: Campus, until_s: float | None = None) -> None:
        self.campus = campus
        self.until_s = campus.span_s if until_s is None else until_s
        self.now = -inf
        stretches = owner_stretches(campus)
        self._stream = certain_events(campus, stretches, self.until_s)
        self._came: list[float] = by_machine(stretches, stretches.came_s)
        self._first: list[int] = (stretches.first + np.arange(len(stretches.first))).tolist()
        self._at: list[int] = self._first.copy()  # the next log-in at each machine
        self._reboots: list[float] = [*reboot_times(campus).tolist(), inf]
        self._next_reboot = 0
        self._run_s: list[float] = campus.run_s.tolist()
        self._has_job = bytearray(len(campus.machine_names))
        self._place = [NO_RUN] * len(campus.job_names)  # the machine of each job that runs
        # One entry a run: a run that its user kills makes it void, and then the job is gone.
        self._heap: list[Event] = [(nextafter(self.until_s, inf), _END, 0, None)]
        self._started: list[Event] = []

    # -- the sink -----------------------------------------------------------------------------

    def start(self, job: int, machine: int) -> None:
        """Start a job on a machine without a job. Raises `ValueError` if that cannot be."""
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
        """When an owner comes next. Time only goes on, so the search does too."""
        now, came, at = self.now, self._came, self._at[machine]
        login = came[at]
        while login <= now:
            at += 1
            login = came[at]
        self._at[machine] = at
        return login

    def _reboot_after_now(self) -> float:
        """When the next reboot is. Time only goes on, so the search does too."""
        while self._reboots[self._next_reboot] <= self.now:
            self._next_reboot += 1
        return self._reboots[self._next_reboot]

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s`, which is not past, after all other events of that moment."""
        heappush(self._heap, (time_s, _ROUND, 0, None))

    # -- the oracle ---------------------------------------------------------------------------

    def run_s(self, job: int) -> float:
        """The truth: seconds until the job ends by itself; nan if it never does."""
        return self._run_s[job]

    def next_login_s(self, machine: int, after_s: float) -> float:
        """The truth: when an owner next sits down at the machine, at or after a moment."""
        first, after = self._first[machine], self._first[machine + 1]
        return self._came[bisect_left(self._came, after_s, first, after - 1)]

    def unfinished_run_s(self) -> Iterator[tuple[int, float]]:
        """The truth about jobs still there: (job, run time), those that would have ended."""
        submitted = (self.campus.submit_s <= self.until_s).tolist()
        for job, run_s in enumerate(self._run_s):
            if submitted[job] and self._place[job] != _GONE and not isnan(run_s):
                yield job, run_s

    # -- events -------------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """Everything that happens, in order, until the end.

        One flat generator: an inner one for every moment costs a quarter of a replay's time.
        """
        yield from self._join()
        heap, started = self._heap, self._started
        for event in chain(self._stream.events(), (_AFTER_ALL,)):
            while heap[0] < event:
                due = heappop(heap)
                self.now, kind, job, _ = due
                if kind == _ROUND:
                    while heap[0] == due:  # asked for more than once
                        heappop(heap)
                    yield self.now, TICK, 0, None
                    yield from started
                    started.clear()
                elif kind == _END:
                    return
                elif self._turn(kind, job):
                    yield due
            if event[1] > SUBMITTED and not self._forget(event):
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

    def _turn(self, kind: int, job: int) -> bool:
        """A run takes a turn, here always its end. False if it was cut short before."""
        machine = self._place[job]
        if machine < 0:
            return False
        self._place[job] = NO_RUN if kind == EVICTED else _GONE
        self._has_job[machine] = 0
        return True

    def _forget(self, killed: Event) -> bool:
        """A job is killed. False if it had ended already."""
        self.now, _, job, _ = killed
        if self._place[job] == NO_RUN:
            self._place[job] = _GONE
            return True
        return self._turn(REMOVED, job)


def by_machine(stretches: OwnerStretches, times_s: Floats) -> list[float]:
    """The times of each machine's stretches, machine after machine, with inf after each."""
    times: list[float] = np.insert(times_s, stretches.first[1:], inf).tolist()
    return times


def _known_w(watts: float) -> float | None:
    return None if isnan(watts) else float(watts)
