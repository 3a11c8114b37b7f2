"""Plan of the runs on one machine after a scheduling pass, and the moves towards it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api import PREEMPT, RESUME, SHRINK, START, SUSPENDED_STATE, Job, Move, SiteView
from outrider_policies.planning.queued_jobs import QueuedJobs, RunLengths, work_left_s

Floats = NDArray[np.float64]
GROW: Final = "grow"
PREEMPTED: Final = "preempted"


class Run:
    """A present or planned run of a job.

    Attributes:
        job: the job.
        requested: CPUs it requests.
        cpus: CPUs it has in the plan.
        ideal_s: its whole work, seconds on all requested CPUs at speed 1.
        left_s: work left, in the same unit.
        remaining_s: seconds until it completes on `cpus`.
        unit: its unit utility at that time.
        row: its row in the queue if it is started in this pass; otherwise None.
        reason: why it has these CPUs; empty for an unchanged run.
        scores: values of the alternatives, where a value function decided.
    """

    __slots__ = (
        "cpus", "ideal_s", "job", "left_s", "reason", "remaining_s", "requested", "row", "scores",
        "unit",
    )  # fmt: skip

    def __init__(self, job: Job, cpus: int, ideal_s: float, left_s: float) -> None:
        self.job = job
        self.requested = job.spec.cpus
        self.cpus = cpus
        self.ideal_s = ideal_s
        self.left_s = left_s
        self.remaining_s = left_s
        self.unit = 0.0
        self.row: int | None = None
        self.reason = ""
        self.scores: dict[str, float] | None = None

    @property
    def remaining_utility(self) -> float:
        """Unit utility at completion per second until then (Vengerov 2005, 4.1, step 4)."""
        return self.unit / self.remaining_s


class MachinePlan:
    """The planned runs of a machine; changes take effect only by its `moves`.

    Attributes:
        machine: its number.
        cpus: its CPUs.
        free: CPUs on which nothing runs in the plan.
        speed: work that a CPU does per second.
        left: resources besides CPUs that are unused, by name, of those the machine declares. What
            a suspended run frees counts from the next pass on only.
        runs: its runs, those started in this pass last.
    """

    def __init__(self, machine: int, view: SiteView, lengths: RunLengths) -> None:
        self.machine = machine
        self.cpus = view.cpus_of(machine)
        self.free = view.cpus_left(machine)
        self.speed = view.speed_of(machine)
        self.left = dict(view.resources_left(machine))
        self.runs: list[Run] = []
        self._view = view
        there = list(view.running_on(machine))
        if sum(job.cpus for job in there) > self.cpus:
            there.clear()  # overbooked by its batch system: a preemption would free nothing
        for job in there:
            if job.state == SUSPENDED_STATE:
                continue  # its CPUs are taken, and this policy may not move it
            ideal_s = lengths.ideal_s(job)
            self.runs.append(Run(job, job.cpus, ideal_s, work_left_s(job, ideal_s, view.now)))
        self._before = self.cpus_by_job()
        self.update_completions(self.runs)

    def cpus_by_job(self) -> dict[int, int]:
        """Return the CPUs of each run, by job number."""
        return {run.job.number: run.cpus for run in self.runs}

    @property
    def has_started(self) -> bool:
        """True if a queued job was placed in this pass."""
        return any(run.row is not None for run in self.runs)

    def grow(self) -> None:
        """Give free CPUs to runs that have fewer than they request, the oldest first."""
        grown = []
        for run in self.runs:
            more = min(self.free, run.requested - run.cpus)
            if more > 0:
                self.set_cpus(run, run.cpus + more, GROW)
                grown.append(run)
        self.update_completions(grown)

    def set_cpus(self, run: Run, cpus: int, reason: str) -> None:
        """Set a run's CPUs; `remaining_s` and `unit` need `update_completions` afterwards."""
        self.free -= cpus - run.cpus
        run.cpus, run.reason = cpus, reason

    def place(self, queued: QueuedJobs, row: int, cpus: int, unit: float, reason: str) -> Run:
        """Plan the start of a queued job here.

        Args:
            queued: the queue; its row is marked as taken.
            row: the job's row.
            cpus: CPUs for it, at most `free`.
            unit: its unit utility at completion on these.
            reason: recorded in the decision.
        """
        ideal_s, left_s = float(queued.ideal_s[row]), float(queued.left_s[row])
        run = Run(queued.take(row), cpus, ideal_s, left_s)
        run.remaining_s = run.left_s * run.requested / (cpus * self.speed)
        run.unit, run.row, run.reason = unit, row, reason
        self.runs.append(run)
        self.free -= cpus
        self._use(run.job, -1.0)
        return run

    def _use(self, job: Job, sign: float) -> None:
        """Take the resources of a start planned in this pass (-1.0), or return them (1.0)."""
        if job.spec.resources is not None:
            for name, amount in job.spec.resources.amounts():
                if name in self.left:
                    self.left[name] += sign * amount

    def suspend(self, runs: Sequence[Run], queued: QueuedJobs) -> None:
        """Suspend runs and put them in the queue; starts planned in this pass are cancelled."""
        for run in runs:
            self.runs.remove(run)
            self.free += run.cpus
            if run.row is not None:
                queued.put_back(run.row)
                self._use(run.job, 1.0)
        ran = [run for run in runs if run.row is None]
        if ran:
            queued.add([run.job for run in ran], self.machine, [run.ideal_s for run in ran])

    def moves(self) -> Iterator[Move]:
        """Yield the changes as moves; CPUs are released before others take them."""
        running = {run.job.number for run in self.runs}
        for number in self._before:
            if number not in running:
                yield Move(PREEMPT, number, self.machine, 0, PREEMPTED, 1.0)
        changes = [(run.cpus - self._before.get(run.job.number, 0), run) for run in self.runs]
        for change, run in sorted(changes, key=lambda change: change[0]):
            if change:
                yield Move(
                    self._action(run), run.job.number, self.machine, run.cpus, run.reason, 1.0,
                    run.scores,
                )  # fmt: skip

    def _action(self, run: Run) -> str:
        if run.job.number in self._before:
            return SHRINK
        if run.job.state == SUSPENDED_STATE:
            return RESUME
        return START if run.cpus == run.requested else SHRINK

    def units(self, runs: Sequence[Run], remaining_s: Floats) -> Floats:
        """Return (runs,) unit utilities if the runs complete in `remaining_s` (runs,) seconds."""
        utilities = [self._view.utility(run.job) for run in runs]
        turnaround_s = remaining_s + [self._age_s(run.job) for run in runs]
        ideal_s = np.array([run.ideal_s for run in runs])
        first = utilities[0]
        if all(utility is first for utility in utilities):  # a fifth of the cost of single calls
            return first.unit(turnaround_s, ideal_s)
        each = zip(utilities, turnaround_s, ideal_s, strict=True)
        return np.array([float(utility.unit(spent, ideal)) for utility, spent, ideal in each])

    def update_completions(self, runs: Sequence[Run]) -> None:
        """Recompute `remaining_s` and `unit` of runs for the CPUs they have."""
        if not runs:
            return
        remaining_s = np.array([run.left_s * run.requested / run.cpus for run in runs]) / self.speed
        units = self.units(runs, remaining_s)
        for run, seconds, unit in zip(runs, remaining_s.tolist(), units.tolist(), strict=True):
            run.remaining_s, run.unit = seconds, unit

    def _age_s(self, job: Job) -> float:
        """Return the seconds since a job's submission; if that is unknown, since its start."""
        return self._view.now - (job.start_s if job.submit_s is None else job.submit_s)


