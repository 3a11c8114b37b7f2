"""Machines of a site: on which ones jobs may start now, updated with every event.

Machines and clusters are numbers into flat lists; names are used only at the edge. A machine is
`usable` when neither its owner nor an administrator keeps jobs away, and `free` when it also has a
CPU left; inside a pass it may be reserved. Counts per cluster are updated with every event, and a
free machine is drawn by rejection: never from a list of all free machines, which would have to be
kept.
"""

import random
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import inf
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from outrider.engine.state.availability import Availability
from outrider.model.decisions import NOWHERE
from outrider.model.jobs import JobSpec
from outrider.model.machines import ClusterSpec, MachineSpec, Resources

# -- room ------------------------------------------------------------------------------------------
# Free capacity of a machine: CPUs and declared resources, now or in the future.


class Room:
    """Free capacity of a machine, without resources that it does not declare.

    Attributes:
        cpus: CPUs left; below 0 where overdue runs are still there.
        resources: amounts left, by name.
    """

    __slots__ = ("cpus", "resources")

    def __init__(self, cpus: int, resources: Mapping[str, float]) -> None:
        self.cpus = cpus
        self.resources = dict(resources)

    def copy(self) -> "Room":
        """Return a copy for calculations."""
        return Room(self.cpus, self.resources)

    def holds(self, cpus: int, asked: Resources | None) -> bool:
        """Return whether `cpus` CPUs and these resources are left."""
        return cpus <= self.cpus and (asked is None or self.lacking(asked) is None)

    def lacking(self, asked: Resources) -> str | None:
        """Return the name of a resource that does not suffice; None if there is none."""
        left = self.resources
        return next((n for n, amount in asked.amounts() if amount > left.get(n, amount)), None)

    def take(self, cpus: int, asked: Resources | None) -> None:
        """Subtract CPUs and resources that are used from now on."""
        self.cpus -= cpus
        if asked is not None:
            self._change(asked, -1.0)

    def give_back(self, cpus: int, asked: Resources | None) -> None:
        """Add CPUs and resources that are no longer used."""
        self.cpus += cpus
        if asked is not None:
            self._change(asked, 1.0)

    def _change(self, asked: Resources, sign: float) -> None:
        for name, amount in asked.amounts():
            if name in self.resources:
                self.resources[name] += sign * amount


# -- machines --------------------------------------------------------------------------------------

_MAX_TRIES = 32
SHUT, FREE, TAKEN, RESERVED = range(4)
"""States of a machine.

Shut: no job may start; free: one may; taken: all CPUs run jobs; reserved: the last CPUs are
promised in a pass."""


