"""What is known at a moment of a log: the state of the site, the history, what came lately."""

import heapq
from bisect import insort

import numpy as np

from outrider.model.localtime import DAY_S
from outrider.twin.starts.expected_starts import DAYS_BACK
from outrider.twin.starts.job_log import JobLog
from outrider.twin.starts.queue_state import Floats, Ints, Jobs, QueueState, RecentArrivals
from outrider.twin.starts.run_time_history import LEVELS, RunTimeHistory


class SiteAt:
    """Goes through a log event by event; run times reach its history when their jobs have ended.

    Args:
        log: the truth.

    Attributes:
        now_s: the moment.
        history: of the jobs that have ended.
        waiting: numbers of those that wait, in the order of the queue.
    """

    def __init__(self, log: JobLog) -> None:
        self._log = log
        self.now_s = -np.inf
        self.history = RunTimeHistory()
        self.waiting: list[int] = []
        self._running: dict[int, float] = {}
        self._groups: Ints = np.zeros((len(log), LEVELS), np.int64)
        self._place: Ints = np.full(len(log), -1)
        self._came = 0
        self._starts: list[tuple[float, int]] = []
        self._ends: list[tuple[float, int]] = []

    @property
    def next_s(self) -> float:
        """When something happens next; inf: nothing does any more."""
        submit_s = self._log.submit_s
        coming_s = float(submit_s[self._came]) if self._came < len(submit_s) else np.inf
        start_s = self._starts[0][0] if self._starts else np.inf
        return min(coming_s, start_s, self._ends[0][0] if self._ends else np.inf)

    def go_to(self, time_s: float) -> list[int]:
        """Let all happen that does until a moment, in its order; returns who came and waits.

        Args:
            time_s: at most `next_s`, or nothing of what comes first is seen.
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
        """The site now."""
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
        """What came in the last days, up to now."""
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
