"""A run of the grid under one scheduler, on the engine, and what came of it."""

import random
from collections.abc import Sequence
from math import nan
from statistics import fmean
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from outrider.api.capabilities import Learns
from outrider.api.policy import Policy, PolicySettings
from outrider.api.site_view import SiteView
from outrider.engine.state.site import Site
from outrider.formats.workload import GridRules, SpeedChange, Workload
from outrider.model.decisions import COMPLETED_RUN, EVICTED_RUN, Choice, Outcome
from outrider.model.events import COMPLETED, STARTED
from outrider.model.jobs import Job, JobSpec
from outrider.model.localtime import ZoneTime
from outrider.model.machines import MachineSpec
from outrider.plugins.finding import stream
from outrider.replay.grid_run import GridRun
from outrider.replay.run import keep_nothing
from outrider_lab.running.run_spec import RunSpec

Floats = NDArray[np.float64]
BINS: Final = 40
"""Points of the charts over time."""


def play_on_nodes(spec: RunSpec) -> dict[str, Any]:
    """Run the grid experiment; times are in units of the mean work of a job.

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
        """Follow the run until every job is done."""
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
        """Return the figures of `play_on_nodes`."""
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


# -- schedulers ------------------------------------------------------------------------------------
# Several schedulers over the same nodes: the many-to-many grid of LAJS, section 3.


class NotifiedScheduler(Protocol):
    """Scheduler that learns of jobs that others sent to the nodes, and of the ends of its own."""

    def sent(self, job: Job, machine: int, view: SiteView, own: bool = True) -> None:
        """Record a job that was sent to a machine, by itself or by another scheduler."""
        ...

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        """Learn from an outcome like `Learns.observe`."""
        ...


class SeveralSchedulers(Learns, Policy):
    """Each user has one scheduler; each scheduler learns from its own jobs alone.

    All see how long the nodes' queues are. For nodes with queues, where whatever is chosen starts.

    Args:
        schedulers: at least one; users are given to them in turns, as they appear.
    """

    name = "several_schedulers"
    description = "several schedulers share the nodes, each with automata of its own"

    def __init__(self, schedulers: Sequence[Policy]) -> None:
        super().__init__(PolicySettings(), schedulers[0].rng)
        self._schedulers = schedulers
        self._of_user: dict[str, int] = {}

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Let the user's scheduler decide; the others see the queue grow."""
        mine = self._of_user.setdefault(job.spec.user, len(self._of_user) % len(self._schedulers))
        choice = self._schedulers[mine].choose(job, evaluation, view, may_defer)
        for number, scheduler in enumerate(self._schedulers):
            cast(NotifiedScheduler, scheduler).sent(job, choice.machine, view, own=number == mine)
        return choice

    def group_key(self, job: Job, view: SiteView) -> Any:
        """Return the key of the schedulers."""
        return self._schedulers[0].group_key(job, view)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> tuple[()]:
        """Let all schedulers see the queue shrink."""
        for scheduler in self._schedulers:
            cast(NotifiedScheduler, scheduler).observe(outcome, view, on_policy)
        return ()


# -- workloads -------------------------------------------------------------------------------------
# The grid of the experiments: nodes of unlike capacity, each with a queue of its own.

MEAN_RUN_S = 100.0
LOAD_RATIO = 0.8
USERS = 10
CAPACITIES = (1, 10)


