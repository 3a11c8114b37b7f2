"""Promises of a pass to jobs that do not fit now, by the queue discipline.

One object serves one pass. The pass asks it where a job may start although others wait before it,
and reports to it which jobs began and which have to wait.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf, isnan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.engine.scheduling.pending_queue import QueueColumns
from outrider.engine.scheduling.placement import fits_when_empty
from outrider.engine.state.machines import Room
from outrider.engine.state.site import Site
from outrider.model.jobs import Job, JobSpec
from outrider.model.machines import Resources
from outrider.model.modes import CONSERVATIVE, EASY, EASY_SJBF, STRICT

# -- backfill --------------------------------------------------------------------------------------
# EASY backfill: later jobs may pass the first in the queue if they do not delay it.
#
# Lifka 1995 (the ANL/IBM SP scheduling system): the first job that does not fit gets a reservation
# at the earliest moment at which, by the estimates, enough will be free for it. Others may start
# now if they end by that moment, or use only what it will not need then.


class Ending(NamedTuple):
    """Expected end of a run, and what it then frees."""

    end_s: float
    job: int
    cpus: int
    resources: Resources | None


Begun = tuple[int, Ending]
"""Run that this pass begins: its machine and expected end."""


def expected_run_s(spec: JobSpec, machine: int, site: Site) -> float:
    """Return how long a job is expected to run; infinite where not known.

    For reservations, a job without an estimate never ends.
    """
    if spec.estimate_s is None or isnan(spec.estimate_s):
        return inf
    return spec.estimate_s / site.speed_of(machine)


def endings(machine: int, site: Site, begun: Sequence[Begun]) -> Iterator[Ending]:
    """Yield the runs on a machine by expected end; overdue ones end now, endless are left out.

    Args:
        machine: its number.
        site: now.
        begun: what this pass has begun.
    """
    now, uses = site.now, site.resources.runs
    running = () if site.runs is None else site.runs.ends(machine)
    known: Iterable[Ending] = (
        Ending(end.end_s, end.job, end.cpus, uses[end.job][1] if end.job in uses else None)
        for end in running
    )
    fresh = sorted((end for where, end in begun if where == machine), key=lambda end: end[:2])
    for end in heapq.merge(known, fresh, key=lambda end: end[:2]) if fresh else known:
        if end.end_s == inf:
            return
        yield end if end.end_s >= now else end._replace(end_s=now)


class Reservation:
    """Promise to the first job in the queue.

    Attributes:
        machine: the reserved machine.
        start_s: the latest start, if the estimates hold; inf: not known.
        spare: what the machine will have left over at that moment.
    """

    def __init__(self, machine: int, start_s: float, spare: Room) -> None:
        self.machine = machine
        self.start_s = start_s
        self.spare = spare

    def allows(self, spec: JobSpec, end_s: float) -> bool:
        """Return whether a job that ends at `end_s` may start on the reserved machine now."""
        return self._ends_before(end_s) or self.spare.holds(spec.cpus, spec.resources)

    def begin(self, spec: JobSpec, end_s: float) -> None:
        """Subtract a job that has started."""
        if not self._ends_before(end_s):
            self.spare.take(spec.cpus, spec.resources)

    def _ends_before(self, end_s: float) -> bool:
        return end_s <= self.start_s < inf  # no job passes a start that cannot be predicted


def reserve_first(spec: JobSpec, site: Site, begun: Sequence[Begun]) -> Reservation | None:
    """Return the earliest start of a job over all open machines it may use, lowest number first.

    Return None if it fits on no open machine.

    Args:
        spec: of the job.
        site: now, with what this pass has begun reserved.
        begun: what this pass has begun.
    """
    best = None
    for machine in range(site.machines_n):
        if site.cpus_of(machine) and fits_when_empty(site, spec, machine):
            found = _on_machine(machine, spec, site, begun)
            if best is None or found.start_s < best.start_s:
                best = found
    return best


def _on_machine(machine: int, spec: JobSpec, site: Site, begun: Sequence[Begun]) -> Reservation:
    """Return the earliest start on one machine; runs that end at that moment are over by then."""
    room, start_s = site.room(machine), inf
    if room.holds(spec.cpus, spec.resources):
        start_s = site.now
    for end in endings(machine, site, begun):
        if end.end_s > start_s:
            break
        room.give_back(end.cpus, end.resources)
        if start_s == inf and room.holds(spec.cpus, spec.resources):
            start_s = end.end_s
    if start_s == inf:
        return Reservation(machine, inf, Room(0, dict.fromkeys(room.resources, 0.0)))
    room.take(spec.cpus, spec.resources)
    return Reservation(machine, start_s, room)


# -- availability profile --------------------------------------------------------------------------
# Free capacity of a machine at every future moment, for reservations one after the other.


class Profile:
    """Free capacity of one machine from now on: a step at each moment at which it changes.

    Args:
        now: the beginning.
        room: what is left now.
        endings: the expected ends, by time; none before now.
    """

    def __init__(self, now: float, room: Room, endings: Iterable[Ending]) -> None:
        self._times = [now]
        self._rooms = [room]
        for end in endings:
            if end.end_s > self._times[-1]:
                self._times.append(end.end_s)
                self._rooms.append(self._rooms[-1].copy())
            self._rooms[-1].give_back(end.cpus, end.resources)

    def holds_now(self, cpus: int, asked: Resources | None, lasts_s: float) -> bool:
        """Return whether this capacity is left from now on for `lasts_s` seconds."""
        return self._too_small(0, cpus, asked, lasts_s) is None

    def earliest_s(self, cpus: int, asked: Resources | None, lasts_s: float) -> float:
        """Return the first moment from which the capacity is left for so long; infinite if none."""
        at = 0
        while at < len(self._times):
            too_small = self._too_small(at, cpus, asked, lasts_s)
            if too_small is None:
                return self._times[at]
            at = too_small + 1
        return inf

    def _too_small(
        self, first: int, cpus: int, asked: Resources | None, lasts_s: float
    ) -> int | None:
        """Return the first step within the time that has too little left; None if there is none."""
        end_s = self._times[first] + lasts_s
        for at in range(first, len(self._times)):
            if at > first and self._times[at] >= end_s:
                return None
            if not self._rooms[at].holds(cpus, asked):
                return at
        return None

    def take(self, start_s: float, lasts_s: float, cpus: int, asked: Resources | None) -> None:
        """Promise capacity from a moment on, for `lasts_s` seconds."""
        first, end = self._step_at(start_s), self._step_at(start_s + lasts_s)
        for room in self._rooms[first:end]:
            room.take(cpus, asked)

    def _step_at(self, time_s: float) -> int:
        """Return the step that begins at a moment; insert it if there is none."""
        if time_s == inf:
            return len(self._times)
        at = bisect_left(self._times, time_s)
        if at == len(self._times) or self._times[at] != time_s:
            at = bisect_right(self._times, time_s)
            self._times.insert(at, time_s)
            self._rooms.insert(at, self._rooms[at - 1].copy())
        return at


# -- reservations ----------------------------------------------------------------------------------


class Promises:
    """Base class and `first_fit`: nothing is promised, and every job may pass.

    Args:
        site: now, with what this pass has begun reserved.

    Attributes:
        fixes_order: once a job has to wait, the order is not recomputed in this pass.
    """

    fixes_order = False

    def __init__(self, site: Site) -> None:
        self._site = site

    @property
    def shortest_first(self) -> bool:
        """True if the remaining jobs are tried in the order of their estimates from now on."""
        return False

    def allows(self, job: Job) -> Callable[[int], bool] | None:
        """Return a check of whether a job may start on a machine now; None: on any that fits."""
        return None

    def begin(self, job: Job, machine: int) -> None:
        """Record a job that starts in this pass."""

    def candidates(self, table: QueueColumns) -> NDArray[np.bool_]:
        """Return which queued jobs have to be tried, in their turn, as an array (jobs,).

        No other can start in this pass, nor does it affect those behind it.
        """
        site = self._site
        fits: NDArray[np.bool_] = table.cpus <= max(map(site.cpus_left, site.free_since), default=0)
        return fits

    def wait(self, job: Job) -> bool:
        """Record a job that does not fit now; return whether others may pass it."""
        return True


class StrictOrder(Promises):
    """Promises under `strict`: no job passes another."""

    def candidates(self, table: QueueColumns) -> NDArray[np.bool_]:
        """Return all jobs: the next one that does not fit blocks those behind it."""
        return _all_of(table)

    def wait(self, job: Job) -> bool:
        """Return False: no job passes."""
        return False


class FirstReserved(Promises):
    """Promises under `easy`: the first job that has to wait has a reservation.

    It is computed only when a job behind it might start: in most passes on a full site none could.
    """

    fixes_order = True

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._begun: list[Begun] = []
        self._first: JobSpec | None = None
        self._reservation: Reservation | None = None

    def _promised(self) -> Reservation | None:
        """Return the reservation of the first waiting job; None while no job has to wait."""
        if self._reservation is None and self._first is not None:
            self._reservation = reserve_first(self._first, self._site, self._begun)
        return self._reservation

    def allows(self, job: Job) -> Callable[[int], bool] | None:
        """Exclude the reserved machine if the job would delay the reservation."""
        site, spec, promised = self._site, job.spec, self._promised()
        if promised is None or not site.is_free(promised.machine):
            return None
        machine = promised.machine
        if promised.allows(spec, site.now + expected_run_s(spec, machine, site)):
            return None
        return machine.__ne__

    def begin(self, job: Job, machine: int) -> None:
        """Record a start; on the reserved machine it uses what the reservation leaves over."""
        spec = job.spec
        end_s = self._site.now + expected_run_s(spec, machine, self._site)
        if self._reservation is None:
            self._begun.append((machine, Ending(end_s, job.number, spec.cpus, spec.resources)))
        elif machine == self._reservation.machine:
            self._reservation.begin(spec, end_s)

    def candidates(self, table: QueueColumns) -> NDArray[np.bool_]:
        """Return the jobs that fit in addition to the reservation, before it, or elsewhere.

        All jobs while none has to wait: the first to wait may be any that does not fit.
        """
        if self._first is None:
            return _all_of(table)
        fit = super().candidates(table)
        promised = self._promised() if np.count_nonzero(fit) else None
        if promised is None or not self._site.is_free(promised.machine):
            return fit
        site, cpus, machine = self._site, table.cpus, promised.machine
        others = (site.cpus_left(other) for other in site.free_since if other != machine)
        compatible: NDArray[np.bool_] = cpus <= promised.spare.cpus
        if promised.start_s < inf:
            compatible |= site.now + table.estimate_s / site.speed_of(machine) <= promised.start_s
        return (compatible & (cpus <= site.cpus_left(machine))) | (cpus <= max(others, default=0))

    def wait(self, job: Job) -> bool:
        """Reserve for the first waiting job; those behind it have no reservation."""
        if self._first is None:
            self._first = job.spec
        return True


class ShortestPass(FirstReserved):
    """Promises under `easy_sjbf`: jobs that may pass are tried shortest estimate first.

    Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user
    runtime estimates", IEEE TPDS 18 (2007): the head and its reservation stay those of the queue's
    own order, so that no job starves.
    """

    @property
    def shortest_first(self) -> bool:
        """True once a job waits; until then the queue's own order determines which one."""
        return self._first is not None


