"""What estimators would have said of each job of a trace, had they been there."""

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from outrider.api.estimator import RunTimeEstimator
from outrider.formats.workload import Floats, Workload
from outrider.model.jobs import Job, JobSpec


class Told(NamedTuple):
    """What was told of each job when it was submitted.

    Attributes:
        quantiles: by estimator, (jobs, 3): low, median and high, seconds; nan: no opinion.
        waits: ``recorded`` by the trace, or ``fcfs``: made by first come, first served, because
            the trace has none.
    """

    quantiles: dict[str, Floats]
    waits: str


def tell(workload: Workload, estimators: Mapping[str, RunTimeEstimator]) -> Told:
    """Let estimators live through a trace: asked when a job is submitted, told when it ends.

    Nothing is told before it happened: jobs end after the wait that the trace recorded, and where
    an end and a submission fall together the end comes first.

    Args:
        workload: the trace.
        estimators: by name; they learn.
    """
    waits = "fcfs" if np.isnan(workload.wait_s).any() else "recorded"
    wait_s = workload.wait_s if waits == "recorded" else fcfs_waits(workload)
    jobs_n = len(workload.run_s)
    times = np.concatenate([workload.submit_s + wait_s + workload.run_s, workload.submit_s])
    is_submission = np.repeat([False, True], jobs_n)
    order = np.lexsort((is_submission, times))
    specs = _specs(workload)
    run_s = workload.run_s.tolist()
    quantiles = {}
    for name, estimator in estimators.items():
        said = np.full((jobs_n, 3), np.nan)
        specs_then = list(specs)
        for event, time_s in zip(order.tolist(), times[order].tolist(), strict=True):
            if event < jobs_n:
                job = Job(event, specs_then[event], workload.submit_s[event])
                estimator.learn(job, run_s[event], time_s)
                continue
            number = event - jobs_n
            estimate = estimator.estimate(specs[number], time_s)
            if estimate is not None:
                said[number] = estimate.low_s, estimate.median_s, estimate.high_s
                specs_then[number] = msgspec.structs.replace(
                    specs[number], estimate_s=estimate.median_s
                )
        quantiles[name] = said
    return Told(quantiles, waits)


def _specs(workload: Workload) -> list[JobSpec]:
    requested = [None if value != value else value for value in workload.requested_s.tolist()]
    return [
        JobSpec(user=user, vo=vo, job_class=job_class, cpus=cpus, estimate_s=requested_s)
        for user, vo, job_class, cpus, requested_s in zip(
            workload.user,
            workload.vo,
            workload.job_class,
            workload.cpus.tolist(),
            requested,
            strict=True,
        )
    ]


def fcfs_waits(workload: Workload) -> NDArray[np.float64]:
    """(jobs,) waits in seconds under first come, first served, on all CPUs as one pool."""
    free = sum(machine.cpus for machine in workload.machines)
    running: list[tuple[float, int]] = []
    now = 0.0
    waits = []
    for submit_s, run_s, cpus in zip(
        workload.submit_s.tolist(), workload.run_s.tolist(), workload.cpus.tolist(), strict=True
    ):
        now = max(now, submit_s)
        while running and (running[0][0] <= now or free < cpus):
            end_s, given_back = heappop(running)
            now, free = max(now, end_s), free + given_back
        heappush(running, (now + run_s, cpus))
        free -= cpus
        waits.append(now - submit_s)
    return np.array(waits)
