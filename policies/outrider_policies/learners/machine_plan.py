"""What one machine will run after this round, and the moves that bring it there."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from outrider.api import (
    PREEMPT,
    RESUME,
    SQUEEZE,
    START,
    SUSPENDED_STATE,
    Job,
    Move,
    SiteView,
    TimeUtility,
)
from outrider_policies.learners.run_lengths import RunLengths
from outrider_policies.learners.waiting_jobs import LEAST_LEFT, WaitingJobs

Floats = NDArray[np.float64]


class Run:
    """A job on a machine, as it runs or as a plan has it.

    Attributes:
        job: the job.
        asked: CPUs it asks for.
        cpus: CPUs it has.
        left_s: work left, seconds on all the CPUs it asks for at speed 1.
        remaining_s: seconds until it completes on the CPUs it has.
        unit: its unit utility then.
        reason: why it has these CPUs; empty for a run that was left alone.
        scores: of the alternatives, where a value function decided.
    """

    __slots__ = ("asked", "cpus", "job", "left_s", "reason", "remaining_s", "scores", "unit")

    def __init__(
        self, job: Job, cpus: int, left_s: float, remaining_s: float, unit: float, reason: str = ""
    ) -> None:
        self.job = job
        self.asked = job.spec.cpus
        self.cpus = cpus
        self.left_s = left_s
        self.remaining_s = remaining_s
        self.unit = unit
        self.reason = reason
        self.scores: dict[str, float] | None = None

    @property
    def worth(self) -> float:
        """Remaining utility (section 4.1, step 4): unit utility a second until completion."""
        return self.unit / self.remaining_s


class MachinePlan:
    """The runs of a machine, to be rearranged; nothing happens until its `moves` are made.

    Attributes:
        machine: its number.
        cpus: CPUs it has.
        free: CPUs on which nothing runs.
        speed: work a CPU does in a second.
        runs: its runs.
    """

    def __init__(self, machine: int, view: SiteView, lengths: RunLengths) -> None:
        self.machine = machine
        self.cpus = view.cpus_of(machine)
        self.free = view.cpus_left(machine)
        self.speed = view.speed_of(machine)
        self._now = view.now
        self._lengths = lengths
        self.runs: list[Run] = []
        jobs = list(view.running_on(machine))
        self._before = {job.number: (job, job.cpus) for job in jobs}
        self._utilities: dict[int, TimeUtility] = {job.number: view.utility(job) for job in jobs}
        for job in jobs:
            ideal_s = lengths.ideal_s(job)
            left_s = max(ideal_s - job.work_s(view.now), LEAST_LEFT * ideal_s)
            self.runs.append(Run(job, job.cpus, left_s, 0.0, 0.0))
        self._reckon(self.runs)
        self._suspended: dict[int, str] = {}

    def grow(self) -> None:
        """Give free CPUs to runs that have fewer than they ask for, in the order of their starts."""
        grown = []
        for run in self.runs:
            more = min(self.free, run.asked - run.cpus)
            if more > 0:
                run.cpus += more
                run.reason = "grow"
                self.free -= more
                grown.append(run)
        self._reckon(grown)

    def place(
        self, waiting: WaitingJobs, row: int, cpus: int, unit: float, reason: str
    ) -> Run:
        """A waiting job runs here, on `cpus` free ones; it is open no more.

        Args:
            waiting: the queue.
            row: the job's.
            cpus: at most those that are free.
            unit: its unit utility when it completes on these.
            reason: why.
        """
        job = waiting.jobs[row]
        left_s = float(waiting.left_s[row])
        run = Run(job, cpus, left_s, left_s * job.spec.cpus / (cpus * self.speed), unit, reason)
        waiting.is_open[row] = False
        self.runs.append(run)
        self.free -= cpus
        return run

    def suspend(self, run: Run, reason: str) -> None:
        """A run gives its CPUs back."""
        self.runs.remove(run)
        self.free += run.cpus
        self._suspended[run.job.number] = reason

    def moves(self) -> Iterator[Move]:
        """What changes, in an order that is possible: CPUs are given back before they are taken."""
        after = {run.job.number: run for run in self.runs}
        for number, (job, _) in self._before.items():
            if number not in after:
                yield Move(PREEMPT, number, self.machine, 0, self._suspended[number])
        changed = [run for run in self.runs if run.cpus != self._cpus_before(run)]
        for run in sorted(changed, key=lambda run: run.cpus - self._cpus_before(run)):
            yield Move(
                self._action(run), run.job.number, self.machine, run.cpus, run.reason, None,
                run.scores,
            )  # fmt: skip

    def _cpus_before(self, run: Run) -> int:
        known = self._before.get(run.job.number)
        return known[1] if known else 0

    def _action(self, run: Run) -> str:
        if run.job.number in self._before:
            return SQUEEZE
        if run.job.state == SUSPENDED_STATE:
            return RESUME
        return START if run.cpus == run.asked else SQUEEZE

    def _reckon(self, runs: Sequence[Run]) -> None:
        """When runs complete, and what they are worth then."""
        if not runs:
            return
        ideal_s = np.array([self._lengths.ideal_s(run.job) for run in runs])
        remaining_s = np.array([run.left_s * run.asked / run.cpus for run in runs]) / self.speed
        turnaround_s = np.array([self._waited_s(run.job) for run in runs]) + remaining_s
        units = self._units(runs, turnaround_s, ideal_s)
        for run, seconds, unit in zip(runs, remaining_s.tolist(), units.tolist(), strict=True):
            run.remaining_s = seconds
            run.unit = unit

    def _waited_s(self, job: Job) -> float:
        """Since its submission; where nobody saw that, since its start."""
        return self._now - (job.start_s if job.submit_s is None else job.submit_s)

    def _units(self, runs: Sequence[Run], turnaround_s: Floats, ideal_s: Floats) -> Floats:
        utilities = [self._utilities[run.job.number] for run in runs]
        first = utilities[0]
        if all(utility is first for utility in utilities):
            return first.unit(turnaround_s, ideal_s)
        pairs = zip(utilities, turnaround_s.tolist(), ideal_s.tolist(), strict=True)
        return np.array([float(utility.unit(t, ideal)) for utility, t, ideal in pairs])
