"""The daemon's accounting, which also keeps a row of each run that ends, for the journal."""

from collections.abc import Callable
from typing import Any

from outrider.acting.trial_tally import TrialTally
from outrider.engine import EventMerger
from outrider.engine.accounting.accounting import Accounting
from outrider.journal.records import RunRecord
from outrider.model.jobs import Job
from outrider.service.core.failed_starts import FailedStarts


class JournalledAccounting(Accounting):
    """Counts as `Accounting` does; `take_runs` gives the runs to the journal.

    Args:
        merger: knows the names of jobs and machines.
        keeps: whether a run that ends now is to be kept: it is news, and not history.
        given, named: as for `Accounting`.

    Attributes:
        tally: of the days of a canary trial; None: there is none.
        failed_starts: of the last day, by machine.
    """

    def __init__(
        self, merger: EventMerger, keeps: Callable[[], bool], *given: Any, **named: Any
    ) -> None:
        super().__init__(*given, **named)
        self._merger = merger
        self._keeps = keeps
        self.tally: TrialTally | None = None
        self.failed_starts = FailedStarts()
        self._runs: list[RunRecord] = []

    def run_completed(
        self, job: Job, run_s: float, cluster: int, time_s: float, more_cpu_s: float = 0.0
    ) -> None:
        """As `Accounting.run_completed`."""
        super().run_completed(job, run_s, cluster, time_s, more_cpu_s)
        self._keep(job, run_s, "")
        self.failed_starts.note(job, time_s, "")
        if self.tally is not None:
            joules = self.energy.run_j(job, run_s, self._merger.now)
            cpu_s = job.run_cpu_s(run_s) + more_cpu_s
            self.tally.run_ended(job, cpu_s, joules, time_s, completes=True)
            if job.submit_s is not None:
                self.tally.job_completed(job.submit_s, time_s - job.submit_s - run_s)

    def run_wasted(self, job: Job, run_s: float, cluster: int, reason: str) -> None:
        """As `Accounting.run_wasted`."""
        super().run_wasted(job, run_s, cluster, reason)
        self._keep(job, run_s, reason)
        self.failed_starts.note(job, self._merger.now, reason)
        if self.tally is not None:
            now = self._merger.now
            joules = self.energy.run_j(job, run_s, now)
            self.tally.run_ended(job, job.run_cpu_s(run_s), joules, now, completes=False)

    def job_removed(self, job: Job) -> None:
        """As `Accounting.job_removed`."""
        super().job_removed(job)
        if self.tally is not None:
            self.tally.job_removed(job)

    def take_runs(self) -> list[RunRecord]:
        """The runs that ended since this was last called."""
        taken, self._runs = self._runs, []
        return taken

    def _keep(self, job: Job, run_s: float, reason: str) -> None:
        if not self._keeps():
            return
        names = self._merger.normaliser
        self._runs.append(
            RunRecord(
                job=names.job_names[job.number],
                vo=job.spec.vo,
                job_class=job.spec.job_class,
                machine=names.machine_names[job.machine],
                cpus=job.cpus,
                submit_s=job.submit_s,
                start_s=job.start_s,
                end_s=self._merger.now,
                run_s=run_s,
                reason=reason,
            )
        )