class Machines:
    """State of machines and clusters, and the choice of free machines.

    Args:
        clusters: declared clusters; others appear with the first machine that names them.

    Attributes:
        now: event time, seconds.
        widest: most CPUs that any machine ever had.
        open_cpus: CPUs of all machines that are open to jobs, free or not.
        busy: CPUs that run jobs or are reserved in this pass, by machine.
        state: of each machine, one of `SHUT`, `FREE`, `TAKEN`, `RESERVED`.
        free_since: machines on which a job may start, and since when.
        resources: resources that machines declare besides CPUs, and the use of them.
        classes: machines of each eligibility class, by its name.
        capacities_n: a counter that changes with the machines there are and who may use them.
    """

    def __init__(self, clusters: Sequence[ClusterSpec]) -> None:
        self.now = 0.0
        self.cluster_specs: list[ClusterSpec] = []
        self.cluster_names: list[str] = []
        self.members: list[list[int]] = []
        self.free_n: list[int] = []
        self.free_total = 0
        self._cluster_numbers: dict[str, int] = {}
        self._mean_w: list[float | None] = []
        self._watts_changed: set[int] = set()

        self.specs: list[MachineSpec | None] = []
        self.machine_cluster: list[int] = []
        self.cpus: list[int] = []
        self.widest = 1
        self.open_cpus = 0
        self.busy: list[int] = []
        self.state = bytearray()
        self.owner = bytearray()
        self.closed_because: dict[int, str] = {}
        self.free_since: dict[int, float] = {}
        self._reserved: list[tuple[int, int]] = []
        self.availability = Availability()
        self.resources = ResourceUse()
        self.classes: dict[str, set[int]] = {}
        self.capacities_n = 0
        for cluster in clusters:
            self._add_cluster(cluster)

    def _add_cluster(self, spec: ClusterSpec) -> int:
        self._cluster_numbers.setdefault(spec.name, len(self.cluster_names))
        self.cluster_specs.append(spec)
        self.cluster_names.append(spec.name)
        self.members.append([])
        self.free_n.append(0)
        self._mean_w.append(None)
        return len(self.cluster_names) - 1

    def cluster_number(self, name: str) -> int:
        """Return the number of a cluster; an unknown name gets a new one."""
        number = self._cluster_numbers.get(name)
        return self._add_cluster(ClusterSpec(name)) if number is None else number

    # -- events -----------------------------------------------------------------------------

    def join(self, machine: int, spec: MachineSpec) -> None:
        """Add or update a machine. Not yet usable: `open_machine` follows."""
        while len(self.specs) <= machine:
            self.specs.append(None)
            self.machine_cluster.append(-1)
            self.cpus.append(1)
            self.busy.append(0)
            self.state.append(SHUT)
            self.owner.append(0)
        if self.specs[machine] is not None:
            self.shut(machine)
            before = self.machine_cluster[machine]
            self.members[before].remove(machine)
            self._watts_change(before)
        cluster = self.cluster_number(spec.cluster)
        self.specs[machine] = spec
        self.machine_cluster[machine] = cluster
        self.cpus[machine] = max(1, spec.cpus)
        self.widest = max(self.widest, spec.cpus)
        self.members[cluster].append(machine)
        self.resources.declare(machine, spec.resources)
        self.capacities_n += 1
        self._watts_change(cluster)

    def leave(self, machine: int) -> None:
        """Remove a machine; its number stays its own."""
        self.closed_because.pop(machine, None)
        if self.specs[machine] is None:
            return
        self.shut(machine)
        cluster = self.machine_cluster[machine]
        self.members[cluster].remove(machine)
        self.specs[machine] = None
        self.resources.declare(machine, None)
        self.capacities_n += 1
        self._watts_change(cluster)

    def set_class(self, name: str, machines: Sequence[int], replace: bool) -> None:
        """Store the machines of an eligibility class: in place of the former ones, or added."""
        before = set() if replace else self.classes.get(name, set())
        self.classes[name] = before | set(machines)
        self.capacities_n += 1

    def _watts_change(self, cluster: int) -> None:
        """Note that a machine joined or left: mean watts are recomputed when they are read."""
        self._watts_changed.add(cluster)
        for name in ("active_w", "_watts_span"):
            self.__dict__.pop(name, None)

    @cached_property
    def active_w(self) -> Sequence[float | None]:
        """Mean watts of a busy machine, by cluster number; None where unknown."""
        for cluster in self._watts_changed:
            watts = [s.active_w for m in self.members[cluster] if (s := self.specs[m]) is not None]
            known = [w for w in watts if w is not None]
            self._mean_w[cluster] = sum(known) / len(known) if known else None
        self._watts_changed.clear()
        return self._mean_w

    @cached_property
    def _watts_span(self) -> tuple[float, float]:
        means = [w for w in self.active_w if w is not None]
        return (min(means), max(means)) if means else (0.0, 0.0)

    def open_machine(self, machine: int) -> None:
        """Open a machine to jobs from now on."""
        if self.state[machine] == SHUT:
            self.availability.begin(machine, self.now)
            self.open_cpus += self.cpus[machine]
            if self.busy[machine] < self.cpus[machine]:
                self._set_free(machine)
            else:
                self.state[machine] = TAKEN

    def shut(self, machine: int) -> None:
        """Close a machine to jobs from now on; its runs end by separate events."""
        state = self.state[machine]
        if state == FREE:
            self._set_unfree(machine, SHUT)
        elif state == SHUT:
            return
        else:
            self.state[machine] = SHUT
        self.open_cpus -= self.cpus[machine]
        self.availability.end(machine, self.now)

    def take(self, machine: int, cpus: int) -> None:
        """Count the CPUs of a run that began."""
        busy = self.busy[machine] = self.busy[machine] + cpus
        if self.state[machine] == FREE and busy >= self.cpus[machine]:
            self._set_unfree(machine, TAKEN)

    def give_back(self, machine: int, cpus: int) -> None:
        """Count the CPUs of a run that ended as free."""
        busy = self.busy[machine] = max(0, self.busy[machine] - cpus)
        if self.state[machine] == TAKEN and busy < self.cpus[machine]:
            self._set_free(machine)

    def _set_free(self, machine: int) -> None:
        self.state[machine] = FREE
        self.free_n[self.machine_cluster[machine]] += 1
        self.free_total += 1
        self.free_since[machine] = self.now

    def _set_unfree(self, machine: int, state: int) -> None:
        self.state[machine] = state
        self.free_n[self.machine_cluster[machine]] -= 1
        self.free_total -= 1
        del self.free_since[machine]

    def reserve(self, machine: int, cpus: int) -> None:
        """Reserve CPUs of a free machine within a pass, so that no other job gets them."""
        busy = self.busy[machine] = self.busy[machine] + cpus
        self._reserved.append((machine, cpus))
        if busy >= self.cpus[machine]:
            self.state[machine] = RESERVED
            self.free_n[self.machine_cluster[machine]] -= 1
            self.free_total -= 1

    def end_reservations(self) -> None:
        """End the pass: what it has reserved is as free as before."""
        busy, state = self.busy, self.state
        for machine, cpus in self._reserved:
            busy[machine] -= cpus
            if state[machine] == RESERVED:
                state[machine] = FREE
                self.free_n[self.machine_cluster[machine]] += 1
                self.free_total += 1
        self._reserved.clear()

    def recount(self) -> None:
        """Recount what is free and what is open, after states were set from elsewhere."""
        state = self.state
        self.free_n = [sum(state[m] == FREE for m in members) for members in self.members]
        self.free_total = sum(self.free_n)
        self.open_cpus = sum(map(self.cpus_of, range(len(state))))

    # -- eligible and free machines -----------------------------------------------------------

    def is_eligible(self, spec: JobSpec, machine: int) -> bool:
        """Return whether a machine is among those that a job may use."""
        return not spec.eligible or machine in self.classes.get(spec.eligible, ())

    def room(self, machine: int) -> Room:
        """Return the free capacity of a machine, without what this pass has reserved."""
        return Room(self.cpus[machine] - self.busy[machine], self.resources.left(machine))

    def resources_left(self, machine: int) -> Mapping[str, float]:
        """Return what is left of the resources that a machine declares, by name."""
        return self.resources.left(machine)

    def watts_span(self) -> tuple[float, float]:
        """Return the least and most active watts of any cluster; (0, 0) where none is known."""
        return self._watts_span

    def cluster_of(self, machine: int) -> int:
        """Return the number of a machine's cluster."""
        return self.machine_cluster[machine]

    def draw(self, rng: random.Random) -> int:
        """Return a free machine, uniformly over all. Raises `LookupError` if none is free."""
        state, n, chance = self.state, len(self.state), rng.random
        for _ in range(_MAX_TRIES if self.free_total else 0):
            machine = int(chance() * n)
            if state[machine] == FREE:
                return machine
        return _pick(np.flatnonzero(np.frombuffer(state, dtype=np.uint8) == FREE), rng)

    def draw_in(self, cluster: int, rng: random.Random) -> int:
        """Return a free machine of a cluster, uniformly. Raises `LookupError` if none is free."""
        state, members, chance = self.state, self.members[cluster], rng.random
        n = len(members)
        for _ in range(_MAX_TRIES if self.free_n[cluster] else 0):
            machine = members[int(chance() * n)]
            if state[machine] == FREE:
                return machine
        return _pick([m for m in members if state[m] == FREE], rng)

    def is_free(self, machine: int) -> bool:
        """Return whether a job may start on a machine now."""
        return self.state[machine] == FREE

    def fitting(self, cpus: int) -> list[int]:
        """Return free machines with at least `cpus` CPUs left, those with the fewest left last.

        Equals come in the order of their numbers, the lowest last.
        """
        left = [
            (self.cpus[m] - self.busy[m], m) for m, state in enumerate(self.state) if state == FREE
        ]
        return [m for n, m in sorted(left, reverse=True) if n >= cpus]

    @property
    def machines_n(self) -> int:
        """Number of machines ever seen: their numbers are below this."""
        return len(self.specs)

    def cpus_of(self, machine: int) -> int:
        """Return the CPUs of a machine that jobs may use; 0 if it left or is shut."""
        return self.cpus[machine] if self.state[machine] else 0

    def cpus_left(self, machine: int) -> int:
        """Return the CPUs of a machine on which a job may start now; 0 if it is shut."""
        return self.cpus[machine] - self.busy[machine] if self.state[machine] == FREE else 0

    def speed_of(self, machine: int) -> float:
        """Return the work that a CPU of the machine does in a second; 1 where not known."""
        spec = self.specs[machine]
        return 1.0 if spec is None else spec.speed

    def tightest(self, cpus: int) -> int:
        """Return the free machine with the fewest CPUs left that suffice, lowest number first."""
        if not self.free_total:
            return NOWHERE
        if self.widest == 1:  # every free machine is as tight as the next
            return self.state.find(FREE) if cpus == 1 else NOWHERE
        best, least = NOWHERE, inf
        for machine in self.free_since:
            left = self.cpus_left(machine)
            if cpus <= left and (left < least or (left == least and machine < best)):
                best, least = machine, left
        return best

    def longest_free(self) -> int:
        """Return the machine that has been free longest. Raises `LookupError` if none is free."""
        if not self.free_total:
            raise LookupError("no machine is free")
        return next(machine for machine in self.free_since if self.state[machine] == FREE)


