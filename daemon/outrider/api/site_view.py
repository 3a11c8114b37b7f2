"""Views of a site for policies, and the oracle that only bounds for judging may use."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from outrider.model.jobs import Job
from outrider.model.utility import TimeUtility


class SiteView(Protocol):
    """Read-only view of the site for policies; the engine is its only writer.

    In `Policy.choose`, and in `evaluate_group` before it, *free* means free for the job that is
    decided. If it requests several CPUs, memory, GPUs or others, or may not use every machine, the
    view shows, counts and draws only the machines on which it may start now.
    Everywhere else a machine is free if it is open and has a CPU left.
    """

    @property
    def now(self) -> float:
        """Event time of the scheduling pass, seconds."""
        ...

    @property
    def free_n(self) -> Sequence[int]:
        """Number of machines of each cluster on which a job may start now, by cluster number."""
        ...

    @property
    def free_total(self) -> int:
        """Number of machines on which a job may start now: the sum of `free_n`."""
        ...

    @property
    def active_w(self) -> Sequence[float | None]:
        """Mean watts of a busy machine, by cluster number; None where unknown."""
        ...

    @property
    def cluster_names(self) -> Sequence[str]:
        """Names of the clusters, by number."""
        ...

    @property
    def members(self) -> Sequence[Sequence[int]]:
        """Machines of each cluster, by cluster number."""
        ...

    @property
    def free_since(self) -> Mapping[int, float]:
        """Free machines, each with the event time since when it has been free."""
        ...

    def hour_of_day(self) -> int:
        """Return the local hour of `now`, 0 to 23."""
        ...

    def week_second(self) -> float:
        """Return the seconds since Monday 00:00 local time."""
        ...

    def next_reboot_s(self) -> float:
        """Return the event time of the next nightly reboot; infinite where a site has none."""
        ...

    def draw(self, rng: random.Random) -> int:
        """Return a free machine, uniformly over all. Raises `LookupError` if none is free."""
        ...

    def draw_in(self, cluster: int, rng: random.Random) -> int:
        """Return a free machine of a cluster, uniformly. Raises `LookupError` if none is free."""
        ...

    def is_free(self, machine: int) -> bool:
        """Return whether a job may start on a machine now."""
        ...

    def fitting(self, cpus: int) -> Sequence[int]:
        """Return free machines with at least `cpus` CPUs left, those with the fewest left last."""
        ...

    def longest_free(self) -> int:
        """Return the machine that has been free longest. Raises `LookupError` if none is free."""
        ...

    def was_available(self, start_s: float, end_s: float) -> bool:
        """Return whether some machine was open to jobs from `start_s` to `end_s` (<= now).

        No owner, reboot or administrator kept jobs away from it; jobs may have run there.
        """
        ...

    def watts_span(self) -> tuple[float, float]:
        """Return the least and most active watts of any cluster; (0, 0) where none is known."""
        ...

    def cluster_of(self, machine: int) -> int:
        """Return the number of a machine's cluster."""
        ...

    @property
    def machines_n(self) -> int:
        """Number of machines ever seen: their numbers are below this. One that left has no CPUs."""
        ...

    @property
    def open_cpus(self) -> int:
        """Number of CPUs of all machines open to jobs, free or not: the sum of `cpus_of`."""
        ...

    def cpus_of(self, machine: int) -> int:
        """Return the CPUs of a machine that jobs may use; 0 if it left or is shut."""
        ...

    def cpus_left(self, machine: int) -> int:
        """Return the CPUs of a machine on which a job may start now; 0 if it is shut."""
        ...

    def speed_of(self, machine: int) -> float:
        """Return the work that a CPU of the machine does in a second; 1 where not known."""
        ...

    def tightest(self, cpus: int) -> int:
        """Return the free machine with the fewest CPUs left that suffice, lowest number first.

        Return `NOWHERE` if there is none. Cheap where all machines have one CPU.
        """
        ...

    def resources_left(self, machine: int) -> Mapping[str, float]:
        """Return what is left of a machine's declared resources (memory, GPUs, ...), by name.

        `outrider.model.machines` has the names; a resource that is not in it is not checked.
        """
        ...

    def may_use(self, job: Job, machine: int) -> bool:
        """Return whether a machine is among those that a job may use, free or not."""
        ...

    def running_on(self, machine: int) -> Iterable[Job]:
        """Return the jobs that run on a machine, in the order in which they got their CPUs."""
        ...

    @property
    def running(self) -> Iterable[Job]:
        """Running jobs, for policies that `rank` or `plan`; empty for others."""
        ...

    def utility(self, job: Job) -> TimeUtility:
        """Return the time utility function that the site declares for the job's class."""
        ...

    @property
    def delivered_cpu_s(self) -> float:
        """CPU-seconds delivered to all VOs until now, those of current runs included."""
        ...

    def vo_shares(self) -> Mapping[str, tuple[float, float]]:
        """Return each VO's share of the CPU-seconds delivered until now, and its target."""
        ...


class Oracle(Protocol):
    """True values of a trace, for bounds for judging; never available to live policies."""

    def run_s(self, job: int) -> float:
        """Return the seconds of work until the job ends by itself; nan if it never does."""
        ...

    def next_login_s(self, machine: int, after_s: float) -> float:
        """Return when an owner next logs in at the machine; infinite if none does any more."""
        ...
