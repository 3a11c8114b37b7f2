"""A plan of what one machine runs after a scheduling pass, and the moves towards it."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import (
    PREEMPT,
    RESUME,
    SHRINK,
    START,
    SUSPENDED_STATE,
    Job,
    Move,
    SiteView,
)
from outrider_policies.planning.queued_jobs import QueuedJobs
from outrider_policies.planning.run_lengths import RunLengths
from outrider_policies.planning.work_left import work_left_s

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
                continue  # its CPUs are taken, and it is not ours to move
            ideal_s = lengths.ideal_s(job)
            self.runs.append(Run(job, job.cpus, ideal_s, work_left_s(job, ideal_s, view.now)))
        self._before = self.cpus_by_job()
        self.update_completions(self.runs)

    def cpus_by_job(self) -> dict[int, int]:
        """CPUs of each run, by job number."""
        return {run.job.number: run.cpus for run in self.runs}

    @property
    def has_started(self) -> bool:
        """Whether a queued job was placed in this pass."""
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
        """The changes as moves; CPUs are released before others take them."""
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
        """(runs,) unit utilities if the runs complete in `remaining_s` (runs,) seconds."""
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
        """Seconds since its submission; if that is unknown, since its start."""
        return self._view.now - (job.start_s if job.submit_s is None else job.submit_s)
