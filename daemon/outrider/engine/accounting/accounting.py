"""Accounting: the figures of docs/reference/definitions.md, kept as events pass.

There is one accounting for everything. Replay's report, the status page and the metrics show
the same numbers for the same events because they are the same numbers.
"""

from collections.abc import Collection, Iterator, Mapping, MutableMapping
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from outrider.engine.accounting.distribution import Distribution
from outrider.engine.accounting.energy import BADPUT, GOODPUT, EnergyStatistics
from outrider.engine.accounting.fairness import Fairness
from outrider.model.events import EVICTION_REASONS
from outrider.model.jobs import RUNNING, Job, JobSpec
from outrider.model.localtime import LocalTime
from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility, utility_of

# -- utility statistics ----------------------------------------------------------------------------
# Utility of completed jobs to their users, summed up as jobs complete.

_BATCH: Final = 1024


class UtilityStatistics:
    """Sum of unit utility x CPUs requested x ideal run time (Vengerov 2005, section 2).

    So a job is worth as much as its CPU-seconds would be in small jobs. The ideal run time is the
    run time on all the CPUs that the job requested. Rows are evaluated a fixed number at a time, so
    that the sum does not depend on how many come together.

    Args:
        utilities: time utility functions by job class.
    """

    def __init__(self, utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES) -> None:
        self._utilities = utilities
        self._summed = 0.0
        self._rows: dict[str, NDArray[np.float64]] = {}

    def completed(
        self, job_class: str, turnaround_s: NDArray[np.float64], ideal_s: NDArray[np.float64],
        cpu_s: NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Add completed jobs of a class; `cpu_s`: CPU-seconds of their runs."""
        rows = np.column_stack((turnaround_s, ideal_s, cpu_s))
        if job_class in self._rows:
            rows = np.concatenate((self._rows[job_class], rows))
        whole = len(rows) // _BATCH * _BATCH
        for first in range(0, whole, _BATCH):
            self._summed += self._utility_of(job_class, rows[first : first + _BATCH])
        self._rows[job_class] = rows[whole:]

    def _utility_of(self, job_class: str, rows: NDArray[np.float64]) -> float:
        turnaround_s, ideal_s, cpu_s = np.ascontiguousarray(rows.T)
        unit = utility_of(self._utilities, job_class).unit(turnaround_s, ideal_s)
        return float((unit * cpu_s).sum())

    @property
    def total(self) -> float:
        """Sum until now, in CPU-seconds of unit utility."""
        return self._summed + sum(self._utility_of(name, rows) for name, rows in self._rows.items())

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        rows = {name: rows.tolist() for name, rows in self._rows.items()}
        return {"summed": self._summed, "rows": rows}

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned."""
        self._summed = saved["summed"]
        self._rows = {
            name: np.array(rows, dtype=float).reshape(-1, 3) for name, rows in saved["rows"].items()
        }


# -- job statistics --------------------------------------------------------------------------------
# Statistics of jobs: waits, goodput, overhead, slowdown and utility, computed in batches.

Floats: TypeAlias = NDArray[np.float64]
Key: TypeAlias = tuple[str, str]
"""Key of statistics: job class and VO."""
N = TypeVar("N", int, float)

START: Final = ("whose", "submit_s", "eligible_s", "start_s")
"""Columns that are recorded of a first start."""
COMPLETION: Final = (
    "whose", "submit_s", "eligible_s", "start_s", "end_s", "run_s", "cpu_s", "cpus", "more_cpu_s",
)  # fmt: skip
"""Columns that are recorded of a completion.

The first start, seconds and CPU-seconds of the last run, the CPUs requested, and the goodput beyond
that run's. `submit_s` is None if it was not seen."""

BATCH: Final = 4096 * len(START)
"""Batch size, in numbers of first starts, at which the figures are computed."""
_SHORTEST_RUN_S: Final = 10.0


class Numbers(dict[Key, int]):
    """Numbering of pairs of job class and VO; a new pair gets the next number."""

    def __missing__(self, key: Key) -> int:
        """Add a new pair and return its number."""
        self[key] = number = len(self)
        return number


class JobStatistics:
    """Figures of jobs that started and of jobs that completed (docs/reference/definitions.md).

    Accounting extends `starts` and `completions` by flat numbers; `work_out` updates the figures
    from them. The figures do not depend on when it is called.

    Args:
        exact: keep every value, so that reports have exact percentiles.
        utilities: time utility functions by job class.

    Attributes:
        numbers: of the job classes and VOs of the recorded jobs.
        starts, completions: rows not computed yet, with the columns `START` and `COMPLETION`.
        waits: until the first start, by job class and VO.
        overhead, slowdown: of completed jobs whose submission was seen.
        utility: of the same jobs, to their users.
        goodput: CPU-seconds of runs that completed their job, by job class and VO.
    """

    def __init__(self, exact: bool, utilities: Mapping[str, TimeUtility]) -> None:
        self.numbers = Numbers()
        self.starts: list[float] = []
        self.completions: list[float | None] = []
        self._exact = exact
        self.waits: dict[Key, Distribution] = {}
        self.overhead = Distribution(exact)
        self.slowdown = Distribution(exact)
        self.utility = UtilityStatistics(utilities)
        self.goodput: dict[Key, float] = {}

    def work_out(self) -> None:
        """Update the figures with everything recorded."""
        if self.starts:
            self._count_waits(*np.array(self.starts).reshape(-1, len(START)).T)
            self.starts.clear()
        if self.completions:
            rows = np.array(self.completions, dtype=float).reshape(-1, len(COMPLETION))
            self._count_goodput(rows[:, 0], rows[:, 6] + rows[:, 8])
            self._count_completed(*np.compress(~np.isnan(rows[:, 1]), rows, axis=0).T[:-1])
            self.completions.clear()

    def _by_key(self, whose: Floats) -> Iterator[tuple[Key, NDArray[np.intp]]]:
        """Yield each job class and VO, in order of first row, with the indices of its rows."""
        keys, its = list(self.numbers), np.argsort(whose, kind="stable")
        ends = np.flatnonzero(np.diff(whose[its], append=np.nan)) + 1
        begins = np.append(0, ends[:-1])
        for n in np.argsort(its[begins]).tolist() if len(whose) else ():
            rows = its[begins[n] : ends[n]]
            yield keys[int(whose[rows[0]])], rows

    def _count_waits(
        self, whose: Floats, submit_s: Floats, eligible_s: Floats, start_s: Floats
    ) -> None:
        wait_s = _waited_s(submit_s, eligible_s, start_s)
        for key, its in self._by_key(whose):
            if key not in self.waits:
                self.waits[key] = Distribution(self._exact)
            self.waits[key].extend(wait_s[its])

    def _count_goodput(self, whose: Floats, cpu_s: Floats) -> None:
        for key, its in self._by_key(whose):
            sums = np.add.accumulate(np.append(self.goodput.get(key, 0.0), cpu_s[its]))
            self.goodput[key] = float(sums[-1])

    def _count_completed(
        self, whose: Floats, submit_s: Floats, eligible_s: Floats, start_s: Floats,
        end_s: Floats, run_s: Floats, cpu_s: Floats, cpus: Floats,
    ) -> None:  # fmt: skip
        turnaround_s = end_s - submit_s
        slowed_s = _waited_s(submit_s, eligible_s, start_s) + run_s
        self.overhead.extend(np.maximum(0.0, turnaround_s - run_s))
        self.slowdown.extend(np.maximum(1.0, slowed_s / np.maximum(run_s, _SHORTEST_RUN_S)))
        firsts: dict[str, int] = {}
        first_of_class = [firsts.setdefault(key[0], k) for k, key in enumerate(self.numbers)]
        for (job_class, _), its in self._by_key(np.array(first_of_class)[whose.astype(np.intp)]):
            self.utility.completed(job_class, turnaround_s[its], (cpu_s / cpus)[its], cpu_s[its])

    def merge_vos(self, vos: Collection[str], into: str) -> None:
        """Merge the figures of these VOs' jobs into those of another VO."""
        self.work_out()
        self.numbers.clear()
        for key in [key for key in self.waits if key[1] in vos]:
            self.waits.setdefault((key[0], into), Distribution(self._exact)).merge(
                self.waits.pop(key)
            )
        merge_keys(self.goodput, vos, into)

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        self.work_out()
        return {
            "waits": [[*key, waits.save()] for key, waits in self.waits.items()],
            "overhead": self.overhead.save(),
            "slowdown": self.slowdown.save(),
            "utility": self.utility.save(),
            "goodput": [[*key, cpu_s] for key, cpu_s in self.goodput.items()],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned."""
        self.waits = {(c, vo): Distribution.restore(w) for c, vo, w in saved["waits"]}
        self.overhead = Distribution.restore(saved["overhead"])
        self.slowdown = Distribution.restore(saved["slowdown"])
        if "utility" in saved:  # not in a snapshot from before it was counted
            self.utility.restore(saved["utility"])
        self.goodput = {(c, vo): cpu_s for c, vo, cpu_s in saved["goodput"]}


def merge_keys(sums: MutableMapping[Key, N], vos: Collection[str], into: str) -> None:
    """Add the sums of these VOs to another's, each in its class."""
    for key in [key for key in sums if key[1] in vos]:
        more, into_key = sums.pop(key), (key[0], into)
        sums[into_key] = sums[into_key] + more if into_key in sums else more


def _waited_s(submit_s: Floats, eligible_s: Floats, start_s: Floats) -> Floats:
    """Return the seconds waited, as `Job.wait_s` does."""
    waited_s: Floats = np.maximum(0.0, start_s - np.maximum(eligible_s, submit_s))
    return waited_s


# -- accounting ------------------------------------------------------------------------------------


class Accounting:
    """Totals since the beginning of the trace, or since the daemon's first start.

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

        What is running and which machines have an owner stays known.
        """
        self._clear()
        self.begin_s = now
        if now is not None:
            self.energy.restart(now)

    def work_out(self) -> None:
        """Update all figures with everything recorded; reading then changes nothing."""
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
        """Seconds between submission and completion outside a job's last run."""
        return self._worked_out().overhead

    @property
    def slowdown(self) -> Distribution:
        """Bounded slowdown of completed jobs."""
        return self._worked_out().slowdown

    @property
    def utility(self) -> UtilityStatistics:
        """Utility of completed jobs to their users."""
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
        """CPU-seconds of runs that were wasted."""
        return sum(self.badput.values())

    def job_submitted(self, job: Job, time_s: float) -> None:
        """Count a job that entered the queue."""
        self.submitted += 1
        self.fairness.submitted(job.spec.vo, time_s)

    def run_started(self, job: Job, machine: int, time_s: float, now: float) -> None:
        """Count a run that began; `job.first_start_s` is set if it is the first."""
        self.starts += 1
        submit_s = job.submit_s
        if job.runs == 1 and submit_s is not None:
            spec, jobs = job.spec, self._jobs
            jobs.starts.extend((
                jobs.numbers[spec.job_class, spec.vo], submit_s,
                submit_s if spec.eligible_s is None else spec.eligible_s, time_s,
            ))  # fmt: skip
            if len(jobs.starts) >= BATCH:
                jobs.work_out()
        self.energy.work(machine, job.number, job.cpus, now)
        self.fairness.change(job.spec.vo, job.cpus, time_s, now)

    def job_changed(self, job: Job, spec: JobSpec, now: float) -> None:
        """Handle a new declaration of a job; from now on its service counts for its new VO."""
        if job.state == RUNNING and spec.vo != job.spec.vo:
            self.fairness.change(job.spec.vo, -job.cpus, now, now)
            self.fairness.change(spec.vo, job.cpus, now, now)

    def job_removed(self, job: Job) -> None:
        """Count a job that left the queue or its machine without completing."""
        self.removed += 1
        if job.first_start_s is None:
            key = (job.spec.job_class, job.spec.vo)
            self.never_started[key] = self.never_started.get(key, 0) + 1

    def run_paused(self, job: Job, now: float) -> None:
        """Handle a suspension: neither goodput nor badput, and no energy of its own."""
        self.energy.pause(job.machine, job.number, job.cpus, now)
        self.fairness.change(job.spec.vo, -job.cpus, now, now)

    def run_resumed(self, job: Job, now: float) -> None:
        """Handle a suspended job that works again."""
        self.energy.work(job.machine, job.number, job.cpus, now)
        self.fairness.change(job.spec.vo, job.cpus, now, now)

    def run_completed(
        self, job: Job, run_s: float, cluster: int, time_s: float, more_cpu_s: float = 0.0
    ) -> None:
        """Count a run that completed its job: goodput, and the job's overhead and slowdown.

        `more_cpu_s`: CPU-seconds of goodput other than those of this run.
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
        """Count a wasted run: badput."""
        _add(self.badput, job.spec, job.run_cpu_s(run_s))
        self._ending = (BADPUT, cluster, run_s)
        key = (reason, cluster)
        self.evictions[key] = self.evictions.get(key, 0) + 1

    def run_closed(self, job: Job, time_s: float, now: float) -> None:
        """Close a counted run: add its energy, set its CPUs idle and stop the VO's meter."""
        self.energy.end_run(*self._ending, job, now)
        if job.state == RUNNING:  # a suspended one has paused already
            self.fairness.change(job.spec.vo, -job.cpus, time_s, now)

    def merge_vos(self, vos: Collection[str], into: str) -> None:
        """Merge what these VOs got into another; none of them may have a job here."""
        self._jobs.merge_vos(vos, into)
        merge_keys(self.badput, vos, into)
        merge_keys(self.never_started, vos, into)
        self.fairness.merge(vos, into)
        self.merged_vos_n += len(vos)

    def evictions_by_reason(self) -> dict[str, int]:
        """Return counts over all clusters, with every reason of the closed list."""
        out = dict.fromkeys(EVICTION_REASONS, 0)
        for (reason, _), n in self.evictions.items():
            out[reason] += n
        return out

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
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
        """Resume from what `save` returned; `clusters[i]` is today's number of saved cluster i."""
        self.submitted, self.completed, self.removed, self.starts = saved["counts"]
        self._jobs.restore(saved)
        self.badput = {(c, vo): cpu_s for c, vo, cpu_s in saved["badput"]}
        self.evictions = {(reason, clusters[c]): n for reason, c, n in saved["evictions"]}
        self.never_started = {(c, vo): n for c, vo, n in saved["never_started"]}
        self.begin_s = saved["begin_s"]
        self.fairness.restore(saved["fairness"])
        self.energy.restore(saved["energy"], clusters)


def _add(work: dict[tuple[str, str], float], spec: JobSpec, cpu_s: float) -> None:
    """Add the CPU-seconds of one run under its job's class and VO."""
    key = (spec.job_class, spec.vo)
    work[key] = work.get(key, 0.0) + cpu_s
