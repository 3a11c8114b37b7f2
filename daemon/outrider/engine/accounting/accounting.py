"""Accounting: the figures of docs/reference/definitions.md, kept as events pass.

There is one accounting for everything. Replay's report, the status page and the metrics show
the same numbers for the same events because they are the same numbers.
"""

from collections.abc import Collection, Mapping
from typing import Any

from outrider.engine.accounting.distribution import Distribution
from outrider.engine.accounting.energy import BADPUT, GOODPUT, EnergyStatistics
from outrider.engine.accounting.fairness import Fairness
from outrider.engine.accounting.job_statistics import AT_ONCE, JobStatistics, merge_keys
from outrider.engine.accounting.utility_statistics import UtilityStatistics
from outrider.model.events import EVICTION_REASONS
from outrider.model.jobs import RUNNING, Job, JobSpec
from outrider.model.localtime import LocalTime
from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility


class Accounting:
    """Totals since the beginning (of the trace, or of the daemon's first start).

    Args:
        local_time: the site's wall clock, for machines that sleep by opening hours.
        targets: fair shares by VO; empty: equal.
        exact: keep every wait, so that reports have exact percentiles (replay, ingest).
        half_life_s: of windowed fairness.
        utilities: time utility functions by job class.
    """

    def __init__(
        self,
        local_time: LocalTime,
        targets: Mapping[str, float] | None = None,
        exact: bool = False,
        half_life_s: float = 86_400.0,
        utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES,
    ) -> None:
        self._utilities = utilities
        self.exact = exact
        self.fairness = Fairness(targets or {}, half_life_s)
        self.energy = EnergyStatistics(local_time)
        self.begin_s: float | None = None
        self.merged_vos_n = 0
        self._ending = ("", -1, 0.0)
        self._clear()

    def _clear(self) -> None:
        self.submitted = 0
        self.completed = 0
        self.removed = 0
        self.starts = 0
        self._jobs = JobStatistics(self.exact, self._utilities)
        self.badput: dict[tuple[str, str], float] = {}
        self.evictions: dict[tuple[str, int], int] = {}
        self.never_started: dict[tuple[str, str], int] = {}

    def restart(self, now: float | None) -> None:
        """Forget all totals from `now` on (None: nothing has happened yet).

        What is running and who sits where stays known.
        """
        self._clear()
        self.begin_s = now
        if now is not None:
            self.energy.restart(now)

    def work_out(self) -> None:
        """Bring all figures up to what is noted: until more is noted, reading changes nothing."""
        self._jobs.work_out()
        self.energy.work_out()

    def _worked_out(self) -> JobStatistics:
        self._jobs.work_out()
        return self._jobs

    @property
    def waits(self) -> dict[tuple[str, str], Distribution]:
        """Waits until the first start, by job class and VO."""
        return self._worked_out().waits

    @property
    def overhead(self) -> Distribution:
        """Seconds between submission and completion in which a job's last run did not run."""
        return self._worked_out().overhead

    @property
    def slowdown(self) -> Distribution:
        """Bounded slowdown of completed jobs."""
        return self._worked_out().slowdown

    @property
    def utility(self) -> UtilityStatistics:
        """What completed jobs were worth to their users."""
        return self._worked_out().utility

    @property
    def goodput(self) -> dict[tuple[str, str], float]:
        """CPU-seconds of runs that completed their job, by job class and VO."""
        return self._worked_out().goodput

    @property
    def goodput_s(self) -> float:
        """CPU-seconds of runs that completed their job."""
        return sum(self.goodput.values())

    @property
    def badput_s(self) -> float:
        """CPU-seconds of runs that were thrown away."""
        return sum(self.badput.values())

    def job_submitted(self, job: Job, time_s: float) -> None:
        """A job entered the queue."""
        self.submitted += 1
        self.fairness.submitted(job.spec.vo, time_s)

    def run_started(self, job: Job, machine: int, time_s: float, now: float) -> None:
        """A run began; `job.first_start_s` is set if it is the first."""
        self.starts += 1
        submit_s = job.submit_s
        if job.runs == 1 and submit_s is not None:
            spec, jobs = job.spec, self._jobs
            jobs.starts.extend((
                jobs.numbers[spec.job_class, spec.vo], submit_s,
                submit_s if spec.eligible_s is None else spec.eligible_s, time_s,
            ))  # fmt: skip
            if len(jobs.starts) >= AT_ONCE:
                jobs.work_out()
        self.energy.work(machine, job.number, job.cpus, now)
        self.fairness.change(job.spec.vo, job.cpus, time_s, now)

    def job_changed(self, job: Job, spec: JobSpec, now: float) -> None:
        """A job is declared anew; what it gets from now on is its new VO's."""
        if job.state == RUNNING and spec.vo != job.spec.vo:
            self.fairness.change(job.spec.vo, -job.cpus, now, now)
            self.fairness.change(spec.vo, job.cpus, now, now)

    def job_removed(self, job: Job) -> None:
        """A job left the queue or its machine without completing."""
        self.removed += 1
        if job.first_start_s is None:
            key = (job.spec.job_class, job.spec.vo)
            self.never_started[key] = self.never_started.get(key, 0) + 1

    def run_paused(self, job: Job, now: float) -> None:
        """A running job is suspended: neither goodput nor badput, and no energy of its own."""
        self.energy.pause(job.machine, job.number, job.cpus, now)
        self.fairness.change(job.spec.vo, -job.cpus, now, now)

    def run_resumed(self, job: Job, now: float) -> None:
        """A suspended job works again."""
        self.energy.work(job.machine, job.number, job.cpus, now)
        self.fairness.change(job.spec.vo, job.cpus, now, now)

    def run_completed(
        self, job: Job, run_s: float, cluster: int, time_s: float, more_cpu_s: float = 0.0
    ) -> None:
        """The run finished its job: goodput, and the job's overhead and slowdown.

        `more_cpu_s`: CPU-seconds of goodput besides those of this run.
        """
        self.completed += 1
        self._ending = (GOODPUT, cluster, run_s)
        spec, jobs, submit_s = job.spec, self._jobs, job.submit_s
        jobs.completions.extend((
            jobs.numbers[spec.job_class, spec.vo], submit_s,
            submit_s if spec.eligible_s is None else spec.eligible_s,
            job.start_s if job.first_start_s is None else job.first_start_s, time_s, run_s,
            job.cpu_s + (run_s - job.counted_s) * job.cpus, spec.cpus, more_cpu_s,
        ))  # fmt: skip

    def run_wasted(self, job: Job, run_s: float, cluster: int, reason: str) -> None:
        """The run was thrown away: badput."""
        _add(self.badput, job.spec, job.run_cpu_s(run_s))
        self._ending = (BADPUT, cluster, run_s)
        key = (reason, cluster)
        self.evictions[key] = self.evictions.get(key, 0) + 1

    def run_closed(self, job: Job, time_s: float, now: float) -> None:
        """After either: its energy is counted, the machine is idle and the VO's meter stops."""
        self.energy.end_run(*self._ending, job, now)
        if job.state == RUNNING:  # a suspended one has paused already
            self.fairness.change(job.spec.vo, -job.cpus, time_s, now)

    def merge_vos(self, vos: Collection[str], into: str) -> None:
        """What these VOs got is another's from now on; none of them may have a job here."""
        self._jobs.merge_vos(vos, into)
        merge_keys(self.badput, vos, into)
        merge_keys(self.never_started, vos, into)
        self.fairness.merge(vos, into)
        self.merged_vos_n += len(vos)

    def evictions_by_reason(self) -> dict[str, int]:
        """Counts over all clusters, every reason of the closed list named."""
        out = dict.fromkeys(EVICTION_REASONS, 0)
        for (reason, _), n in self.evictions.items():
            out[reason] += n
        return out

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "counts": [self.submitted, self.completed, self.removed, self.starts],
            **self._jobs.save(),
            "badput": [[*key, cpu_s] for key, cpu_s in self.badput.items()],
            "evictions": [[*key, n] for key, n in self.evictions.items()],
            "never_started": [[*key, n] for key, n in self.never_started.items()],
            "begin_s": self.begin_s,
            "fairness": self.fairness.save(),
            "energy": self.energy.save(),
        }

    def restore(self, saved: dict[str, Any], clusters: list[int]) -> None:
        """Go on from what `save` gave; `clusters[i]` is today's number of saved cluster i."""
        self.submitted, self.completed, self.removed, self.starts = saved["counts"]
        self._jobs.restore(saved)
        self.badput = {(c, vo): cpu_s for c, vo, cpu_s in saved["badput"]}
        self.evictions = {(reason, clusters[c]): n for reason, c, n in saved["evictions"]}
        self.never_started = {(c, vo): n for c, vo, n in saved["never_started"]}
        self.begin_s = saved["begin_s"]
        self.fairness.restore(saved["fairness"])
        self.energy.restore(saved["energy"], clusters)


def _add(work: dict[tuple[str, str], float], spec: JobSpec, cpu_s: float) -> None:
    """CPU-seconds of one run, under its job's class and VO."""
    key = (spec.job_class, spec.vo)
    work[key] = work.get(key, 0.0) + cpu_s
