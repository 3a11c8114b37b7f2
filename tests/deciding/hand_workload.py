"""Workloads written by hand, a job a line, and who started when under a policy."""

from collections.abc import Sequence
from math import nan
from typing import Any, NamedTuple

import numpy as np

from deciding.plays import chance
from outrider.api import MachineSpec, Policy
from outrider.model.decisions import START
from outrider.replay.grid_run import GridRun
from outrider.virtual.workload import Workload


class Asked(NamedTuple):
    """A job: the truth, and what policies are told of it (None: the truth, nan: nothing)."""

    submit_s: float
    run_s: float
    cpus: int = 1
    estimate_s: float | None = None
    job_class: str = "batch"
    vo: str = "all"


def make_workload(machines: Sequence[int], jobs: Sequence[Asked]) -> Workload:
    """A workload; `machines` are the CPUs of each, jobs are named j0, j1, ..."""
    told = [job.run_s if job.estimate_s is None else job.estimate_s for job in jobs]
    return Workload(
        name="by hand",
        job_names=[f"j{number}" for number in range(len(jobs))],
        submit_s=np.array([job.submit_s for job in jobs], dtype=float),
        run_s=np.array([job.run_s for job in jobs], dtype=float),
        cpus=np.array([job.cpus for job in jobs], dtype=np.int64),
        requested_s=np.full(len(jobs), nan),
        wait_s=np.full(len(jobs), nan),
        estimate_s=np.array(told, dtype=float),
        user=["ann"] * len(jobs),
        vo=[job.vo for job in jobs],
        job_class=[job.job_class for job in jobs],
        machine_names=[f"m{number}" for number in range(len(machines))],
        machines=[MachineSpec(cpus=cpus) for cpus in machines],
    )


def started_at(
    workload: Workload, kind: type[Policy], backfill: str = "none", **settings: Any
) -> dict[str, float]:
    """When each job first started, by name."""
    starts: dict[str, float] = {}

    def keep(time_s: float, job: str, action: str, *rest: Any) -> None:
        if action == START:
            starts.setdefault(job, time_s)

    policy = kind(kind.settings_type(**settings), chance(kind.name))
    GridRun(workload, [policy], keep, backfill=backfill).run()
    return starts
