"""State of a site: its machines, its jobs, its clock, and the view for policies."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from outrider.engine.state.machines import FREE, SHUT, TAKEN, Machines
from outrider.engine.state.packing import pack, unpack
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JOB_STATE_NAMES, RUNNING, SUSPENDED_STATE, Job
from outrider.model.localtime import DAY_S, LocalTime
from outrider.model.machines import ClusterSpec, MachineSpec
from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility, utility_of

# -- job counts ------------------------------------------------------------------------------------
# Counts of the jobs in each state, updated with every event: a reader needs no walk over all jobs.

Key: TypeAlias = tuple[str, str]
"""Key of counts: job class and VO."""


class JobCounts:
    """Counts of the jobs that are here, equal to those of a walk over them.

    A job is taken out before it changes and put in afterwards, so no handler has to know what an
    event changes. A job that changes in any other way makes the counts wrong.

    Args:
        jobs: those that are here already.

    Attributes:
        by_state: jobs in each state, by its number.
        by_vo: the same for each VO that has jobs.
        never_started: jobs without a first start, by job class and VO.
        with_run: the jobs that have a run, suspended or not, by number.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.by_state = [0] * len(JOB_STATE_NAMES)
        self.by_vo: dict[str, list[int]] = {}
        self.never_started: dict[Key, int] = {}
        self.with_run: dict[int, Job] = {}
        for job in jobs:
            self.put_in(job)

    def put_in(self, job: Job) -> None:
        """Count a job with its present state."""
        spec, state = job.spec, job.state
        self.by_state[state] += 1
        states = self.by_vo.get(spec.vo)
        if states is None:
            states = self.by_vo[spec.vo] = [0] * len(JOB_STATE_NAMES)
        states[state] += 1
        if job.first_start_s is None:
            key = (spec.job_class, spec.vo)
            self.never_started[key] = self.never_started.get(key, 0) + 1
        if state in (RUNNING, SUSPENDED_STATE):
            self.with_run[job.number] = job

    def take_out(self, job: Job) -> None:
        """Remove a job from the counts; it must be as it was when it was put in."""
        spec, state = job.spec, job.state
        self.by_state[state] -= 1
        states = self.by_vo[spec.vo]
        states[state] -= 1
        if not any(states):
            del self.by_vo[spec.vo]
        if job.first_start_s is None:
            key = (spec.job_class, spec.vo)
            self.never_started[key] -= 1
            if not self.never_started[key]:
                del self.never_started[key]
        self.with_run.pop(job.number, None)


# -- site ------------------------------------------------------------------------------------------

_NUMBER: Final = attrgetter("number")


class Shares(Protocol):
    """Delivered and target shares of VOs, from the accounting."""

    def delivered_cpu_s(self, now: float) -> float:
        """Return the CPU-seconds delivered to all VOs until now."""
        ...

    def shares(self, now: float) -> Mapping[str, tuple[float, float]]:
        """Return each VO's share of what was delivered until now, and its target."""
        ...


