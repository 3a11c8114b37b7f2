"""What policies may see of a site, and what only bounds for judging may ask: the truth."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from outrider.model.jobs import Job
from outrider.model.utility import TimeUtility


class SiteView(Protocol):
    """What a policy may see of the site. Read-only: the engine is the only writer.

    In `Policy.choose`, and in `evaluate_group` before it, *free* means free for the job that is
    decided: where it requests several CPUs, memory, GPUs or others, or may not use every machine,
    the view shows, counts and draws only the machines on which it may start now.
    Everywhere else a machine is free if it is open and has a CPU left.
    """

    @property
    def now(self) -> float:
        """Event time of the scheduling pass, seconds."""
        ...

    @property
    def free_n(self) -> Sequence[int]:
        """Machines of each cluster on which a job may start now, by cluster number."""
        ...

    @property
    def free_total(self) -> int:
        """Their sum."""
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
        """The machines of each cluster, by cluster number."""
        ...

    @property
    def free_since(self) -> Mapping[int, float]:
        """Free machines, and since when each has been free (event time)."""
        ...

    def hour_of_day(self) -> int:
        """Local hour of `now`, 0 to 23."""
        ...

    def week_second(self) -> float:
        """Seconds since Monday 00:00 local time."""
        ...

    def next_reboot_s(self) -> float:
        """Return when the nightly reboot comes next, event time; infinite where a site has none."""
        ...

    def draw(self, rng: random.Random) -> int:
        """A free machine, uniformly over all. Raises `LookupError` if none is free."""
        ...

    def draw_in(self, cluster: int, rng: random.Random) -> int:
        """A free machine of a cluster, uniformly. Raises `LookupError` if none is free."""
        ...

    def is_free(self, machine: int) -> bool:
        """Return whether a job may start on a machine now."""
        ...

    def fitting(self, cpus: int) -> Sequence[int]:
        """Free machines with at least so many CPUs left, those with the fewest left last."""
        ...

    def longest_free(self) -> int:
        """The machine that has been free the longest. Raises `LookupError` if none is free."""
        ...

    def was_available(self, start_s: float, end_s: float) -> bool:
        """Return whether some machine was open to jobs from `start_s` to `end_s` (<= now).

        No owner, reboot or administrator kept jobs away from it; jobs may have run there.
        """
        ...

    def watts_span(self) -> tuple[float, float]:
        """The least and most active watts of any cluster; (0, 0) where none is known."""
        ...

    def cluster_of(self, machine: int) -> int:
        """The number of a machine's cluster."""
        ...

    @property
    def machines_n(self) -> int:
        """Machines ever seen: their numbers are below this. One that left has no CPUs."""
        ...

    @property
    def open_cpus(self) -> int:
        """CPUs of all machines that are open to jobs, free or not: the sum of `cpus_of`."""
        ...

    def cpus_of(self, machine: int) -> int:
        """CPUs jobs may use on a machine, free or not; 0 for one that left or is shut."""
        ...

    def cpus_left(self, machine: int) -> int:
        """CPUs on which a job may start on a machine now; 0 if it is shut to jobs."""
        ...

    def speed_of(self, machine: int) -> float:
        """Work a CPU of the machine does in a second; 1 where not known."""
        ...

    def tightest(self, cpus: int) -> int:
        """The free machine with the fewest CPUs left that suffice, the lowest number of equals.

        `NOWHERE` if there is none. Cheap where all machines have one CPU.
        """
        ...

    def resources_left(self, machine: int) -> Mapping[str, float]:
        """What is left of the resources (memory, GPUs, ...) that a machine declares, by name.

        `outrider.model.machines` has the names; what is not in it is not checked.
        """
        ...

    def may_use(self, job: Job, machine: int) -> bool:
        """Return whether a machine is among those that a job may use, free or not."""
        ...

    def running_on(self, machine: int) -> Iterable[Job]:
        """Jobs that run on a machine, in the order in which they got their CPUs."""
        ...

    @property
    def running(self) -> Iterable[Job]:
        """All jobs that run. For policies that `rank` or `plan`; others are shown none."""
        ...

    def utility(self, job: Job) -> TimeUtility:
        """The time utility function that the site declares for the job's class."""
        ...

    @property
    def delivered_cpu_s(self) -> float:
        """CPU-seconds delivered to all VOs until now, what runs included."""
        ...

    def vo_shares(self) -> Mapping[str, tuple[float, float]]:
        """Each VO's share of the CPU-seconds delivered until now, and its target."""
        ...


class Oracle(Protocol):
    """The truth about a trace. Bounds for judging ask it; nothing that runs live can."""

    def run_s(self, job: int) -> float:
        """Seconds of work until the job ends by itself; nan if it never does."""
        ...

    def next_login_s(self, machine: int, after_s: float) -> float:
        """Return when an owner next sits down at the machine; infinite if none does any more."""
        ...
