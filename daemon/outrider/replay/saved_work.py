"""Accounting where runs may save their work and machines are woken: who pays, and when.

The engine hears of runs and evictions; what a run saved and whether it woke its machine only
the virtual site knows. So this is for replays. A daemon beside such a campus counts every run
that did not complete as thrown away, as it would beside a batch system that does not say.
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
    """Work of one run that a checkpoint holds: where it ran, and its joules."""

    cluster: int
    joules: float


class SavedWorkAccounting(Accounting):
    """Totals by the definitions, with badput as work thrown away only.

    A run that is evicted loses what it did since its last checkpoint: that is badput. What it
    saved is open until its job is gone: then it is goodput if the job completed, else badput.
    Waking a machine is paid by the run it was woken for.

    Args:
        local_time, targets, exact: as of `Accounting`.
        virtual: what really happens.
    """

    def __init__(
        self,
        local_time: LocalTime,
        targets: Mapping[str, float],
        exact: bool,
        virtual: DetailedSite,
    ) -> None:
        super().__init__(local_time, targets, exact)
        self._virtual = virtual
        self._saved: dict[int, list[Saved]] = {}
        self._saved_s: dict[int, float] = {}
        self._wakes_j: dict[int, float] = {}

    def add_open(self, energy_wh: dict[str, float | None]) -> None:
        """Count as open what jobs that are not gone have saved, and waking for runs still going."""
        joules = sum(part.joules for parts in self._saved.values() for part in parts)
        joules += sum(self._wakes_j.values())
        before_wh = energy_wh["open"]
        if before_wh is not None:
            energy_wh["open"] = None if isnan(joules) else before_wh + joules / J_PER_WH

    def run_started(self, job: Job, machine: int, time_s: float, now: float) -> None:
        """A run began; it pays for waking its machine."""
        super().run_started(job, machine, time_s, now)
        if self._virtual.rules.wake_j and self._virtual.woke(job.number):
            self._wakes_j[job.number] = self._virtual.rules.wake_j

    def run_completed(
        self, job: Job, run_s: float, cluster: int, time_s: float, more_cpu_s: float = 0.0
    ) -> None:
        """The job is done: what it saved was worth it. Its overhead is what was not its work."""
        work_s = self._virtual.work_s(job.number)
        saved_s = self._settle_saved(job.number, GOODPUT)
        more_cpu_s += (run_s + saved_s - work_s) * job.cpus
        super().run_completed(job, work_s, cluster, time_s, more_cpu_s)
        self._ending = (GOODPUT, cluster, run_s)

    def run_wasted(self, job: Job, run_s: float, cluster: int, reason: str) -> None:
        """The run ended too early: lost is what no checkpoint holds, or holds for nobody."""
        total_s = self._virtual.saved_s(job.number)
        saved_s = total_s - self._saved_s.get(job.number, 0.0)
        super().run_wasted(job, run_s - saved_s, cluster, reason)
        if saved_s < 0.0:  # the job was killed, and its checkpoints are gone
            self._settle_saved(job.number, BADPUT)
            saved_s = 0.0
        elif saved_s > 0.0:
            joules = self.energy.table_j(job.machine, job.cpus * saved_s)
            self._saved.setdefault(job.number, []).append(Saved(cluster, joules))
            self._saved_s[job.number] = total_s
        self._ending = (BADPUT, cluster, run_s - saved_s)

    def run_closed(self, job: Job, time_s: float, now: float) -> None:
        """After either: its energy is booked, waking included."""
        purpose, cluster, _ = self._ending
        self.energy.add(purpose, cluster, self._wakes_j.pop(job.number, 0.0))
        super().run_closed(job, time_s, now)

    def job_removed(self, job: Job) -> None:
        """A job that was killed while it waited: nobody will use what it saved."""
        super().job_removed(job)
        if job.machine < 0:
            saved_s = self._settle_saved(job.number, BADPUT)
            key = (job.spec.job_class, job.spec.vo)
            if saved_s:
                self.badput[key] = self.badput.get(key, 0.0) + saved_s * job.cpus

    def _settle_saved(self, job: int, purpose: str) -> float:
        """Book the joules of what a job had saved; returns the seconds."""
        for part in self._saved.pop(job, ()):
            self.energy.add(purpose, part.cluster, part.joules)
        return self._saved_s.pop(job, 0.0)
