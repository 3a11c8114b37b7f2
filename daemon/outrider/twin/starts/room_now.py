"""Which jobs find room on a machine now, where the forecast reckons with one pool of CPUs."""

from collections.abc import Hashable, Iterable

from outrider.engine.scheduling.placement import fits, kind_of
from outrider.engine.state.machines import FREE, Machines
from outrider.engine.state.room import Room
from outrider.model.jobs import JobSpec


def find_room(site: Machines, specs: Iterable[JobSpec]) -> list[bool]:
    """Whether each of these jobs finds a machine with room for it, after those before it.

    A job that is wider than any machine takes several, of which nothing is known: it finds room.

    Args:
        site: now.
        specs: of the jobs, in the order in which they start.
    """
    rooms: dict[int, Room] = {}
    next_try: dict[
        Hashable, int
    ] = {}  # room only shrinks: what had too little for a kind still has
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