class AllReserved(Promises):
    """Promises under `conservative`: every waiting job has the earliest reservation left.

    Reservations are recomputed in each pass, in the order of the queue: when a run ends early, all
        move
    up. A job whose start cannot be predicted keeps the first machine on which it would fit: no job
    behind it starts there.
    """

    fixes_order = True

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._begun: list[Begun] = []
        self._profiles: dict[int, Profile] = {}
        self._kept: set[int] = set()
        self._waits = False

    def allows(self, job: Job) -> Callable[[int], bool] | None:
        """Return a check of whether a start delays no reservation."""
        if not self._waits:
            return None
        spec = job.spec
        return lambda machine: self._allows(spec, machine)

    def _allows(self, spec: JobSpec, machine: int) -> bool:
        if machine in self._kept:
            return False
        lasts_s = expected_run_s(spec, machine, self._site)
        return self._profile(machine).holds_now(spec.cpus, spec.resources, lasts_s)

    def _profile(self, machine: int) -> Profile:
        profile = self._profiles.get(machine)
        if profile is None:
            site = self._site
            ends = endings(machine, site, self._begun)
            profile = self._profiles[machine] = Profile(site.now, site.room(machine), ends)
        return profile

    def begin(self, job: Job, machine: int) -> None:
        """Record a start: it takes its CPUs until its expected end."""
        site, spec = self._site, job.spec
        lasts_s = expected_run_s(spec, machine, site)
        end_s = site.now + lasts_s
        self._begun.append((machine, Ending(end_s, job.number, spec.cpus, spec.resources)))
        profile = self._profiles.get(machine)
        if profile is not None:
            profile.take(site.now, lasts_s, spec.cpus, spec.resources)

    def candidates(self, table: QueueColumns) -> NDArray[np.bool_]:
        """Return all jobs: each that cannot start gets a reservation, in its turn."""
        return _all_of(table)

    def wait(self, job: Job) -> bool:
        """Reserve the earliest start that delays no reservation before it."""
        site, spec = self._site, job.spec
        self._waits = True
        best: tuple[float, int] | None = None
        for machine in range(site.machines_n):
            if not site.cpus_of(machine) or not fits_when_empty(site, spec, machine):
                continue
            if machine in self._kept:
                start_s = inf
            else:
                lasts_s = expected_run_s(spec, machine, site)
                start_s = self._profile(machine).earliest_s(spec.cpus, spec.resources, lasts_s)
            if best is None or start_s < best[0]:
                best = start_s, machine
        if best is not None:
            self._promise(spec, *best)
        return True

    def _promise(self, spec: JobSpec, start_s: float, machine: int) -> None:
        if start_s == inf:
            self._kept.add(machine)
            return
        lasts_s = expected_run_s(spec, machine, self._site)
        self._profile(machine).take(start_s, lasts_s, spec.cpus, spec.resources)


def _all_of(table: QueueColumns) -> NDArray[np.bool_]:
    return np.ones(len(table), dtype=np.bool_)


def promises_of(discipline: str) -> type[Promises]:
    """Return the promises of a discipline."""
    kinds: dict[str, type[Promises]] = {
        STRICT: StrictOrder, EASY: FirstReserved, EASY_SJBF: ShortestPass,
        CONSERVATIVE: AllReserved,
    }  # fmt: skip
    return kinds.get(discipline, Promises)