class Site(Machines):
    """State of machines and jobs; implements `outrider.api.SiteView` for policies.

    Args:
        local_time: the site's wall clock, for the hour of day.
        clusters: declared clusters; others appear with the first machine that names them.
        reboot_day_s: second of the day of the nightly reboot; None for none.
        utilities: time utility functions by job class.

    Attributes:
        runs: running jobs by machine, if a policy or rule needs them; else None.
        kept_counts: `job_counts`, updated with every event if they are read often; else None.
        fairness: delivered and target shares of VOs; set by the engine.
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
        """Begin to keep `runs`, because some policy or rule needs them."""
        self.runs = Runs()
        for job in sorted(self.jobs.values(), key=lambda job: job.start_s):
            if job.state == RUNNING or (job.state == SUSPENDED_STATE and not job.gave_back):
                self.runs.add(job, self.speed_of(job.machine), self.now)

    def count_jobs(self) -> None:
        """Begin to keep `job_counts`, or recount; an engine that is created later updates them."""
        self.kept_counts = JobCounts(self.jobs.values())

    @property
    def job_counts(self) -> JobCounts:
        """Counts of the jobs in each state; a walk over all jobs where they are not kept."""
        return JobCounts(self.jobs.values()) if self.kept_counts is None else self.kept_counts

    @property
    def with_run(self) -> list[Job]:
        """Jobs that have a run, suspended or not, in the order of their numbers."""
        return sorted(self.job_counts.with_run.values(), key=_NUMBER)

    # -- the view of policies ---------------------------------------------------------------

    def hour_of_day(self) -> int:
        """Return the local hour of `now`, 0 to 23."""
        return int(self.local_time.week_second(self.now)) // 3600 % 24

    def week_second(self) -> float:
        """Return the seconds since Monday 00:00 local time."""
        return self.local_time.week_second(self.now)

    def next_reboot_s(self) -> float:
        """Return the event time of the next nightly reboot; infinite where there is none."""
        if self._reboot_day_s is None:
            return inf
        ahead_s = (self._reboot_day_s - self.week_second()) % DAY_S
        return self.now + (ahead_s or DAY_S)

    def running_on(self, machine: int) -> Iterable[Job]:
        """Return the jobs that run on a machine, in the order in which they got their CPUs."""
        return () if self.runs is None else self.runs.on(machine).values()

    @property
    def running(self) -> Iterable[Job]:
        """Running jobs, for policies that `rank` or `plan`; empty for others."""
        return () if self.runs is None else self.runs

    def may_use(self, job: Job, machine: int) -> bool:
        """Return whether a machine is among those that a job may use, free or not."""
        return self.is_eligible(job.spec, machine)

    def utility(self, job: Job) -> TimeUtility:
        """Return the time utility function that the site declares for the job's class."""
        return utility_of(self.utilities, job.spec.job_class)

    @property
    def delivered_cpu_s(self) -> float:
        """CPU-seconds delivered to all VOs until now, those of current runs included."""
        return 0.0 if self.fairness is None else self.fairness.delivered_cpu_s(self.now)

    def vo_shares(self) -> Mapping[str, tuple[float, float]]:
        """Return each VO's share of the CPU-seconds delivered until now, and its target."""
        return {} if self.fairness is None else self.fairness.shares(self.now)

    def was_available(self, start_s: float, end_s: float) -> bool:
        """Return whether some machine was open to jobs from start to end (<= now), used or not."""
        return self.availability.lasted(start_s, end_s, self.now)

    # -- snapshots --------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return everything that changes, as plain data."""
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
            "closed_because": list(self.closed_because.items()),
            "free": bytes(state == FREE for state in self.state),
            "availability": self.availability.save(),
            "free_since": list(self.free_since.items()),
            "resource_runs": self.resources.save(),
            "classes": {name: sorted(machines) for name, machines in self.classes.items()},
            "runs": None if self.runs is None else self.runs.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned. The declared clusters must have been declared again."""
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
        self.closed_because = dict(saved.get("closed_because", ()))
        for machine, (usable, free) in enumerate(zip(saved["usable"], saved["free"], strict=True)):
            self.state[machine] = (FREE if free else TAKEN) if usable else SHUT
        self.resources.restore(saved["resource_runs"])
        self.classes = {name: set(machines) for name, machines in saved["classes"].items()}
        self.availability.restore(saved["availability"])
        self.free_since.clear()
        self.free_since.update(saved["free_since"])
        self.recount()
        if self.runs is not None:
            if saved.get("runs") is None:  # no policy needed them then
                self.index_runs()
            else:
                self.runs = Runs.restored(saved["runs"], self.jobs)
        if self.kept_counts is not None:
            self.count_jobs()


# -- runs ------------------------------------------------------------------------------------------
# Running jobs by machine, and their expected ends: for policies and rules that need them.


class ExpectedEnd(NamedTuple):
    """Expected end of a run, and the CPUs it then frees; infinite: not known."""

    end_s: float
    job: int
    cpus: int


class Runs:
    """Running jobs by machine, in the order in which they got the CPUs that they have there."""

    def __init__(self) -> None:
        self._by_machine: dict[int, dict[int, Job]] = {}
        self._ends: dict[int, list[ExpectedEnd]] = {}
        self._expected: dict[int, ExpectedEnd] = {}

    def add(self, job: Job, speed: float, now: float) -> None:
        """Add a job that runs on its machine from now on, or continues there on other CPUs."""
        self._add(job, now + remaining_s(job, speed, now))

    def _add(self, job: Job, end_s: float) -> None:
        self._by_machine.setdefault(job.machine, {})[job.number] = job
        expected = ExpectedEnd(end_s, job.number, job.cpus)
        self._expected[job.number] = expected
        insort(self._ends.setdefault(job.machine, []), expected)

    def drop(self, job: Job) -> None:
        """Remove a job that no longer runs there."""
        self._by_machine.get(job.machine, {}).pop(job.number, None)
        expected = self._expected.pop(job.number, None)
        if expected is not None:
            ends = self._ends[job.machine]
            del ends[bisect_left(ends, expected)]

    def on(self, machine: int) -> dict[int, Job]:
        """Return the running jobs of one machine, by number."""
        return self._by_machine.get(machine, {})

    def ends(self, machine: int) -> list[ExpectedEnd]:
        """Return a machine's expected ends, the first one first; those in the past are overdue."""
        return self._ends.get(machine, [])

    def __iter__(self) -> Iterator[Job]:
        return chain.from_iterable(map(dict.values, self._by_machine.values()))

    def save(self) -> list[Any]:
        """Return the jobs and their expected ends by machine, all in order."""
        return [
            [machine, [[number, self._expected[number].end_s] for number in jobs]]
            for machine, jobs in self._by_machine.items()
        ]

    @classmethod
    def restored(cls, saved: list[Any], jobs: Mapping[int, Job]) -> "Runs":
        """Rebuild what `save` described; recomputed, orders and ends would not be the same."""
        runs = cls()
        for machine, there in saved:
            runs._by_machine[machine] = {}
            for number, end_s in there:
                runs._add(jobs[number], end_s)
        return runs


