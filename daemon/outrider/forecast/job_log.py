"""What happened to the jobs of a log: who came when, started when, and ran for how long."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from outrider.forecast.queue_state import Floats, Ints
from outrider.formats.workload import Workload
from outrider.model.disciplines import Discipline
from outrider.model.localtime import LocalTime, TraceTime
from outrider.plugins.making import make_policy
from outrider.replay.grid_run import GridRun
from outrider.simulation.recorded_site import jobs_with_waits


@dataclass(frozen=True)
class JobLog:
    """Jobs in the order of their submission. It is the truth: `walk` shows of it what is known.

    Attributes:
        clock: the site's wall clock at the log's seconds.
        total_cpus: of the site.
        submit_s: (jobs,) ascending, seconds of the log.
        start_s: (jobs,) when each started; inf: never.
        run_s: (jobs,) how long each ran, seconds.
        cpus: (jobs,) CPUs.
        estimate_s: (jobs,) run time that the scheduler reckons with, seconds; nan: none.
        request_s: (jobs,) run time that the user asked for, seconds; nan: none.
        user: (jobs,) names; of a job without one, its VO.
        job_class: (jobs,) what else was declared of their length.
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
    """The log of a workload whose jobs started at these moments.

    Args:
        workload: with the estimates that the scheduler was told.
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
    """What the engine does with a workload, first come, first served under a discipline.

    Args:
        workload: with the estimates that the scheduler is told.
        discipline: who may start before a job that does not fit.
        progress: called from time to time with the ratio of the trace that has passed.
    """
    fifo = make_policy("fifo", {}, 0, "the incumbent")
    run = GridRun(workload, [fifo], lambda _: None, exact=False, discipline=discipline)
    run.run(progress)
    return log_of(workload, workload.submit_s + run.grid.waits_s())


def recorded_log(workload: Workload) -> JobLog:
    """What the trace's own scheduler did. Raises `TraceError` where no wait is recorded."""
    jobs_with_waits(workload)
    return log_of(workload, workload.submit_s + workload.wait_s)
