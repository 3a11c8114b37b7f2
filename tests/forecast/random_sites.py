"""Random busy parallel sites, their simulation by the engine, and their state at a moment."""

from typing import NamedTuple

import numpy as np

from outrider.forecast.queue_state import Floats, Jobs, QueueState, RecentArrivals
from outrider.formats.workload import Workload
from outrider.model.localtime import DAY_S
from outrider.model.modes import Discipline
from outrider.plugins.finding import make_policy
from outrider.replay.grid_run import GridRun
from outrider.testing.fixtures import Asked, make_workload

CPUS = 16


def random_workload(seed: int, jobs_n: int = 150, widest: int = 12) -> Workload:
    """Draw jobs of whole seconds on one pool; some have no estimate, some run longer than it."""
    rng = np.random.default_rng(seed)
    submit_s = np.cumsum(rng.choice([0, 0, 10, 60, 300, 900], jobs_n))
    run_s = rng.choice([10, 60, 300, 600, 1200, 4000], jobs_n)
    estimates_s = np.where(
        rng.random(jobs_n) < 0.8, run_s * rng.choice([0.5, 1.0, 1.0, 3.0], jobs_n), np.nan
    )
    cpus = rng.integers(1, widest + 1, jobs_n)
    asked = [
        Asked(float(at), float(ran), int(width), float(estimate_s))
        for at, ran, width, estimate_s in zip(submit_s, run_s, cpus, estimates_s, strict=True)
    ]
    return make_workload((CPUS,), asked)


def engine_starts(workload: Workload, discipline: Discipline) -> Floats:
    """Return (jobs,) starts by the engine, in the order of arrival; inf: never."""
    run = GridRun(workload, [make_policy("fifo", {}, 0, "")], lambda _: None, discipline=discipline)
    run.run()
    return workload.submit_s + run.grid.waits_s()


class Moment(NamedTuple):
    """State of a site at a moment, with the truth about it."""

    state: QueueState
    run_s: Floats  # (1, running + waiting)
    starts_s: Floats  # (waiting,)
    coming: RecentArrivals  # what will come, as if it had come a whole number of days before
    shifts_s: Floats  # (1, days)


def moment(workload: Workload, starts_s: Floats, now_s: float) -> Moment:
    """Return the state after all events of `now_s`."""
    run_s = workload.run_s
    here = workload.submit_s <= now_s
    (running,) = (here & (starts_s <= now_s) & (starts_s + run_s > now_s)).nonzero()
    (waiting,) = (here & (starts_s > now_s)).nonzero()
    (later,) = (~here).nonzero()

    def jobs(rows: np.ndarray) -> Jobs:
        return Jobs(
            workload.cpus[rows], workload.estimate_s[rows], workload.requested_s[rows],
            np.zeros((len(rows), 5), np.int64),
        )  # fmt: skip

    state = QueueState(
        now_s, 0.0, CPUS - int(workload.cpus[running].sum()), CPUS, jobs(running),
        starts_s[running], jobs(waiting),
    )  # fmt: skip
    days = 40
    coming = RecentArrivals(
        now_s - days * DAY_S, workload.submit_s[later] - days * DAY_S, workload.cpus[later],
        workload.estimate_s[later], run_s[later], np.full(len(later), -1),
    )  # fmt: skip
    both = np.concatenate([running, waiting])
    return Moment(
        state, run_s[both][None], starts_s[waiting], coming, np.full((1, days), days * DAY_S)
    )