# -- density ---------------------------------------------------------------------------------------
# Allocation of all CPUs of a machine in order of utility density (fractional knapsack).
#
# The density of a job is the utility that it still earns per CPU-second that it still needs:
# u L / remaining, with u its unit utility if it had all its CPUs from now on, L its ideal run time
# and `remaining` what is left of it. The last job that fits may get fewer CPUs than it requests.

DENSEST: Final = "densest"


class _Demand(NamedTuple):
    """A job's demand for CPUs; sorted by density, then runs before queued jobs, then by age."""

    density: float
    run: Run | None
    row: int
    unit: float
    requested: int


def allocate_by_density(plan: MachinePlan, queued: QueuedJobs) -> None:
    """Reallocate all CPUs of a machine by density, to its runs and to queued jobs."""
    free = plan.free + sum(run.cpus for run in plan.runs)
    demands = [*_demands_of_runs(plan), *_demands_of_queue(plan, queued)]
    granted: list[tuple[_Demand, int]] = []
    for demand in sorted(demands, key=lambda demand: -demand.density):
        if free and demand.density > 0.0:
            cpus = min(demand.requested, free)
            granted.append((demand, cpus))
            free -= cpus
    staying = [demand.run for demand, _ in granted if demand.run is not None]
    plan.suspend([run for run in plan.runs if run not in staying], queued)
    for demand, cpus in granted:
        if demand.run is not None:
            plan.set_cpus(demand.run, cpus, DENSEST)
    for demand, cpus in granted:
        if demand.run is None and queued.could_run(demand.row, plan.machine, plan.left):
            plan.place(queued, demand.row, cpus, demand.unit, DENSEST)
    plan.update_completions(plan.runs)


def _demands_of_runs(plan: MachinePlan) -> Iterable[_Demand]:
    if not plan.runs:
        return
    remaining_s = np.array([run.left_s for run in plan.runs]) / plan.speed
    units = plan.units(plan.runs, remaining_s)
    for run, seconds, unit in zip(plan.runs, remaining_s.tolist(), units.tolist(), strict=True):
        yield _Demand(unit * run.ideal_s / seconds, run, -1, unit, run.requested)


def _demands_of_queue(plan: MachinePlan, queued: QueuedJobs) -> Iterable[_Demand]:
    may_run = queued.may_run_on(plan.machine, plan.left)
    (rows,) = (may_run & (queued.requested <= plan.cpus)).nonzero()
    all_remaining_s, all_units = queued.at_speed(plan.speed)
    remaining_s, units = all_remaining_s[rows], all_units[rows]
    densities = units * queued.ideal_s[rows] / remaining_s
    for at in np.flatnonzero(densities > 0.0).tolist():
        row = int(rows[at])
        yield _Demand(float(densities[at]), None, row, float(units[at]), int(queued.requested[row]))


