"""Backtest over a log: forecast every waiting job's start from the information at that moment.

Questions are at the submission of each job that does not start immediately, and then at each full
hour of the log's clock while it waits. Questions at fractions of its wait would reveal its length.
"""

import heapq
from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from outrider.forecast.expected_starts import DAYS_BACK, expected_starts
from outrider.forecast.questions import FEATURES, LEVELS, Questions
from outrider.forecast.queue_state import (
    NO_ARRIVALS,
    Floats,
    Ints,
    Jobs,
    QueueState,
    RecentArrivals,
)
from outrider.forecast.run_times import GROUP_LEVELS, RunTimeHistory
from outrider.formats.workload import Workload
from outrider.model.localtime import DAY_S, HOUR_S, LocalTime, TraceTime
from outrider.model.modes import STRICT, Discipline
from outrider.plugins.finding import make_policy
from outrider.replay.grid_run import GridRun
from outrider.simulation.recorded_site import jobs_with_waits

# -- job log ---------------------------------------------------------------------------------------
# History of the jobs of a log: their submissions, starts and run times.


@dataclass(frozen=True)
class JobLog:
    """Jobs in the order of their submission. It is the truth: `walk` reveals what is known.

    Attributes:
        clock: the site's wall clock at the log's seconds.
        total_cpus: of the site.
        submit_s: (jobs,) ascending, seconds of the log.
        start_s: (jobs,) start of each; inf: never.
        run_s: (jobs,) run time of each, seconds.
        cpus: (jobs,) CPUs.
        estimate_s: (jobs,) run time estimate that the scheduler uses, seconds; nan: none.
        request_s: (jobs,) run time that the user requested, seconds; nan: none.
        user: (jobs,) names; of a job without one, its VO.
        job_class: (jobs,) any other declaration of their length.
    """

    clock: LocalTime
    total_cpus: int
    submit_s: Floats
    start_s: Floats
    run_s: Floats
    cpus: Ints
    estimate_s: Floats
    request_s: Floats
    user: list[str]
    job_class: list[str]

    def __len__(self) -> int:
        return len(self.submit_s)


def log_of(workload: Workload, start_s: Floats) -> JobLog:
    """Return the log of a workload with given starts.

    Args:
        workload: with the estimates that the scheduler used.
        start_s: (jobs,) seconds; nan or inf: never.
    """
    return JobLog(
        TraceTime(workload.start), sum(machine.cpus for machine in workload.machines),
        workload.submit_s, np.where(np.isnan(start_s), np.inf, start_s), workload.run_s,
        workload.cpus, workload.estimate_s, workload.requested_s,
        [user or vo for user, vo in zip(workload.user, workload.vo, strict=True)],
        workload.job_class,
    )  # fmt: skip


def simulated_log(
    workload: Workload,
    discipline: Discipline,
    progress: Callable[[float], None] | None = None,
) -> JobLog:
    """Simulate a workload by the engine, first come, first served under a discipline.

    Args:
        workload: with the estimates for the scheduler.
        discipline: the rule by which jobs may pass one that does not fit.
        progress: called periodically with the ratio of the trace that has passed.
    """
    fifo = make_policy("fifo", {}, 0, "the incumbent")
    run = GridRun(workload, [fifo], lambda _: None, exact=False, discipline=discipline)
    run.run(progress)
    return log_of(workload, workload.submit_s + run.grid.waits_s())


def recorded_log(workload: Workload) -> JobLog:
    """Return the recorded log of the trace's own scheduler. Raises `TraceError` without waits."""
    jobs_with_waits(workload)
    return log_of(workload, workload.submit_s + workload.wait_s)


# -- walk ------------------------------------------------------------------------------------------

_NEW_BELOW = 3  # run times known of a user