def remaining_s(job: Job, speed: float, now: float) -> float:
    """Return the expected seconds until a running job is done: 0 if overdue, inf if unknown.

    Args:
        job: on `job.cpus` CPUs, which may be fewer than it requested.
        speed: of its machine.
        now: event time.
    """
    if job.spec.estimate_s is None:
        return inf
    rate = speed * min(job.cpus, job.spec.cpus) / job.spec.cpus
    done_s = job.work_s(now) * speed
    return max(0.0, job.spec.estimate_s - done_s) / rate


# -- machine state as events -----------------------------------------------------------------------
# Conversion of the current machine state into events.


def machine_events(
    site: Site, names: Sequence[str], time_s: float, *, declared: bool = False
) -> Iterator[NamedEvent]:
    """Yield events that describe the machines, their states and who may use them.

    Args:
        site: in its current state.
        names: of its machines, by number.
        time_s: of the events.
        declared: only machines that a source reported, not those named by runs alone.
    """
    for machine, spec in enumerate(site.specs):
        if spec is None or (declared and spec.inferred):
            continue
        name = names[machine]
        yield time_s, ev.JOINED, name, spec
        if site.state[machine] != SHUT:
            yield time_s, ev.USABLE, name, None
        elif site.owner[machine]:
            yield time_s, ev.OWNER_CAME, name, None
        else:
            yield time_s, ev.DRAINED, name, site.closed_because.get(machine)
    for name, machines in site.classes.items():
        yield time_s, ev.ELIGIBLE, name, tuple(names[machine] for machine in sorted(machines))
