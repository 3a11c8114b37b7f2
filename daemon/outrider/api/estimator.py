"""The contract of a run time estimator: how long will this job run, before anybody knows?

Users ask for far more time than they need, or say nothing. An estimator learns from the jobs that
ended what those to come will take; what it says becomes the job's `estimate_s`, for every policy.
"""

import random
from typing import Any, ClassVar, NamedTuple

from outrider.api.policy import PolicySettings
from outrider.model.jobs import Job, JobSpec


class RunTimeEstimate(NamedTuple):
    """What is expected of a job's run time on all the CPUs it asks for, in seconds.

    Attributes:
        median_s: half of such jobs run shorter. Policies get this one.
        low_s, high_s: eight of ten such jobs run between these (the tenth and ninetieth of a
            hundred).
    """

    median_s: float
    low_s: float
    high_s: float


class RunTimeEstimator:
    """Base of every estimator: subclass it, declare the class variables, write both methods.

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
        """What to expect of a job that is submitted now; None: no opinion yet.

        `spec.estimate_s` is what its user said, if anything: usually an upper bound.
        """
        raise NotImplementedError

    def learn(self, job: Job, run_s: float, now: float) -> None:
        """A job completed after `run_s` seconds of work, counted on all the CPUs it asked for."""
        raise NotImplementedError

    def save(self) -> dict[str, Any]:
        """What was learned, as plain data."""
        return {}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave. Raises `ValueError` if it does not fit."""