def walk(
    log: JobLog,
    discipline: Discipline,
    replicates: int,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None = None,
) -> Questions:
    """Return all questions, with the quantiles of the replicates and the answers.

    Args:
        log: the truth, of which each forecast uses only what was known at its question.
        discipline: the simulated rule.
        replicates: for each question.
        rng: for the draws.
        progress: called periodically with the ratio of the log that has passed.
    """
    rounds = list(_rounds(log, discipline, replicates, rng, progress))
    if not rounds:
        rounds.append((np.empty(0, np.int64), 0.0, np.empty((0, len(LEVELS))), _nothing()))
    job = np.concatenate([asked for asked, *_ in rounds])
    asked_s = np.concatenate([np.full(len(asked), time_s) for asked, time_s, *_ in rounds])
    return Questions(
        job, asked_s, log.submit_s[job] == asked_s,
        np.concatenate([quantiles_s for _, _, quantiles_s, _ in rounds]),
        np.concatenate([known for *_, known in rounds]), log.start_s[job] - asked_s,
    )  # fmt: skip


def _rounds(
    log: JobLog,
    discipline: Discipline,
    replicates: int,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None,
) -> Iterator[tuple[Ints, float, Floats, Floats]]:
    """Yield for each moment its jobs, the time, (jobs, levels) and (jobs, features)."""
    site = SiteAt(log)
    begin_s, span_s = float(log.submit_s[0]), max(1.0, float(np.ptp(log.submit_s)))
    while (time_s := site.next_s) < np.inf:
        hour_s = (np.floor(site.now_s / HOUR_S) + 1.0) * HOUR_S if site.waiting else np.inf
        came = site.go_to(min(time_s, hour_s))
        asked = site.waiting if site.now_s % HOUR_S == 0.0 else came
        if not asked:
            continue
        first = site.waiting.index(asked[0])
        state = site.state()
        arrivals = NO_ARRIVALS if discipline == STRICT else site.arrivals()
        starts_s = expected_starts(
            state, site.history, arrivals, discipline, replicates, rng, first
        )
        places = np.searchsorted(site.waiting, asked)
        waits_s = starts_s[:, places - first] - site.now_s
        quantiles_s = np.quantile(waits_s, LEVELS, axis=0).T
        known = known_features(state, site.history, log.submit_s[asked], places)
        yield np.array(asked, np.int64), site.now_s, quantiles_s, known
        if progress is not None:
            progress(min(1.0, (site.now_s - begin_s) / span_s))


def known_features(
    state: QueueState, history: RunTimeHistory, submit_s: Floats, places: Ints
) -> Floats:
    """Return (jobs, features) of the waiting jobs at these positions of the queue."""
    running, waiting = state.running, state.waiting

    def before(amounts: Floats) -> Floats:
        return (np.cumsum(amounts) - amounts)[places]

    out = _nothing(len(places))
    cpus = waiting.cpus.astype(float)
    ahead_cpus = before(cpus)
    length_s = np.nan_to_num(waiting.request_s, nan=HOUR_S)
    running_new = float((running.cpus * _is_new(running, history)).sum())
    columns: dict[str, Floats | Ints | float] = {
        "waited_s": state.now_s - submit_s,
        "cpus": cpus[places],
        "request_s": waiting.request_s[places],
        "ahead": places,
        "ahead_cpus": ahead_cpus,
        "ahead_work_s": before(cpus * length_s),
        "free_cpus": state.free_cpus,
        "running_new": running_new / max(1, state.total_cpus),
        "ahead_new": before(cpus * _is_new(waiting, history)) / np.maximum(1.0, ahead_cpus),
        "hour": state.now_s % DAY_S / HOUR_S,
        "weekday": state.now_s // DAY_S % 7,
    }
    for place, name in enumerate(FEATURES):
        out[:, place] = columns[name]
    return out


def _is_new(jobs: Jobs, history: RunTimeHistory) -> Floats:
    return (history.totals[jobs.groups[:, 2]] < _NEW_BELOW).astype(float)


def _nothing(rows: int = 0) -> Floats:
    return np.empty((rows, len(FEATURES)))


