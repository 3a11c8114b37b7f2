"""Open machines and their runs in columns, to find those where a pass could change anything.

A plan for a machine costs some hundred microseconds, and on most machines it changes nothing: no
CPU is free, and no queued job has more utility than the runs. Columns decide that for all machines
together. They may call for a plan that then changes nothing, but never omit one that would:
values within `MARGIN` of each other are compared by the plan itself.

A pass plans machine after machine. The columns of machines are those at its beginning, valid for
each until it is planned. The queue is read again whenever a plan has changed it.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import NOWHERE, SUSPENDED_STATE, SiteView
from outrider_policies.planning.queued_jobs import QueuedJobs, RunLengths, left_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

MARGIN: Final = 1e-9
"""Relative tolerance, far above rounding errors: the order of computation does not matter."""
MIN_UTILITY: Final = 1e-300
"""A run of less utility may have none."""
_NONE: Final = np.iinfo(np.int64).max


class OpenMachines:
    """Machines that are open to jobs, in order, and their runs at the beginning of a pass.

    Attributes:
        machines: (m,) their numbers.
        cpus: (m,) CPUs of each.
        free: (m,) CPUs on which a job may start.
        speed: (m,) work that a CPU does per second.
        is_irregular: (m,) True if a run is suspended there, or more CPUs are in use than it has.
        is_shrunk: (m,) True if a run has other than the CPUs that it requests.
    """

    def __init__(self, view: SiteView, lengths: RunLengths) -> None:
        self._view = view
        self._lengths = lengths
        cpus_of = list(map(view.cpus_of, range(view.machines_n)))
        self.machines = [machine for machine, cpus in enumerate(cpus_of) if cpus]
        self.cpus = np.array(cpus_of, dtype=np.int64)[self.machines]
        self.free = np.array(list(map(view.cpus_left, self.machines)), dtype=np.int64)
        self.speed = np.array(list(map(view.speed_of, self.machines)), dtype=np.float64)
        n = len(self.machines)
        self._position = np.full(len(cpus_of), NOWHERE)
        self._position[self.machines] = np.arange(n)
        self._jobs = [job for job in view.running if cpus_of[job.machine]]
        self._specs = [job.spec for job in self._jobs]
        self._place = self._position[self._column("machine", np.int64)]
        self._cpus = self._column("cpus", np.int64)
        self._requested = np.array([spec.cpus for spec in self._specs], dtype=np.int64)
        self.is_irregular: Mask = np.bincount(self._place, self._cpus, n) > self.cpus
        self.is_irregular[self._place[self._column("state", np.int64) == SUSPENDED_STATE]] = True
        self.is_shrunk = np.zeros(n, dtype=bool)
        self.is_shrunk[self._place[self._cpus != self._requested]] = True

    def runs(self) -> dict[int, dict[int, int]]:
        """Return the CPUs of each run by job number, by machine."""
        runs: dict[int, dict[int, int]] = {machine: {} for machine in self.machines}
        for job in self._jobs:
            runs[job.machine][job.number] = job.cpus
        return runs

    def _column(self, name: str, kind: type[Any] = np.float64) -> NDArray[Any]:
        """Return (runs,) an attribute of the job of each run."""
        return np.fromiter(map(attrgetter(name), self._jobs), kind, len(self._jobs))

    # -- utility of runs ----------------------------------------------------------------------

    def _lowest_density(self) -> Floats:
        """Return (m,) the lowest utility per CPU-second of a run, on all its CPUs.

        inf where nothing runs.
        """
        ideal_s = self._ideal_s()
        remaining_s = self._left_s(ideal_s) / self.speed[self._place]
        return self._lowest(self._units(remaining_s, ideal_s) * ideal_s / remaining_s)

    def _lowest_remaining_utility(self) -> Floats:
        """Return (m,) the lowest `remaining_utility` of a run, on the CPUs it has.

        inf where nothing runs.
        """
        ideal_s = self._ideal_s()
        rate = self.speed[self._place] * self._cpus / self._requested
        remaining_s = self._left_s(ideal_s) / rate
        return self._lowest(self._units(remaining_s, ideal_s) / remaining_s)

    def _lowest(self, values: Floats) -> Floats:
        lowest = np.full(len(self.machines), np.inf)
        np.minimum.at(lowest, self._place, values)
        return lowest

    def _ideal_s(self) -> Floats:
        """Return (runs,) ideal run times."""
        unknown = np.nan
        estimates = [unknown if s.estimate_s is None else s.estimate_s for s in self._specs]
        return self._lengths.of_jobs(np.array(estimates))

    def _left_s(self, ideal_s: Floats) -> Floats:
        """Return (runs,) the work left of each, as `work_left_s` does."""
        run_s = self._view.now - self._column("start_s") - self._column("pause_s")
        counted_s = self._column("counted_s")
        cpu_s = self._column("cpu_s") + (np.maximum(run_s, 0.0) - counted_s) * self._cpus
        return left_of(ideal_s, cpu_s / self._requested)

    def _units(self, remaining_s: Floats, ideal_s: Floats) -> Floats:
        """Return (runs,) unit utilities if the runs complete in so many (runs,) seconds."""
        view, jobs = self._view, self._jobs
        began_s = [job.start_s if job.submit_s is None else job.submit_s for job in jobs]
        turnaround_s = remaining_s + (view.now - np.array(began_s))
        classes = [spec.job_class for spec in self._specs]
        units = np.empty(len(classes))
        for job_class in dict.fromkeys(classes):
            utility = view.utility(jobs[classes.index(job_class)])
            mask = np.array([one == job_class for one in classes])
            units[mask] = utility.unit(turnaround_s[mask], ideal_s[mask])
        return units

    # -- utility of queued jobs ---------------------------------------------------------------

    def _highest(self, queued: QueuedJobs, weight: Floats) -> Floats:
        """Return (m,) highest unit utility x weight per second; other resources are not checked.

        Machines of one speed and one number of CPUs are equal, except to jobs preempted on them.
        """
        highest = np.full(len(self.machines), -np.inf)
        anywhere = queued.is_open & (queued.home == NOWHERE)
        if np.count_nonzero(anywhere):
            kinds: dict[tuple[float, int], list[int]] = {}
            for at, kind in enumerate(zip(self.speed.tolist(), self.cpus.tolist(), strict=True)):
                kinds.setdefault(kind, []).append(at)
            for (speed, cpus), equal in kinds.items():
                remaining_s, units = queued.at_speed(speed)
                values = (units * weight / remaining_s)[anywhere & (queued.requested <= cpus)]
                highest[equal] = values.max(initial=-np.inf)
        rows, place = self._preempted(queued)
        if len(rows):
            remaining_s = queued.left_s[rows] / self.speed[place]
            values = queued.units(rows, remaining_s) * weight[rows] / remaining_s
            np.maximum.at(highest, place, values)
        return highest

    def _preempted(self, queued: QueuedJobs) -> tuple[Rows, Rows]:
        """Return the rows of open jobs preempted on open machines, and each one's position."""
        (rows,) = (queued.is_open & (queued.home != NOWHERE)).nonzero()
        place = self._position[queued.home[rows]]
        is_there = place != NOWHERE
        return rows[is_there], place[is_there]

    def _has_waiting(self, queued: QueuedJobs) -> Mask:
        """Return (m,) True where a queued job may start or resume, on any number of CPUs."""
        has = np.full(len(self.machines), bool((queued.is_open & (queued.home == NOWHERE)).any()))
        has[self._preempted(queued)[1]] = True
        return has

    # -- machines where a plan could change anything ------------------------------------------

    def _in_turn(self, queued: QueuedJobs, could: Callable[[], Mask]) -> Iterator[int]:
        """Yield machines for which `could` is true, in order; call it again if the queue changed.

        Args:
            queued: the queue, which may change while this is iterated over.
            could: returns a (m,) mask for the present queue.
        """
        changes_n, mask = queued.changes_n, could().tolist()
        for at, machine in enumerate(self.machines):
            if queued.changes_n != changes_n:
                changes_n, mask = queued.changes_n, could().tolist()
            if mask[at]:
                yield machine

    def to_reallocate(self, queued: QueuedJobs) -> Iterator[int]:
        """Yield the machines where `allocate_by_density` could change anything, in order.

        Elsewhere all runs have the CPUs they request and some utility. No CPU is free for a queued
        job, or no queued job has a higher density than the lowest of the runs.
        """
        lowest = self._lowest_density()
        always = self.is_irregular | self.is_shrunk | (lowest < MIN_UTILITY)

        def could() -> Mask:
            highest = self._highest(queued, queued.ideal_s)
            takes: Mask = (self.free > 0) & (highest > -np.inf)
            return always | takes | (highest * (1.0 + MARGIN) > lowest)

        return self._in_turn(queued, could)

    def to_fill(self, queued: QueuedJobs) -> Iterator[int]:
        """Yield the machines where a run could grow, or a queued job fits, in order."""
        grows = self.is_irregular | (self.is_shrunk & (self.free > 0))

        def could() -> Mask:
            if not queued.has_open:
                return grows
            narrowest = np.full(len(self.machines), _NONE)
            anywhere = queued.is_open & (queued.home == NOWHERE)
            narrowest[:] = queued.requested[anywhere].min(initial=_NONE)
            rows, place = self._preempted(queued)
            np.minimum.at(narrowest, place, queued.requested[rows])
            return grows | (narrowest <= self.free)

        return self._in_turn(queued, could)

    def to_force(self, queued: QueuedJobs, planned: Iterable[int]) -> Iterator[int]:
        """Yield `planned`, and the machines where a queued job could be forced in or shrunk.

        In order. Elsewhere nothing is planned yet, no CPU is free for a queued job, and none of
        these may preempt a run.
        """
        to_visit = sorted(planned)
        if len(to_visit) == len(self.machines) or not queued.has_open:
            return iter(to_visit)
        always = np.zeros(len(self.machines), dtype=bool)
        always[self._position[to_visit]] = True
        lowest = self._lowest_remaining_utility()

        def could() -> Mask:
            highest = self._highest(queued, np.ones(len(queued.jobs)))
            shrinks: Mask = (self.free > 0) & self._has_waiting(queued)
            return always | shrinks | (highest * (1.0 + MARGIN) > lowest)

        return self._in_turn(queued, could)
