"""What befell each job under each policy: the same jobs in the same rows, so that they pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class JobOutcomes(NamedTuple):
    """The jobs of a trace and what befell them in one run, by number; nan for what never came.

    Attributes:
        submit_s: when each was submitted.
        job_class: of each.
        is_short: of each, whether its true run time is below the limit of the report.
        wait_s: first start less submission.
        bounded_slowdown: of completed jobs, as docs/reference/definitions.md defines it.
    """

    submit_s: Floats
    job_class: NDArray[np.str_]
    is_short: Mask
    wait_s: Floats
    bounded_slowdown: Floats


class PolicyRun(NamedTuple):
    """One run of a policy on a trace.

    Attributes:
        policy: its name.
        seed: of its chance, and of the estimates'.
        report: the run object of ``outrider replay --json``.
        jobs: what befell each job.
    """

    policy: str
    seed: int
    report: dict[str, Any]
    jobs: JobOutcomes


@dataclass(frozen=True)
class PairedJobs:
    """Jobs of a trace that completed under every policy with every seed, one row each.

    Attributes:
        policies: by column.
        submit_s: when each was submitted.
        job_class: of each.
        is_short: of each, whether its true run time is below the limit of the report.
        wait_s, bounded_slowdown: shape (jobs, policies); of several seeds the mean.
        left_out: jobs of the trace that did not complete in some run.
    """

    policies: tuple[str, ...]
    submit_s: Floats
    job_class: NDArray[np.str_]
    is_short: Mask
    wait_s: Floats
    bounded_slowdown: Floats
    left_out: int

    def of_class(self, name: str) -> Mask:
        """Which rows are of a class."""
        mask: Mask = self.job_class == name
        return mask


def pair_jobs(runs: Sequence[PolicyRun]) -> PairedJobs:
    """Put the runs of one trace beside each other: every policy with every seed."""
    policies = tuple(dict.fromkeys(run.policy for run in runs))
    trace = runs[0].jobs
    completed = ~np.any([np.isnan(run.jobs.bounded_slowdown) for run in runs], axis=0)

    def means(name: str) -> Floats:
        by_policy = [
            np.mean([getattr(run.jobs, name) for run in runs if run.policy == policy], axis=0)
            for policy in policies
        ]
        columns: Floats = np.stack(by_policy, axis=1)[completed]
        return columns

    return PairedJobs(
        policies,
        trace.submit_s[completed],
        trace.job_class[completed],
        trace.is_short[completed],
        means("wait_s"),
        means("bounded_slowdown"),
        int((~completed).sum()),
    )
