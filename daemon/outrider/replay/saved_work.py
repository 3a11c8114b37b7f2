"""Accounting for runs with checkpoints and wake-ups: which work is lost, which energy is whose.

Events report starts and evictions, but only the simulation knows what a run saved and whether its
machine was woken, so this is for replays. A daemon beside such a site counts every run that did
not complete as lost, as it would beside a batch system that does not report checkpoints.
"""

from collections.abc import Mapping
from math import isnan
from typing import Final, NamedTuple

from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.energy import BADPUT, GOODPUT
from outrider.model.jobs import Job
from outrider.model.localtime import LocalTime
from outrider.simulation.detailed_site import DetailedSite

J_PER_WH: Final = 3600.0


class Saved(NamedTuple):
    """Work of one run that a checkpoint holds: the cluster where it ran, and its joules."""

    cluster: int
    joules: float


class SavedWorkAccounting(Accounting):
    """Accounting in which only work that no checkpoint holds counts as badput.

    An evicted run loses what it did since its last checkpoint: that is badput. What it saved
    counts as open until its job leaves: then as goodput if the job completed, else as badput.
    The energy of waking a machine is charged to the run it was woken for.

    Args:
        local_time, targets, exact: as for `Accounting`.
        simulated: the simulation of the replay.
    """

    def __init__(
        self,
        local_time: LocalTime,
        targets: Mapping[str, float],
        exact: bool,
        simulated: DetailedSite,
    ) -> None:
        super().__init__(local_time, targets, exact)
        self._simulated = simulated
        self._saved: dict[int, list[Saved]] = {}
        self._saved_s: dict[int, float] = {}
        self._wakes_j: dict[int, float] = {}

    def add_open(self, energy_wh: dict[str, float | None]) -> None:
        """Add saved work of jobs that have not left, and wake-ups for present runs, as open."""
        joules = sum(part.joules for parts in self._saved.values() for part in parts)
        joules += sum(self._wakes_j.values())
        before_wh = energy_wh["open"]
        if before_wh is not None:
            energy_wh["open"] = None if isnan(joules) else before_wh + joules / J_PER_WH

    def run_started(self, job: Job, machine: int, time_s: float, now: float) -> None:
        """A run started; the energy of waking its machine is charged to it."""
        super().run_started(job, machine, time_s, now)
        if self._simulated.rules.wake_j and self._simulated.woke(job.number):
            self._wakes_j[job.number] = self._simulated.rules.wake_j

    def run_completed(
        self, job: Job, run_s: float, cluster: int, time_s: float, more_cpu_s: float = 0.0
    ) -> None:
        """A job completed: its saved work is goodput; run time beyond its work is overhead."""
        work_s = self._simulated.work_s(job.number)
        saved_s = self._settle_saved(job.number, GOODPUT)
        more_cpu_s += (run_s + saved_s - work_s) * job.cpus
        super().run_completed(job, work_s, cluster, time_s, more_cpu_s)
        self._ending = (GOODPUT, cluster, run_s)

    def run_wasted(self, job: Job, run_s: float, cluster: int, reason: str) -> None:
        """A run did not complete: count the work that no checkpoint holds as lost."""
        total_s = self._simulated.saved_s(job.number)
        saved_s = total_s - self._saved_s.get(job.number, 0.0)
        super().run_wasted(job, run_s - saved_s, cluster, reason)
        if saved_s < 0.0:  # the job was killed and its checkpoints deleted
            self._settle_saved(job.number, BADPUT)
            saved_s = 0.0
        elif saved_s > 0.0:
            joules = self.energy.table_j(job.machine, job.cpus * saved_s)
            self._saved.setdefault(job.number, []).append(Saved(cluster, joules))
            self._saved_s[job.number] = total_s
        self._ending = (BADPUT, cluster, run_s - saved_s)

    def run_closed(self, job: Job, time_s: float, now: float) -> None:
        """A run ended, completed or not: count its energy, wake-up included."""
        purpose, cluster, _ = self._ending
        self.energy.add(purpose, cluster, self._wakes_j.pop(job.number, 0.0))
        super().run_closed(job, time_s, now)

    def job_removed(self, job: Job) -> None:
        """A job was removed: if it was queued, the work it had saved is lost."""
        super().job_removed(job)
        if job.machine < 0:
            saved_s = self._settle_saved(job.number, BADPUT)
            key = (job.spec.job_class, job.spec.vo)
            if saved_s:
                self.badput[key] = self.badput.get(key, 0.0) + saved_s * job.cpus

    def _settle_saved(self, job: int, purpose: str) -> float:
        """Count the joules of a job's saved work for a purpose; return its seconds."""
        for part in self._saved.pop(job, ()):
            self.energy.add(purpose, part.cluster, part.joules)
        return self._saved_s.pop(job, 0.0)
