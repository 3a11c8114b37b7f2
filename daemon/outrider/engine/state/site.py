"""The state of a site: its machines, its jobs, its clock, and what policies may see of them."""

from collections.abc import Iterable, Mapping
from math import inf
from operator import attrgetter
from typing import Any, Final, Protocol

import msgspec

from outrider.engine.state.job_counts import JobCounts
from outrider.engine.state.machines import FREE, SHUT, TAKEN, Machines
from outrider.engine.state.packing import pack, unpack
from outrider.engine.state.runs import Runs
from outrider.model.clusters import ClusterSpec
from outrider.model.jobs import RUNNING, SUSPENDED_STATE, Job
from outrider.model.localtime import DAY_S, LocalTime
from outrider.model.machines import MachineSpec
from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility, utility_of

_NUMBER: Final = attrgetter("number")


class Shares(Protocol):
    """What VOs got and are owed, as the accounting knows it."""

    def delivered_cpu_s(self, now: float) -> float:
        """CPU-seconds delivered to all VOs until now."""
        ...

    def shares(self, now: float) -> Mapping[str, tuple[float, float]]:
        """Each VO's share of what was delivered until now, and its target."""
        ...


class Site(Machines):
    """State of machines and jobs; implements `outrider.api.SiteView` for policies.

    Args:
        local_time: the site's wall clock, for the hour of day.
        clusters: declared clusters; others appear with the first machine that names them.
        reboot_day_s: second of the day of the nightly reboot; None for none.
        utilities: time utility functions by job class.

    Attributes:
        runs: what runs where, if somebody looks at it; else None.
        kept_counts: `job_counts`, kept up to date if somebody asks for them often; else None.
        fairness: what VOs got and are owed; the engine hands it in.
    """

    def __init__(
        self,
        local_time: LocalTime,
        clusters: list[ClusterSpec],
        reboot_day_s: float | None = None,
        utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES,
    ) -> None:
        super().__init__(clusters)
        self.local_time = local_time
        self._reboot_day_s = reboot_day_s
        self.jobs: dict[int, Job] = {}
        self.runs: Runs | None = None
        self.kept_counts: JobCounts | None = None
        self.fairness: Shares | None = None
        self.utilities = utilities

    def index_runs(self) -> None:
        """Begin to keep `runs`: some policy or rule looks at what runs where."""
        self.runs = Runs()
        for job in sorted(self.jobs.values(), key=lambda job: job.start_s):
            if job.state == RUNNING or (job.state == SUSPENDED_STATE and not job.gave_back):
                self.runs.add(job, self.speed_of(job.machine), self.now)

    def count_jobs(self) -> None:
        """Begin to keep `job_counts`, or count anew; an engine that is made later keeps them."""
        self.kept_counts = JobCounts(self.jobs.values())

    @property
    def job_counts(self) -> JobCounts:
        """How many jobs are in each state; a walk over all jobs where nobody keeps it."""
        return JobCounts(self.jobs.values()) if self.kept_counts is None else self.kept_counts

    @property
    def with_run(self) -> list[Job]:
        """The jobs that have a run, suspended or not, in the order of their numbers."""
        return sorted(self.job_counts.with_run.values(), key=_NUMBER)

    # -- the view of policies ---------------------------------------------------------------

    def hour_of_day(self) -> int:
        """Local hour of `now`, 0 to 23."""
        return int(self.local_time.week_second(self.now)) // 3600 % 24

    def week_second(self) -> float:
        """Seconds since Monday 00:00 local time."""
        return self.local_time.week_second(self.now)

    def next_reboot_s(self) -> float:
        """When the nightly reboot comes next, event time; infinite where there is none."""
        if self._reboot_day_s is None:
            return inf
        ahead_s = (self._reboot_day_s - self.week_second()) % DAY_S
        return self.now + (ahead_s or DAY_S)

    def running_on(self, machine: int) -> Iterable[Job]:
        """Jobs that run on a machine, in the order in which they got their CPUs."""
        return () if self.runs is None else self.runs.on(machine).values()

    @property
    def running(self) -> Iterable[Job]:
        """All jobs that run. For policies that `rank` or `plan`; others are shown none."""
        return () if self.runs is None else self.runs

    def may_use(self, job: Job, machine: int) -> bool:
        """Whether a machine is among those that a job may use, free or not."""
        return self.is_eligible(job.spec, machine)

    def utility(self, job: Job) -> TimeUtility:
        """The time utility function that the site declares for the job's class."""
        return utility_of(self.utilities, job.spec.job_class)

    @property
    def delivered_cpu_s(self) -> float:
        """CPU-seconds delivered to all VOs until now, what runs included."""
        return 0.0 if self.fairness is None else self.fairness.delivered_cpu_s(self.now)

    def vo_shares(self) -> Mapping[str, tuple[float, float]]:
        """Each VO's share of the CPU-seconds delivered until now, and its target."""
        return {} if self.fairness is None else self.fairness.shares(self.now)

    def was_available(self, start_s: float, end_s: float) -> bool:
        """Whether some machine was open to jobs from start to end (<= now), whoever used it."""
        return self.availability.lasted(start_s, end_s, self.now)

    # -- snapshots --------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Everything that changes, as plain data."""
        return {
            "now": self.now,
            "jobs": pack(job.save() for job in self.jobs.values()),
            "clusters": self.cluster_names,
            "machines": [None if s is None else msgspec.to_builtins(s) for s in self.specs],
            "machine_cluster": self.machine_cluster,
            "members": self.members,
            "busy": self.busy,
            "usable": bytes(map(bool, self.state)),
            "owner": bytes(self.owner),
            "free": bytes(state == FREE for state in self.state),
            "availability": self.availability.save(),
            "free_since": list(self.free_since.items()),
            "resource_runs": self.resources.save(),
            "classes": {name: sorted(machines) for name, machines in self.classes.items()},
            "runs": None if self.runs is None else self.runs.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave. The declared clusters must have been declared again."""
        for name in saved["clusters"]:
            self.cluster_number(name)
        for machine, spec in enumerate(saved["machines"]):
            name = saved["clusters"][saved["machine_cluster"][machine]]
            self.join(machine, msgspec.convert(spec or {"cluster": name}, MachineSpec))
            if spec is None:
                self.leave(machine)
        self.now = saved["now"]
        self.jobs = {job["number"]: Job.restore(job) for job in unpack(saved["jobs"])}
        names = [self.cluster_number(name) for name in saved["clusters"]]
        for cluster, members in zip(names, saved["members"], strict=True):
            self.members[cluster] = list(members)
        self.busy = list(saved["busy"])
        self.owner = bytearray(saved["owner"])
        for machine, (usable, free) in enumerate(zip(saved["usable"], saved["free"], strict=True)):
            self.state[machine] = (FREE if free else TAKEN) if usable else SHUT
        self.resources.restore(saved["resource_runs"])
        self.classes = {name: set(machines) for name, machines in saved["classes"].items()}
        self.availability.restore(saved["availability"])
        self.free_since.clear()
        self.free_since.update(saved["free_since"])
        self.recount()
        if self.runs is not None:
            if saved.get("runs") is None:  # no policy looked at them then
                self.index_runs()
            else:
                self.runs = Runs.restored(saved["runs"], self.jobs)
        if self.kept_counts is not None:
            self.count_jobs()
