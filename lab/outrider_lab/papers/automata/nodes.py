"""A run of the grid under one scheduler, on the engine, and what came of it."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api.policy import Policy
from outrider.formats.workload import Workload
from outrider.model.events import COMPLETED, STARTED
from outrider.replay.grid_run import GridRun
from outrider.replay.keeping import keep_nothing
from outrider_lab.papers.automata.schedulers import SeveralSchedulers
from outrider_lab.papers.automata.workloads import MEAN_RUN_S, node_grid
from outrider_lab.running.run_spec import RunSpec

Floats = NDArray[np.float64]

BINS: Final = 40
"""Points of the charts over time."""


def play_on_nodes(spec: RunSpec) -> dict[str, Any]:
    """Times in units of the mean work of a job, so that a node of capacity 1 needs 1 for it.

    Returns:
        `flowtime` (mean of completion - submission), `makespan_ratio` (last completion over last
        submission), `queue` (jobs at a node, mean over nodes and time), `within_mean_ratio` (jobs
        that met a queue no longer than the mean of all nodes); `flowtime_before` and
        `flowtime_after` the middle of the arrivals, where capacities change in the drift
        experiment; where they do not, `load_cov` (work over capacity: standard deviation over
        mean of the nodes) and `capacity_correlation` (of a node's work and its capacity); and
        curves over time.
    """
    workload = node_grid(spec.drawn.seed, **dict(spec.drawn.options))
    watch = _Watch(workload)
    watch.follow(GridRun(workload, [_policy(spec)], keep_nothing))
    return watch.figures()


def _policy(spec: RunSpec) -> Policy:
    made = [
        spec.policy.make(spec.seed + 1_000_000 * number, str(spec))
        for number in range(spec.option("schedulers"))
    ]
    return made[0] if len(made) == 1 else SeveralSchedulers(made)


class _Watch:
    """Follows a run: where jobs went, how long queues were, when jobs were done."""

    def __init__(self, workload: Workload) -> None:
        nodes, jobs = len(workload.machines), len(workload.submit_s)
        self._workload = workload
        self._node = np.zeros(jobs, dtype=np.intp)
        self._done_s = np.full(jobs, np.nan)
        self._jobs = np.zeros(nodes)
        self._short_n = 0
        self._queue_s = 0.0
        self._last_s = float(workload.submit_s[-1])
        self._queues = np.zeros(BINS)

    def follow(self, run: GridRun) -> None:
        """Until every job is done."""
        before_s, at_nodes, bin_s = 0.0, 0, self._last_s / BINS
        for time_s, kind, job, extra in run.stream():
            if kind not in (STARTED, COMPLETED):
                continue
            self._queue_s += at_nodes * max(0.0, min(time_s, self._last_s) - before_s)
            before_s = min(time_s, self._last_s)
            if kind == STARTED:
                node = self._node[job] = extra[0]
                self._short_n += bool(self._jobs[node] <= self._jobs.mean())
                self._jobs[node] += 1
                at_nodes += 1
                self._queues[min(int(time_s / bin_s), BINS - 1)] = at_nodes / len(self._jobs)
            else:
                self._done_s[job] = time_s
                self._jobs[self._node[job]] -= 1
                at_nodes -= 1

    def figures(self) -> dict[str, Any]:
        """What `play_on_nodes` returns."""
        workload = self._workload
        submit_s, jobs, nodes = workload.submit_s, len(workload.submit_s), len(workload.machines)
        capacity = np.array([spec.speed for spec in workload.machines])
        work = np.bincount(self._node, weights=workload.run_s, minlength=nodes)
        flowtime = (self._done_s - submit_s) / MEAN_RUN_S
        half = jobs // 2
        loads = work / capacity
        balance = {
            "load_cov": float(loads.std() / loads.mean()),
            "capacity_correlation": float(np.corrcoef(work, capacity)[0, 1]),
        }
        return ({} if workload.speed_changes else balance) | {
            "flowtime": float(flowtime.mean()),
            "flowtime_before": float(flowtime[:half].mean()),
            "flowtime_after": float(flowtime[half:].mean()),
            "makespan_ratio": float(self._done_s.max() / self._last_s),
            "queue": self._queue_s / self._last_s / nodes,
            "within_mean_ratio": self._short_n / jobs,
            "queue_by_time": self._queues.tolist(),
            "flowtime_by_arrival": [float(part.mean()) for part in np.array_split(flowtime, BINS)],
        }