# -- site at ---------------------------------------------------------------------------------------
# Known information at a moment of a log: state of the site, history, recent arrivals.


class SiteAt:
    """Replay of a log event by event; run times enter its history when their jobs have ended.

    Args:
        log: the truth.

    Attributes:
        now_s: the present moment.
        history: of the jobs that have ended.
        waiting: numbers of waiting jobs, in the order of the queue.
    """

    def __init__(self, log: JobLog) -> None:
        self._log = log
        self.now_s = -np.inf
        self.history = RunTimeHistory()
        self.waiting: list[int] = []
        self._running: dict[int, float] = {}
        self._groups: Ints = np.zeros((len(log), GROUP_LEVELS), np.int64)
        self._place: Ints = np.full(len(log), -1)
        self._came = 0
        self._starts: list[tuple[float, int]] = []
        self._ends: list[tuple[float, int]] = []

    @property
    def next_s(self) -> float:
        """Time of the next event; inf if there is none."""
        submit_s = self._log.submit_s
        coming_s = float(submit_s[self._came]) if self._came < len(submit_s) else np.inf
        start_s = self._starts[0][0] if self._starts else np.inf
        return min(coming_s, start_s, self._ends[0][0] if self._ends else np.inf)

    def go_to(self, time_s: float) -> list[int]:
        """Apply all events up to a moment, in order; return the arrived jobs that still wait.

        Args:
            time_s: at most `next_s`; a later one would hide the state between two events.
        """
        log, came = self._log, []
        self.now_s = time_s
        while self._ends and self._ends[0][0] <= time_s:
            _, job = heapq.heappop(self._ends)
            del self._running[job]
            self.history.add(self._groups[job], float(log.run_s[job]), float(log.request_s[job]))
        while self._came < len(log) and log.submit_s[self._came] <= time_s:
            job = self._came
            self._came += 1
            self._groups[job] = self.history.groups_of(
                log.user[job], float(log.request_s[job]), log.job_class[job], int(log.cpus[job])
            )
            came.append(job)
            insort(self.waiting, job)
            heapq.heappush(self._starts, (float(log.start_s[job]), job))
        while self._starts and self._starts[0][0] <= time_s:
            start_s, job = heapq.heappop(self._starts)
            self.waiting.remove(job)
            self._running[job] = start_s
            heapq.heappush(self._ends, (start_s + float(log.run_s[job]), job))
        return [job for job in came if job not in self._running]

    def state(self) -> QueueState:
        """Return the state of the site now."""
        log = self._log
        running = np.fromiter(self._running, np.int64, len(self._running))
        since_s = np.fromiter(self._running.values(), float, len(self._running))
        free_cpus = max(0, log.total_cpus - int(log.cpus[running].sum()))
        waiting = np.array(self.waiting, np.int64)
        return QueueState(
            self.now_s, log.clock.week_second(self.now_s), free_cpus, log.total_cpus,
            self._jobs(running), since_s, self._jobs(waiting),
        )  # fmt: skip

    def arrivals(self) -> RecentArrivals:
        """Return the arrivals of the last days, up to now."""
        log = self._log
        since_s = max(float(log.submit_s[0]), self.now_s - (DAYS_BACK + 1) * DAY_S)
        rows = slice(int(np.searchsorted(log.submit_s, since_s)), self._came)
        open_jobs = [*self._running, *self.waiting]
        self._place[open_jobs] = np.arange(len(open_jobs))
        job = self._place[rows].copy()
        self._place[open_jobs] = -1
        run_s: Floats = np.where(job < 0, log.run_s[rows], np.nan)
        return RecentArrivals(
            since_s, log.submit_s[rows], log.cpus[rows], log.estimate_s[rows], run_s, job
        )

    def _jobs(self, rows: Ints) -> Jobs:
        log = self._log
        return Jobs(log.cpus[rows], log.estimate_s[rows], log.request_s[rows], self._groups[rows])
