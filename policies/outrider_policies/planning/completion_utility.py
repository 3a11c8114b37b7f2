"""The utility of a job that completed, from what was noted of it when its run began."""

from collections.abc import Hashable
from typing import NamedTuple

from outrider.api import COMPLETED_RUN, Job, JobSpec, Outcome, SiteView


class Asked(NamedTuple):
    """What a job asked for, as the key of its outcome.

    Attributes:
        submit_s: when; None if nobody saw that.
        estimate_s: seconds; None if nobody said.
        cpus: on how many CPUs.
        job_class: as declared.
    """

    submit_s: float | None
    estimate_s: float | None
    cpus: int
    job_class: str


def asked_by(job: Job) -> Hashable:
    """The key under which a planning policy wants the outcome of a job."""
    spec = job.spec
    return Asked(job.submit_s, spec.estimate_s, spec.cpus, spec.job_class)


def final_utility(outcome: Outcome, asked: Asked, view: SiteView) -> float:
    """Unit utility x CPUs asked for x ideal run time, CPU-seconds (Vengerov 2005, section 2).

    0 for a run that did not complete its job. Without an estimate the ideal run time is that of
    the run.
    """
    if outcome.ending != COMPLETED_RUN:
        return 0.0
    submit_s = outcome.start_s if asked.submit_s is None else asked.submit_s
    ideal_s = outcome.run_s if asked.estimate_s is None else asked.estimate_s
    alike = Job(outcome.job, JobSpec(job_class=asked.job_class), submit_s)
    unit = float(view.utility(alike).unit(outcome.end_s - submit_s, ideal_s))
    return unit * asked.cpus * ideal_s
