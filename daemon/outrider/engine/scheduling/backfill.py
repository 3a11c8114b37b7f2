"""EASY backfill: later jobs may pass the first in the queue if they do not delay it.

Lifka 1995 (the ANL/IBM SP scheduling system): the first job that does not fit gets a reservation
at the earliest moment at which, by the estimates, enough will be free for it. Others may start now
if they end by that moment, or use only what it will not need then.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from math import inf, isnan
from typing import NamedTuple

from outrider.engine.scheduling.placement import fits_when_empty
from outrider.engine.state.room import Room
from outrider.engine.state.site import Site
from outrider.model.jobs import JobSpec
from outrider.model.resources import Resources


class Ending(NamedTuple):
    """When a run is expected to end, and what it then gives back."""

    end_s: float
    job: int
    cpus: int
    resources: Resources | None


Begun = tuple[int, Ending]
"""A run that this pass begins: its machine and expected end."""


def expected_run_s(spec: JobSpec, machine: int, site: Site) -> float:
    """How long a job is expected to run; infinite where not known.

    A job without estimate never ends, as far as reservations go.
    """
    if spec.estimate_s is None or isnan(spec.estimate_s):
        return inf
    return spec.estimate_s / site.speed_of(machine)


def endings(machine: int, site: Site, begun: Sequence[Begun]) -> Iterator[Ending]:
    """What runs on a machine, by expected end; what is overdue ends now. Endless runs are left out.

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
    """What the first in the queue is promised.

    Attributes:
        machine: where.
        start_s: when at the latest, if the estimates hold; inf: not known.
        spare: what the machine will have left over at that moment.
    """

    def __init__(self, machine: int, start_s: float, spare: Room) -> None:
        self.machine = machine
        self.start_s = start_s
        self.spare = spare

    def allows(self, spec: JobSpec, end_s: float) -> bool:
        """Whether a job may start on its machine now that expects to end at `end_s`."""
        return self._ends_before(end_s) or self.spare.holds(spec.cpus, spec.resources)

    def begin(self, spec: JobSpec, end_s: float) -> None:
        """That job has started."""
        if not self._ends_before(end_s):
            self.spare.take(spec.cpus, spec.resources)

    def _ends_before(self, end_s: float) -> bool:
        return end_s <= self.start_s < inf  # no job passes a start that cannot be foreseen


def reserve_first(spec: JobSpec, site: Site, begun: Sequence[Begun]) -> Reservation | None:
    """The earliest start of a job over all open machines that it may use, of equals the lowest.

    None if it fits on no machine that is open.

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
    """All that ends by the moment of the start counts, what ends at that very moment included."""
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
