"""Contract of a run time estimator: it predicts how long a job will run.

Users request far more time than they need, or none. An estimator learns from the jobs that
ended how long later ones will take. Its estimate becomes the job's `estimate_s`, for every policy.
"""

import random
from typing import Any, ClassVar, NamedTuple

from outrider.api.policy import PolicySettings
from outrider.model.jobs import Job, JobSpec


class RunTimeEstimate(NamedTuple):
    """Estimated run time of a job on all the CPUs it requests, in seconds.

    Attributes:
        median_s: half of such jobs run shorter. This is the value that policies get.
        low_s, high_s: eight of ten such jobs run between these (10th and 90th percentile).
    """

    median_s: float
    low_s: float
    high_s: float


class RunTimeEstimator:
    """Base class of every estimator: declare the class variables, write both methods.

    Class variables:
        name: as in the entry point ``outrider.estimators``.
        description: one line.
        settings_type: the record that `outrider.api.build` makes of its table.
        api_version: as in `outrider.api.Policy`.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    settings_type: ClassVar[type[PolicySettings]] = PolicySettings
    api_version: ClassVar[int]

    def __init__(self, settings: Any, rng: random.Random) -> None:
        self.settings = settings
        self.rng = rng

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        """Return the estimate for a job that is submitted now; None: no opinion yet.

        `spec.estimate_s` is the user's own estimate, if any: usually an upper bound.
        """
        raise NotImplementedError

    def learn(self, job: Job, run_s: float, now: float) -> None:
        """Learn from a job that completed after `run_s` seconds on all its requested CPUs."""
        raise NotImplementedError

    def save(self) -> dict[str, Any]:
        """Return what was learned, as plain data."""
        return {}

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned. Raises `ValueError` if it does not fit."""