def _pick(machines: Sequence[int] | NDArray[np.intp], rng: random.Random) -> int:
    if not len(machines):
        raise LookupError("no machine is free")
    return int(machines[int(rng.random() * len(machines))])


# -- resource use ----------------------------------------------------------------------------------
# Resources of machines besides CPUs, and the use of them by runs.
#
# Nothing is stored for machines that declare nothing, nor for runs that request nothing: a site
# without resources pays nothing for them.

_NOTHING: Final[Mapping[str, float]] = {}
_ROUNDING: Final = 1e-6
"""Amount of a resource below which it is a rounding error of additions and subtractions."""


class ResourceUse:
    """Declared and used amounts of resources by machine.

    Attributes:
        runs: by job that uses resources: its machine, and what it uses.
        declared: amounts by name, of machines that declare any.
    """

    def __init__(self) -> None:
        self.runs: dict[int, tuple[int, Resources]] = {}
        self.declared: dict[int, dict[str, float]] = {}
        self._used: dict[int, dict[str, float]] = {}

    def declare(self, machine: int, resources: Resources | None) -> None:
        """Store what a machine declares when it joins or changes; None when it leaves."""
        if resources is None:
            self.declared.pop(machine, None)
        else:
            self.declared[machine] = dict(resources.amounts())

    def begin(self, job: int, machine: int, asked: Resources) -> None:
        """Count a run that begins or continues."""
        self.end(job)
        self.runs[job] = machine, asked
        self.take(machine, asked)

    def end(self, job: int) -> None:
        """Release what a run uses; nothing happens if it used nothing."""
        machine, asked = self.runs.pop(job, (0, None))
        if asked is not None:
            self.give_back(machine, asked)

    def take(self, machine: int, asked: Resources) -> None:
        """Count resources of a machine as used, or as reserved in this pass."""
        used = self._used.setdefault(machine, {})
        for name, amount in asked.amounts():
            used[name] = used.get(name, 0.0) + amount

    def give_back(self, machine: int, asked: Resources) -> None:
        """Count resources of a machine as no longer used."""
        used = self._used[machine]
        declared = self.declared.get(machine, _NOTHING)
        for name, amount in asked.amounts():
            used[name] = used.get(name, 0.0) - amount
            if name not in declared and abs(used[name]) < _ROUNDING:
                del used[name]  # jobs may request any names, and tiny amounts

    def left(self, machine: int) -> Mapping[str, float]:
        """Return what is left of a machine's declared resources, by name; empty if none."""
        declared = self.declared.get(machine)
        if declared is None:
            return _NOTHING
        used = self._used.get(machine, _NOTHING)
        return {name: amount - used.get(name, 0.0) for name, amount in declared.items()}

    def save(self) -> list[Any]:
        """Return the runs, as plain data; what machines declare is in their specifications."""
        return [[job, m, msgspec.to_builtins(asked)] for job, (m, asked) in self.runs.items()]

    def restore(self, saved: list[Any]) -> None:
        """Resume from what `save` returned. The machines must have been declared again."""
        for job in list(self.runs):
            self.end(job)
        for job, machine, asked in saved:
            self.begin(job, machine, msgspec.convert(asked, Resources))
