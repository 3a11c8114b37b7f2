"""The utility of a completed job, from the request that was recorded when its run began."""

from collections.abc import Hashable
from typing import NamedTuple

from outrider.api import COMPLETED_RUN, Job, JobSpec, Outcome, SiteView


class JobRequest(NamedTuple):
    """A job's request, used as the key of its outcome.

    Attributes:
        submit_s: submission time; None if unknown.
        estimate_s: run time estimate, seconds; None if unknown.
        cpus: requested CPUs.
        job_class: declared class.
    """

    submit_s: float | None
    estimate_s: float | None
    cpus: int
    job_class: str


def request_of(job: Job) -> Hashable:
    """The request of a job, as the key of its outcome."""
    spec = job.spec
    return JobRequest(job.submit_s, spec.estimate_s, spec.cpus, spec.job_class)


def final_utility(outcome: Outcome, request: JobRequest, view: SiteView) -> float:
    """Unit utility x requested CPUs x ideal run time, CPU-seconds (Vengerov 2005, section 2).

    0 for a run that did not complete its job. Without an estimate the ideal run time is the length
    of the run.
    """
    if outcome.ending != COMPLETED_RUN:
        return 0.0
    submit_s = outcome.start_s if request.submit_s is None else request.submit_s
    ideal_s = outcome.run_s if request.estimate_s is None else request.estimate_s
    job_of_class = Job(outcome.job, JobSpec(job_class=request.job_class), submit_s)
    unit = float(view.utility(job_of_class).unit(outcome.end_s - submit_s, ideal_s))
    return unit * request.cpus * ideal_s