# -- forcing ---------------------------------------------------------------------------------------
# Ways to start a job that does not fit: preempt others, or shrink it (Vengerov 2005, 4.1).

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]
FORCED: Final = "forced"
SHRUNK: Final = "shrunk"


class Candidates(NamedTuple):
    """Queued jobs that could be placed on a machine.

    Attributes:
        rows: (n,) rows in the queue.
        cpus: (n,) CPUs that each would get.
        remaining_s: (n,) seconds until it would complete on these.
        units: (n,) unit utility at that time.
        preempted_n: (n,) runs that would be suspended for it, lowest remaining utility first.
    """

    rows: Rows
    cpus: Ints
    remaining_s: Floats
    units: Floats
    preempted_n: Rows

    def where(self, mask: NDArray[np.bool_]) -> "Candidates":
        """Return the candidates for which the (n,) mask is true."""
        return Candidates(
            self.rows[mask],
            self.cpus[mask],
            self.remaining_s[mask],
            self.units[mask],
            self.preempted_n[mask],
        )


def by_remaining_utility(plan: MachinePlan) -> list[Run]:
    """Return a machine's runs in the order of suspension: lowest remaining utility first."""
    return sorted(plan.runs, key=lambda run: run.remaining_utility)


def preemption_candidates(plan: MachinePlan, queued: QueuedJobs) -> Candidates:
    """Return the jobs that could get all requested CPUs if runs were suspended (steps 4 and 5).

    A job may preempt only runs of lower remaining utility than its own: of two jobs without any
    utility left, neither should preempt the other.
    """
    runs = by_remaining_utility(plan)
    free_after = np.array([*accumulate((run.cpus for run in runs), initial=plan.free)])
    max_cpus = min(plan.cpus, int(free_after[-1]))  # less than all where a machine is overbooked
    can = queued.may_run_on(plan.machine, plan.left) & (queued.requested <= max_cpus)
    (rows,) = can.nonzero()
    requested = queued.requested[rows]
    preempted_n = free_after.searchsorted(requested)
    all_remaining_s, all_units = queued.at_speed(plan.speed)
    remaining_s, units = all_remaining_s[rows], all_units[rows]
    highest = np.array([-np.inf, *(run.remaining_utility for run in runs)])[preempted_n]
    candidates = Candidates(rows, requested, remaining_s, units, preempted_n)
    return candidates.where(highest < units / remaining_s)


def shrink_candidates(plan: MachinePlan, queued: QueuedJobs) -> Candidates:
    """Return the jobs on the free CPUs, even if these are fewer than requested (step 8)."""
    rows = np.empty(0, np.intp)
    if plan.free:
        (rows,) = queued.may_run_on(plan.machine, plan.left).nonzero()
    requested = queued.requested[rows]
    cpus = np.minimum(requested, plan.free)
    remaining_s = queued.left_s[rows] * requested / (np.maximum(cpus, 1) * plan.speed)
    units = queued.units(rows, remaining_s)
    return Candidates(rows, cpus, remaining_s, units, np.zeros(len(rows), dtype=np.intp))


def place_candidate(
    plan: MachinePlan,
    queued: QueuedJobs,
    candidates: Candidates,
    chosen: int,
    scores: dict[str, float] | None = None,
) -> Run:
    """Place a candidate, then fill the CPUs it leaves free by best fit.

    Jobs that were preempted for it are queued, and may be placed again.
    """
    preempted = int(candidates.preempted_n[chosen])
    plan.suspend(by_remaining_utility(plan)[:preempted], queued)
    row, cpus = int(candidates.rows[chosen]), int(candidates.cpus[chosen])
    reason = FORCED if preempted else SHRUNK
    placed = plan.place(queued, row, cpus, float(candidates.units[chosen]), reason)
    placed.scores = scores
    fit_best(plan, queued)
    return placed


# -- best fit stage --------------------------------------------------------------------------------
# The first stage of Vengerov's scheduler: best fit, without preempting or shrinking runs.

BEST_FIT: Final = "best_fit"


def fit_best(plan: MachinePlan, queued: QueuedJobs) -> None:
    """Place the queued job that leaves the fewest CPUs free; repeat until none fits.

    Of equally wide jobs the one of the highest unit utility at completion comes first, of equal
    ones the first in the queue.
    """
    while plan.free:
        fits = queued.may_run_on(plan.machine, plan.left) & (queued.requested <= plan.free)
        (rows,) = fits.nonzero()
        if not len(rows):
            return
        requested = queued.requested[rows]
        widest = requested.max()
        rows = rows[requested == widest]
        units = queued.at_speed(plan.speed)[1][rows]
        best = int(units.argmax())
        plan.place(queued, int(rows[best]), int(widest), float(units[best]), BEST_FIT)


def grow_and_fit(plan: MachinePlan, queued: QueuedJobs) -> None:
    """Grow shrunk runs, then best fit (section 4.2, first heuristic)."""
    plan.grow()
    fit_best(plan, queued)
