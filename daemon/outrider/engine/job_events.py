"""Handlers of job events: they update the site, the accounting and every runner."""

from collections.abc import Callable, Sequence

import msgspec

from outrider.api.estimator import RunTimeEstimate, RunTimeEstimator
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.ports import DecisionLog
from outrider.engine.scheduling.policy_runner import PolicyRunner
from outrider.engine.state.site import Site
from outrider.model.decisions import COMPLETED_RUN, EVICTED_RUN, REMOVED_RUN
from outrider.model.events import CPUS_GIVEN_BACK
from outrider.model.jobs import HELD_STATE, QUEUED, RUNNING, SUSPENDED_STATE, Job, JobSpec


class JobEvents:
    """Handlers of job events, named like the event kinds; each takes (time_s, job, extra).

    Args:
        site: the site of the jobs.
        accounting: totals by the definitions.
        runners: the runners that receive the events.
        decision_log: stores what runners learned from the end of a run.
        wanted: called when a job has become decidable.
        opened: called when a machine may have become free.
        estimator: predicts how long a job will run; None: the user's own estimate is used.

    Attributes:
        listening: the runners that receive events; none while history is replayed silently.
        silent: history is being replayed: nothing is recorded.
        logs_all_ends: ends that no policy learns from go to the decision log, too: those of
            completed runs and of jobs that leave the queue.
    """

    def __init__(
        self,
        site: Site,
        accounting: Accounting,
        runners: Sequence[PolicyRunner],
        decision_log: DecisionLog,
        wanted: Callable[[], None],
        opened: Callable[[], None],
        estimator: RunTimeEstimator | None = None,
    ) -> None:
        self.listening = runners
        self.silent = False
        self.logs_all_ends = False
        self._site = site
        self._accounting = accounting
        self._decision_log = decision_log
        self._wanted = wanted
        self._opened = opened
        self._estimator = estimator

    def submitted(self, time_s: float, subject: int, extra: JobSpec) -> None:
        """Handle a job that enters the queue."""
        submit_s = time_s if extra.seen_submit else None
        if self._estimator is not None:
            extra = _estimated(extra, self._estimator.estimate(extra, time_s))
        job = self._site.jobs[subject] = Job(subject, extra, submit_s)
        self._accounting.job_submitted(job, time_s)
        for runner in self.listening:
            runner.enqueue(subject)
        self._wanted()

    def started(self, time_s: float, subject: int, extra: tuple[int, int]) -> None:
        """Handle a run that begins."""
        site = self._site
        job = site.jobs[subject]
        machine, cpus = job.machine, job.cpus = extra
        job.state, job.start_s = RUNNING, time_s
        job.pause_s = job.cpu_s = job.counted_s = 0.0
        job.runs += 1
        if job.first_start_s is None:
            job.first_start_s = time_s
        for runner in self.listening:
            runner.started(job, site)
        site.take(machine, cpus)
        if not job.is_plain and job.spec.resources is not None:
            site.resources.begin(subject, machine, job.spec.resources)
        if site.runs is not None:
            site.runs.add(job, site.speed_of(machine), time_s)
        self._accounting.run_started(job, machine, time_s, site.now)

    def _end_run(self, job: Job, time_s: float, ending: str, reason: str) -> None:
        """End a run in any way: accounting, machine, outcome to every runner."""
        site, accounting, machine = self._site, self._accounting, job.machine
        run_s = job.run_s(time_s)
        cluster = site.machine_cluster[machine]
        if ending is COMPLETED_RUN:
            accounting.run_completed(job, run_s, cluster, time_s)
        else:
            accounting.run_wasted(job, run_s, cluster, reason)
            job.lost_s += run_s
            if run_s > job.consumed_s:
                job.consumed_s = run_s
        accounting.run_closed(job, time_s, site.now)
        if job.state == SUSPENDED_STATE and job.gave_back:
            for runner in self.listening:
                runner.dequeue(job.number, site)
        else:
            site.give_back(machine, job.cpus)
        if site.resources.runs:
            site.resources.end(job.number)
        if site.runs is not None:
            site.runs.drop(job)
        recorded = self.silent or (ending is COMPLETED_RUN and not self.logs_all_ends)
        for runner in self.listening:
            runner.judge(job, ending, reason, run_s, site.now)
            if runner.learns:
                recorded = True
                reward, on_policy = runner.ended(job, ending, reason, run_s, site)
                self._decision_log.ended(runner.name, job, ending, reason, run_s, reward, on_policy)
        if not recorded:
            self._decision_log.ended("", job, ending, reason, run_s, None, False)
        self._opened()

    def completed(self, time_s: float, subject: int, extra: None) -> None:
        """Handle a job that completed."""
        job = self._site.jobs.pop(subject)
        self._end_run(job, time_s, COMPLETED_RUN, "")
        if self._estimator is not None:
            self._estimator.learn(job, job.work_s(time_s), time_s)

    def evicted(self, time_s: float, subject: int, extra: str) -> None:
        """Handle an eviction: the run is wasted, and the job is queued again."""
        job = self._site.jobs[subject]
        self._end_run(job, time_s, EVICTED_RUN, extra)
        job.state, job.machine = QUEUED, -1
        for runner in self.listening:
            runner.enqueue(subject)
        self._wanted()

    def removed(self, time_s: float, subject: int, extra: str) -> None:
        """Handle a job that is gone without completing."""
        job = self._site.jobs.pop(subject)
        self._accounting.job_removed(job)
        if job.state in (RUNNING, SUSPENDED_STATE):
            self._end_run(job, time_s, REMOVED_RUN, extra)
            return
        recorded = self.silent or not self.logs_all_ends
        for runner in self.listening:
            reward = runner.removed(job, extra, self._site)
            if runner.learns:
                recorded = True
                self._decision_log.ended(runner.name, job, REMOVED_RUN, extra, 0.0, reward, True)
        if not recorded:
            self._decision_log.ended("", job, REMOVED_RUN, extra, 0.0, None, False)

    def suspended(self, time_s: float, subject: int, extra: str | None) -> None:
        """Pause the run; if it gave its CPUs back, the job waits for some to be resumed on."""
        site = self._site
        job = site.jobs[subject]
        self._accounting.run_paused(job, site.now)
        job.state, job.suspended_at_s = SUSPENDED_STATE, time_s
        job.gave_back = extra == CPUS_GIVEN_BACK
        if job.gave_back:
            site.give_back(job.machine, job.cpus)
            site.resources.end(subject)
            if site.runs is not None:
                site.runs.drop(job)
            for runner in self.listening:
                if runner.plans:
                    runner.enqueue(subject)
            self._opened()

    def resumed(self, time_s: float, subject: int, extra: tuple[int, int] | None) -> None:
        """Resume the run, where it was or on other CPUs."""
        site = self._site
        job = site.jobs[subject]
        if extra is not None:
            for runner in self.listening:
                runner.dequeue(subject, site)
            job.count_cpus(time_s)
            job.machine, job.cpus = extra
            site.take(*extra)
            if job.spec.resources is not None:
                site.resources.begin(subject, job.machine, job.spec.resources)
        job.pause_s += max(0.0, time_s - job.suspended_at_s)
        job.state = RUNNING
        if extra is not None and site.runs is not None:
            site.runs.add(job, site.speed_of(job.machine), time_s)
        self._accounting.run_resumed(job, site.now)

    def resized(self, time_s: float, subject: int, extra: int) -> None:
        """Change the number of CPUs of the run from now on."""
        site = self._site
        job = site.jobs[subject]
        if job.state == RUNNING:
            self._accounting.run_paused(job, site.now)
        job.count_cpus(time_s)
        site.give_back(job.machine, job.cpus)
        job.cpus = extra
        site.take(job.machine, extra)
        if site.runs is not None:
            site.runs.drop(job)
            site.runs.add(job, site.speed_of(job.machine), time_s)
        if job.state == RUNNING:
            self._accounting.run_resumed(job, site.now)
        self._opened()

    def disconnected(self, time_s: float, subject: int, extra: None) -> None:
        """Do nothing: a run counts as running until its fate is known."""

    def reconnected(self, time_s: float, subject: int, extra: None) -> None:
        """Do nothing: the run has continued all the time."""

    def held(self, time_s: float, subject: int, extra: str | None) -> None:
        """Handle a hold: the job waits, but may not start."""
        job = self._site.jobs[subject]
        job.state, job.held_because = HELD_STATE, extra or ""
        for runner in self.listening:
            runner.dequeue(subject, self._site)

    def released(self, time_s: float, subject: int, extra: None) -> None:
        """Handle a release: the job may start again."""
        job = self._site.jobs[subject]
        job.state, job.held_because = QUEUED, ""
        for runner in self.listening:
            runner.enqueue(subject)
        self._wanted()

    def changed(self, time_s: float, subject: int, extra: JobSpec) -> None:
        """Handle a new declaration of the job."""
        job = self._site.jobs[subject]
        self._accounting.job_changed(job, extra, self._site.now)
        if self._estimator is not None:
            extra = _estimated(extra, self._estimator.estimate(extra, time_s))
        job.declare(extra)
        for runner in self.listening:
            runner.changed(job, self._site)


def _estimated(spec: JobSpec, estimate: RunTimeEstimate | None) -> JobSpec:
    """Return the job's declaration with the estimator's run time, if there is one."""
    if estimate is None:
        return spec
    return msgspec.structs.replace(spec, estimate_s=estimate.median_s)
