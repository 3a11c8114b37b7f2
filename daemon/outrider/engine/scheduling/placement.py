"""The placement check: whether a job may start on a machine. Every pass asks it, and nothing else.

A start is possible iff the machine is open to jobs, is one that the job may use, and has the CPUs,
memory, GPUs and other resources that the job asks for, after all that the same pass has chosen
before. A resource that the machine does not declare is not checked.
"""

from collections.abc import Hashable
from typing import Any, Final, NamedTuple

from outrider.engine.state.machines import FREE, RESERVED, SHUT, TAKEN, Machines
from outrider.engine.state.room import Room
from outrider.model.jobs import JobSpec
from outrider.model.resources import GPUS, MEMORY

UNKNOWN_MACHINE: Final = "unknown_machine"
CLOSED: Final = "closed"
CPUS: Final = "cpus"
MEMORY_LEFT: Final = "memory"
GPUS_LEFT: Final = "gpus"
RESOURCE: Final = "resource"
INELIGIBLE: Final = "ineligible"
PROMISED: Final = "promised"
WHYS: Final = (
    UNKNOWN_MACHINE, CLOSED, CPUS, MEMORY_LEFT, GPUS_LEFT, RESOURCE, INELIGIBLE, PROMISED,
)  # fmt: skip
"""Why a choice is refused, a closed list. `PROMISED`: it fits, but would delay a reservation."""

_WHY_OF: Final = {MEMORY: MEMORY_LEFT, GPUS: GPUS_LEFT}


class Refusal(NamedTuple):
    """Why a job cannot start on a machine.

    Attributes:
        why: one of `WHYS`.
        asked: what the job asks for, in words.
        left: what there is, in words.
    """

    why: str
    asked: str
    left: str


def find_refusal(
    site: Machines, spec: JobSpec, machine: Any, cpus: int, room: Room | None = None
) -> Refusal | None:
    """Why a job cannot start on a machine; None if it can.

    Args:
        site: now, with what this pass has chosen reserved.
        spec: of the job.
        machine: what the policy named; it may be anything.
        cpus: how many CPUs the job would get more than it has.
        room: what is left of the machine in this pass, where the pass keeps that itself.
    """
    known = isinstance(machine, int) and 0 <= machine < site.machines_n
    if not known or site.specs[machine] is None:
        return Refusal(UNKNOWN_MACHINE, _words(cpus), f"the site has no machine {machine!r}")
    if site.state[machine] == SHUT:
        return Refusal(CLOSED, _words(cpus), "the machine is closed to jobs")
    if not site.is_eligible(spec, machine):
        asked = f'a machine of the class "{spec.eligible}"'
        return Refusal(INELIGIBLE, asked, "the machine is not in it")
    if room is None:
        room = site.room(machine)
    if cpus > room.cpus:
        return Refusal(CPUS, _words(cpus), f"{_words(max(0, room.cpus))} left")
    short = None if spec.resources is None else room.lacking(spec.resources)
    if spec.resources is not None and short is not None:
        asked = f"{dict(spec.resources.amounts())[short]:g} {short}"
        return Refusal(_WHY_OF.get(short, RESOURCE), asked, f"{room.resources[short]:g} left")
    return None


def _words(cpus: int) -> str:
    return f"{cpus} CPU{'' if cpus == 1 else 's'}"


def kind_of(spec: JobSpec) -> Hashable:
    """What says where a job may start: jobs of one kind fit on the same machines."""
    return spec.cpus, spec.resources, spec.eligible


def fits(site: Machines, spec: JobSpec, machine: int) -> bool:
    """Whether a job can start on a machine that exists: `find_refusal` without words."""
    state = site.state[machine]
    if state != FREE or spec.cpus > site.cpus[machine] - site.busy[machine]:
        return False
    return site.is_eligible(spec, machine) and (
        spec.resources is None or site.room(machine).lacking(spec.resources) is None
    )


def fits_when_empty(site: Machines, spec: JobSpec, machine: int) -> bool:
    """Whether a job could start on a machine if nothing else ran there, open or not."""
    if site.specs[machine] is None or spec.cpus > site.cpus[machine]:
        return False
    if not site.is_eligible(spec, machine):
        return False
    if spec.resources is None:
        return True
    whole = Room(site.cpus[machine], site.resources.declared.get(machine, {}))
    return whole.lacking(spec.resources) is None


def fits_an_open_machine(site: Machines, spec: JobSpec) -> bool:
    """Whether a job could start on some machine that is open if nothing else ran there."""
    return any(
        state in (FREE, TAKEN, RESERVED) and fits_when_empty(site, spec, machine)
        for machine, state in enumerate(site.state)
    )


MOST_KINDS: Final = 10_000
"""Kinds of job that are remembered: a user may ask for another amount of memory with each job."""


class Possible:
    """Which kinds of job fit on any machine of the site at all; worked out once per kind.

    Args:
        site: whose machines.
    """

    def __init__(self, site: Machines) -> None:
        self._site = site
        self._known: dict[Hashable, bool] = {}
        self._capacities_n = site.capacities_n

    def __call__(self, spec: JobSpec) -> bool:
        """Whether a job would fit on some machine, open or not, if nothing else ran there."""
        site = self._site
        if self._capacities_n != site.capacities_n or len(self._known) >= MOST_KINDS:
            self._capacities_n = site.capacities_n
            self._known.clear()
        kind = kind_of(spec)
        known = self._known.get(kind)
        if known is None:
            machines = range(site.machines_n)
            known = self._known[kind] = any(fits_when_empty(site, spec, m) for m in machines)
        return known