def node_grid(seed: int, nodes: int, jobs: int, permuted: bool = False) -> Workload:
    """Return Poisson arrivals at a load of .8, exponential work, capacities drawn from 1 to 10.

    Args:
        seed: 0 or more; of capacities, arrivals, work, users and the permutation, each from its
            own stream.
        nodes: how many; a node of capacity c does c seconds of work a second, first in first out.
        jobs: how many, of 10 users.
        permuted: half way through the arrivals the nodes swap their capacities at random. Nobody
            unknown to the schedulers, which keep the old ones.
    """
    children = np.random.SeedSequence(seed).spawn(5)
    capacity_rng, gap_rng, run_rng, user_rng, swap_rng = map(np.random.default_rng, children)
    capacity = capacity_rng.integers(CAPACITIES[0], CAPACITIES[1] + 1, nodes).astype(float)
    rate_per_s = LOAD_RATIO * capacity.sum() / MEAN_RUN_S
    submit_s = np.cumsum(gap_rng.exponential(1.0 / rate_per_s, jobs))
    unknown = np.full(jobs, np.nan)
    changes: list[SpeedChange] = []
    if permuted:
        swapped = swap_rng.permutation(capacity).tolist()
        half_s = float(submit_s[jobs // 2])
        changes = [SpeedChange(half_s, machine, speed) for machine, speed in enumerate(swapped)]
    return Workload(
        name=f"node grid, seed {seed}",
        job_names=[str(job) for job in range(jobs)],
        submit_s=submit_s,
        run_s=np.maximum(run_rng.exponential(MEAN_RUN_S, jobs), 1e-6),
        cpus=np.ones(jobs, dtype=np.int64),
        requested_s=unknown,
        wait_s=unknown,
        estimate_s=unknown,
        user=[f"user-{user}" for user in user_rng.integers(0, USERS, jobs)],
        vo=["all"] * jobs,
        job_class=["batch"] * jobs,
        class_source="none",
        machine_names=[f"node-{node}" for node in range(nodes)],
        machines=[MachineSpec(cluster="grid", speed=speed) for speed in capacity.tolist()],
        rules=GridRules(node_queues=True),
        speed_changes=changes,
    )


# -- stationary ------------------------------------------------------------------------------------
# The node automaton alone, in an environment whose penalties never change.

PENALTIES: Final = (0.8, 0.6, 0.4, 0.2)
"""Probability with which each node wastes a job; the last is the best."""
BEST_OF_LRP: Final = (1 / PENALTIES[-1]) / sum(1 / c for c in PENALTIES)
"""Theoretical probability of the best node under L_R-P, as a goes to 0."""
_SAMPLES: Final = 100


def play_stationary(spec: RunSpec) -> dict[str, Any]:
    """Return p(best): averaged over the last half, and by step; over the runs of a seed.

    `locked_ratio`, for L_R-I, which rests only when it is certain: the share of runs that ended
    with less than 1/2 on the best node.
    """
    curves = [_run(spec, repeat) for repeat in range(spec.option("repeats"))]
    locked = fmean(curve[-1] < 0.5 for curve in curves)
    late = [curve[len(curve) // 2 :] for curve in curves]
    return {
        "p_best": fmean(map(fmean, late)),
        "locked_ratio": locked if spec.option("may_lock") else nan,
        "p_best_by_step": [fmean(points) for points in zip(*curves, strict=True)],
    }


def _run(spec: RunSpec, repeat: int) -> Sequence[float]:
    """Return p(best) at `_SAMPLES` moments of one run."""
    seed, steps = spec.seed * 1000 + repeat, spec.option("steps")
    policy = spec.policy.make(seed, str(spec))
    policy.wants_scores = True
    learner = cast(Learns, policy)  # a run spec of this experiment names one of the automata
    luck = random.Random(stream(seed, "automata:stationary").random())
    site = _site()
    best = f"nodes no. {len(PENALTIES) - 1}"
    every = max(1, steps // _SAMPLES)
    curve = []
    for number in range(steps):
        site.now += 1.0
        job = Job(number, JobSpec(), site.now)
        machine = policy.choose(job, None, site, False).machine
        ending = EVICTED_RUN if luck.random() < PENALTIES[machine] else COMPLETED_RUN
        key = policy.group_key(job, site)
        run = Outcome(number, key, machine, 0, site.now, site.now, 0.0, ending, "")
        learner.observe(run, site, True)
        if number % every == every - 1:
            curve.append(policy.scores(key, site)[best])
    return curve


def _site() -> Site:
    site = Site(ZoneTime("UTC"), [])
    for machine in range(len(PENALTIES)):
        site.join(machine, MachineSpec(cluster="nodes"))
        site.open_machine(machine)
    return site
