"""Placement check: whether a job may start on a machine. Every pass uses it, and no other.

A start is possible iff the machine is open to jobs, is one that the job may use, and has the CPUs,
memory, GPUs and other resources that the job requests, after all that the same pass has chosen
before. A resource that the machine does not declare is not checked.
"""

import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from outrider.engine.state.machines import FREE, RESERVED, SHUT, TAKEN, Machines, Room
from outrider.engine.state.site import Site
from outrider.model.decisions import NOWHERE
from outrider.model.jobs import Job, JobSpec
from outrider.model.machines import GPUS, MEMORY
from outrider.model.utility import TimeUtility

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
"""Reasons of a refusal, a closed list. `PROMISED`: it fits, but would delay a reservation."""
_WHY_OF: Final = {MEMORY: MEMORY_LEFT, GPUS: GPUS_LEFT}


class Refusal(NamedTuple):
    """Reason why a job cannot start on a machine.

    Attributes:
        why: one of `WHYS`.
        asked: what the job requests, in words.
        left: what is left, in words.
    """

    why: str
    asked: str
    left: str


def find_refusal(
    site: Machines, spec: JobSpec, machine: Any, cpus: int, room: Room | None = None
) -> Refusal | None:
    """Return why a job cannot start on a machine; None if it can.

    Args:
        site: now, with what this pass has chosen reserved.
        spec: of the job.
        machine: what the policy named; it may be anything.
        cpus: how many CPUs the job would get in addition.
        room: what is left of the machine in this pass, where the pass keeps count itself.
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
    """Return the key of jobs that fit on the same machines."""
    return spec.cpus, spec.resources, spec.eligible


def fits(site: Machines, spec: JobSpec, machine: int) -> bool:
    """Return whether a job can start on a machine that exists: `find_refusal` without words."""
    state = site.state[machine]
    if state != FREE or spec.cpus > site.cpus[machine] - site.busy[machine]:
        return False
    return site.is_eligible(spec, machine) and (
        spec.resources is None or site.room(machine).lacking(spec.resources) is None
    )


def fits_when_empty(site: Machines, spec: JobSpec, machine: int) -> bool:
    """Return whether a job could start on a machine if nothing else ran there, open or not."""
    if site.specs[machine] is None or spec.cpus > site.cpus[machine]:
        return False
    if not site.is_eligible(spec, machine):
        return False
    if spec.resources is None:
        return True
    whole = Room(site.cpus[machine], site.resources.declared.get(machine, {}))
    return whole.lacking(spec.resources) is None


def fits_an_open_machine(site: Machines, spec: JobSpec) -> bool:
    """Return whether a job could start on some open machine if nothing else ran there."""
    return any(
        state in (FREE, TAKEN, RESERVED) and fits_when_empty(site, spec, machine)
        for machine, state in enumerate(site.state)
    )


MAX_KINDS: Final = 10_000
"""Maximum number of remembered kinds: users may request many different amounts of memory."""


class Possible:
    """Cache of whether a kind of job fits on any machine of the site at all.

    Args:
        site: the site with the machines.
    """

    def __init__(self, site: Machines) -> None:
        self._site = site
        self._known: dict[Hashable, bool] = {}
        self._capacities_n = site.capacities_n

    def __call__(self, spec: JobSpec) -> bool:
        """Return whether a job fits on some machine, open or not, if nothing else runs there."""
        site = self._site
        if self._capacities_n != site.capacities_n or len(self._known) >= MAX_KINDS:
            self._capacities_n = site.capacities_n
            self._known.clear()
        kind = kind_of(spec)
        known = self._known.get(kind)
        if known is None:
            machines = range(site.machines_n)
            known = self._known[kind] = any(fits_when_empty(site, spec, m) for m in machines)
        return known


# -- open places -----------------------------------------------------------------------------------
# View of the site for a policy that decides one job that does not fit everywhere.
#
# Free means free *for this job* here: what a policy draws, lists or counts are the machines on
# which the job may start now, so that a policy need not know of widths, memory or eligibility to
# choose well. Everything else is the site's own.


class OpenPlaces:
    """View (`outrider.api.SiteView`) of the machines on which one job may start now.

    It is valid for one decision: the next choice changes what is free.

    Args:
        site: the whole site.
        job: the job that is decided.
        allows: whether it may start on a machine although others wait before it; None: it may.

    Attributes:
        free_since: the machines, each with the time since when it has been free, in that order.
    """

    def __init__(self, site: Site, job: Job, allows: Callable[[int], bool] | None = None) -> None:
        self.site = site
        spec = job.spec
        self.free_since: dict[int, float] = {
            machine: since_s
            for machine, since_s in site.free_since.items()
            if fits(site, spec, machine) and (allows is None or allows(machine))
        }
        self._free_n: list[int] | None = None

    # -- where the job may start --------------------------------------------------------------

    @property
    def free_total(self) -> int:
        """Number of machines on which the job may start."""
        return len(self.free_since)

    @property
    def free_n(self) -> Sequence[int]:
        """Number of machines on which the job may start, by cluster."""
        if self._free_n is None:
            self._free_n = [0] * len(self.site.cluster_names)
            for machine in self.free_since:
                self._free_n[self.site.machine_cluster[machine]] += 1
        return self._free_n

    def is_free(self, machine: int) -> bool:
        """Return whether the job may start on a machine now."""
        return machine in self.free_since

    def draw(self, rng: random.Random) -> int:
        """Draw one of the machines, uniformly. Raises `LookupError` if there is none."""
        return _pick(list(self.free_since), rng)

    def draw_in(self, cluster: int, rng: random.Random) -> int:
        """Draw one of a cluster's machines, uniformly. Raises `LookupError` if there is none."""
        of = self.site.machine_cluster
        return _pick([machine for machine in self.free_since if of[machine] == cluster], rng)

    def longest_free(self) -> int:
        """Return the machine that has been free longest. Raises `LookupError` if there is none."""
        if not self.free_since:
            raise LookupError("the job may start on no machine now")
        return next(iter(self.free_since))

    def fitting(self, cpus: int) -> list[int]:
        """Return machines with at least `cpus` CPUs left, those with the fewest left last."""
        left = [(self.cpus_left(machine), machine) for machine in self.free_since]
        return [machine for n, machine in sorted(left, reverse=True) if n >= cpus]

    def tightest(self, cpus: int) -> int:
        """Return the machine with the fewest CPUs left that suffice, lowest number first."""
        tightest, least, cpus_left = NOWHERE, 0, self.site.cpus_left
        for machine in self.free_since:
            left = cpus_left(machine)
            if left < cpus:
                continue
            if tightest == NOWHERE or (left, machine) < (least, tightest):
                tightest, least = machine, left
        return tightest

    def cpus_left(self, machine: int) -> int:
        """Return the CPUs left on one of the machines; 0 on all other machines."""
        return self.site.cpus_left(machine) if machine in self.free_since else 0

    # -- what is the same for all jobs --------------------------------------------------------

    @property
    def now(self) -> float:
        """Event time of the pass, seconds."""
        return self.site.now

    @property
    def active_w(self) -> Sequence[float | None]:
        """Mean watts of a busy machine, by cluster number; None where unknown."""
        return self.site.active_w

    @property
    def cluster_names(self) -> Sequence[str]:
        """Names of the clusters, by number."""
        return self.site.cluster_names

    @property
    def members(self) -> Sequence[Sequence[int]]:
        """Machines of each cluster, by cluster number."""
        return self.site.members

    @property
    def machines_n(self) -> int:
        """Number of machines ever seen: their numbers are below this."""
        return self.site.machines_n

    @property
    def open_cpus(self) -> int:
        """Number of CPUs of all machines that are open to jobs, free or not."""
        return self.site.open_cpus

    @property
    def running(self) -> Iterable[Job]:
        """Running jobs, as far as the site shows them."""
        return self.site.running

    def hour_of_day(self) -> int:
        """Return the local hour of `now`, 0 to 23."""
        return self.site.hour_of_day()

    def week_second(self) -> float:
        """Return the seconds since Monday 00:00 local time."""
        return self.site.week_second()

    def next_reboot_s(self) -> float:
        """Return the event time of the next nightly reboot; infinite where there is none."""
        return self.site.next_reboot_s()

    def was_available(self, start_s: float, end_s: float) -> bool:
        """Return whether some machine was open to jobs from start to end."""
        return self.site.was_available(start_s, end_s)

    def watts_span(self) -> tuple[float, float]:
        """Return the least and most active watts of any cluster."""
        return self.site.watts_span()

    def cluster_of(self, machine: int) -> int:
        """Return the number of a machine's cluster."""
        return self.site.cluster_of(machine)

    def cpus_of(self, machine: int) -> int:
        """Return the CPUs of a machine that jobs may use; 0 if it left or is shut."""
        return self.site.cpus_of(machine)

    def speed_of(self, machine: int) -> float:
        """Return the work that a CPU of the machine does in a second; 1 where not known."""
        return self.site.speed_of(machine)

    def resources_left(self, machine: int) -> Mapping[str, float]:
        """Return what is left of the resources that a machine declares, by name."""
        return self.site.resources_left(machine)

    def may_use(self, job: Job, machine: int) -> bool:
        """Return whether a machine is among those that a job may use, free or not."""
        return self.site.may_use(job, machine)

    def running_on(self, machine: int) -> Iterable[Job]:
        """Return the jobs that run on a machine, in the order in which they got their CPUs."""
        return self.site.running_on(machine)

    def utility(self, job: Job) -> TimeUtility:
        """Return the time utility function that the site declares for the job's class."""
        return self.site.utility(job)

    @property
    def delivered_cpu_s(self) -> float:
        """CPU-seconds delivered to all VOs until now."""
        return self.site.delivered_cpu_s

    def vo_shares(self) -> Mapping[str, tuple[float, float]]:
        """Return each VO's share of the CPU-seconds delivered until now, and its target."""
        return self.site.vo_shares()


def _pick(machines: Sequence[int], rng: random.Random) -> int:
    if not machines:
        raise LookupError("the job may start on no machine now")
    return machines[int(rng.random() * len(machines))]
