"""What one machine will run after this round, and the moves that bring it there."""

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
from outrider_policies.planning.queued_jobs import WaitingJobs, work_left_s
from outrider_policies.planning.run_lengths import RunLengths

Floats = NDArray[np.float64]

GROW: Final = "grow"
PREEMPTED: Final = "preempted"


class Run:
    """A job on a machine, as it runs or as a plan has it.

    Attributes:
        job: the job.
        asked: CPUs it asks for.
        cpus: CPUs it has.
        ideal_s: its whole work, seconds on all the CPUs it asks for at speed 1.
        left_s: work left, in the same unit.
        remaining_s: seconds until it completes on the CPUs it has.
        unit: its unit utility then.
        row: its row in the queue, if it waited until this round; else None.
        reason: why it has these CPUs; empty for a run that was left alone.
        scores: of the alternatives, where a value function decided.
    """

    __slots__ = (
        "asked", "cpus", "ideal_s", "job", "left_s", "reason", "remaining_s", "row", "scores",
        "unit",
    )  # fmt: skip

    def __init__(self, job: Job, cpus: int, ideal_s: float, left_s: float) -> None:
        self.job = job
        self.asked = job.spec.cpus
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
        """Unit utility at completion a second until then (Vengerov 2005, 4.1, step 4)."""
        return self.unit / self.remaining_s


class MachinePlan:
    """The runs of a machine, to be rearranged; nothing happens until its `moves` are made.

    Attributes:
        machine: its number.
        cpus: CPUs it has.
        free: CPUs on which nothing runs.
        speed: work a CPU does in a second.
        left: resources besides CPUs that nothing uses, by name, of those it declares. What a
            suspended run gives back counts in the next round only.
        runs: its runs, those that began in this round last.
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
        self.expect(self.runs)

    def cpus_by_job(self) -> dict[int, int]:
        """CPUs of each run, by job number."""
        return {run.job.number: run.cpus for run in self.runs}

    @property
    def has_started(self) -> bool:
        """Whether a waiting job was given a place in this round."""
        return any(run.row is not None for run in self.runs)

    def grow(self) -> None:
        """Give free CPUs to runs that have fewer than they ask for, the oldest first."""
        grown = []
        for run in self.runs:
            more = min(self.free, run.asked - run.cpus)
            if more > 0:
                self.give(run, run.cpus + more, GROW)
                grown.append(run)
        self.expect(grown)

    def give(self, run: Run, cpus: int, reason: str) -> None:
        """A run has so many CPUs from now on; its `remaining_s` and `unit` stay as they were."""
        self.free -= cpus - run.cpus
        run.cpus, run.reason = cpus, reason

    def place(self, waiting: WaitingJobs, row: int, cpus: int, unit: float, reason: str) -> Run:
        """A waiting job runs here from now on.

        Args:
            waiting: the queue, in which it is open no more.
            row: the job's.
            cpus: how many; no more than are free.
            unit: its unit utility when it completes on these.
            reason: why.
        """
        ideal_s, left_s = float(waiting.ideal_s[row]), float(waiting.left_s[row])
        run = Run(waiting.jobs[row], cpus, ideal_s, left_s)
        run.remaining_s = run.left_s * run.asked / (cpus * self.speed)
        run.unit, run.row, run.reason = unit, row, reason
        waiting.is_open[row] = False
        self.runs.append(run)
        self.free -= cpus
        self._use(run.job, -1.0)
        return run

    def _use(self, job: Job, sign: float) -> None:
        """A job that begins in this round uses resources, or after all does not."""
        if job.spec.resources is not None:
            for name, amount in job.spec.resources.amounts():
                if name in self.left:
                    self.left[name] += sign * amount

    def suspend(self, runs: Sequence[Run], waiting: WaitingJobs) -> None:
        """Runs give their CPUs back and wait again; what began in this round does not begin."""
        for run in runs:
            self.runs.remove(run)
            self.free += run.cpus
            if run.row is not None:
                waiting.is_open[run.row] = True
                self._use(run.job, 1.0)
        ran = [run for run in runs if run.row is None]
        if ran:
            waiting.add([run.job for run in ran], self.machine, [run.ideal_s for run in ran])

    def moves(self) -> Iterator[Move]:
        """What changes, CPUs given back before they are taken."""
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
        return START if run.cpus == run.asked else SHRINK

    def units(self, runs: Sequence[Run], remaining_s: Floats) -> Floats:
        """Unit utilities of runs, if they complete in so many seconds."""
        utilities = [self._view.utility(run.job) for run in runs]
        turnaround_s = remaining_s + [self._age_s(run.job) for run in runs]
        ideal_s = np.array([run.ideal_s for run in runs])
        first = utilities[0]
        if all(utility is first for utility in utilities):  # one call for all costs a fifth
            return first.unit(turnaround_s, ideal_s)
        each = zip(utilities, turnaround_s, ideal_s, strict=True)
        return np.array([float(utility.unit(spent, ideal)) for utility, spent, ideal in each])

    def expect(self, runs: Sequence[Run]) -> None:
        """Set when runs complete on the CPUs they have, and what they are worth then."""
        if not runs:
            return
        remaining_s = np.array([run.left_s * run.asked / run.cpus for run in runs]) / self.speed
        units = self.units(runs, remaining_s)
        for run, seconds, unit in zip(runs, remaining_s.tolist(), units.tolist(), strict=True):
            run.remaining_s, run.unit = seconds, unit

    def _age_s(self, job: Job) -> float:
        """Seconds since its submission; where nobody saw that, since its start."""
        return self._view.now - (job.start_s if job.submit_s is None else job.submit_s)
