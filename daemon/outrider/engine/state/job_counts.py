"""How many jobs are in each state, kept up to date: who asks often must not walk over all jobs."""

from collections.abc import Iterable
from typing import TypeAlias

from outrider.model.jobs import JOB_STATE_NAMES, RUNNING, SUSPENDED_STATE, Job

Key: TypeAlias = tuple[str, str]
"""Job class and VO."""


class JobCounts:
    """Counts of the jobs that are here, as a walk over them would find.

    A job is taken out before it changes and put in afterwards; so nobody has to know what an
    event changes, and a job that changes in any other way makes the counts wrong.

    Args:
        jobs: those that are here already.

    Attributes:
        by_state: jobs in each state, by its number.
        by_vo: the same of each VO that has jobs.
        never_started: jobs without a first start, by job class and VO.
        with_run: the jobs that have a run, suspended or not, by number.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.by_state = [0] * len(JOB_STATE_NAMES)
        self.by_vo: dict[str, list[int]] = {}
        self.never_started: dict[Key, int] = {}
        self.with_run: dict[int, Job] = {}
        for job in jobs:
            self.put_in(job)

    def put_in(self, job: Job) -> None:
        """Count a job as it is now."""
        spec, state = job.spec, job.state
        self.by_state[state] += 1
        states = self.by_vo.get(spec.vo)
        if states is None:
            states = self.by_vo[spec.vo] = [0] * len(JOB_STATE_NAMES)
        states[state] += 1
        if job.first_start_s is None:
            key = (spec.job_class, spec.vo)
            self.never_started[key] = self.never_started.get(key, 0) + 1
        if state in (RUNNING, SUSPENDED_STATE):
            self.with_run[job.number] = job

    def take_out(self, job: Job) -> None:
        """Count it no more; it must be as it was when it was put in."""
        spec, state = job.spec, job.state
        self.by_state[state] -= 1
        states = self.by_vo[spec.vo]
        states[state] -= 1
        if not any(states):
            del self.by_vo[spec.vo]
        if job.first_start_s is None:
            key = (spec.job_class, spec.vo)
            self.never_started[key] -= 1
            if not self.never_started[key]:
                del self.never_started[key]
        self.with_run.pop(job.number, None)
