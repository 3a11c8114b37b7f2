"""Journals of a busy grid, as its daemon writes them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from outrider.formats.workload import Workload
from outrider.journal import Entry, Journal
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.plugins.finding import make_policy
from outrider.replay.grid_run import GridRun
from tests.forecast.random_sites import random_workload

EPOCH_S = 1_600_000_000.0
LOOK_S = 600.0


def busy_weeks(seed: int, jobs: int = 900) -> Workload:
    """Return three days of batches, less with fewer jobs; users repeat their requests."""
    made = random_workload(seed, jobs, widest=8)
    rng = np.random.default_rng(seed)
    user = [f"u{number}" for number in rng.integers(0, 6, len(made.submit_s))]
    requests_s = np.array([600.0, 1_800.0, 5_000.0])[[int(name[1:]) // 2 for name in user]]
    return replace(
        made, user=user, estimate_s=requests_s, requested_s=requests_s,
        run_s=np.round(requests_s * rng.choice([0.2, 0.5, 0.9], len(requests_s))),
        submit_s=np.cumsum(rng.choice([0.0, 10.0, 300.0, 900.0], len(requests_s))),
    )  # fmt: skip


def told_by(workload: Workload) -> Iterator[NamedEvent]:
    """Write the daemon's journal of the grid, with the seen time every ten minutes."""
    fifo = make_policy("fifo", {}, 0, "test")
    run = GridRun(workload, [fifo], lambda _: None, discipline="strict")
    seen_s = 0.0
    for time_s, kind, subject, extra in run.stream():
        while time_s > seen_s:
            yield EPOCH_S + seen_s, ev.TICK, "grid", None
            seen_s += LOOK_S
        if kind == ev.TICK:
            continue
        of_job = kind in ev.JOB_KINDS
        name = (workload.job_names if of_job else workload.machine_names)[subject]
        where = (workload.machine_names[extra[0]], extra[1]) if kind == ev.STARTED else extra
        yield EPOCH_S + time_s, kind, name, where


def journal(workload: Workload, path: Path) -> Path:
    with Journal(path) as opened:
        opened.append(Entry(inputs=[("grid", event) for event in told_by(workload)]))
    return path


def started(workload: Workload) -> np.ndarray:
    run = GridRun(workload, [make_policy("fifo", {}, 0, "test")], lambda _: None)
    run.run()
    return np.asarray(workload.submit_s + run.grid.waits_s())


def names(workload: Workload, rows: np.ndarray) -> set[str]:
    return {workload.job_names[row] for row in np.flatnonzero(rows)}
