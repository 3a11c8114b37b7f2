"""Estimator ``user``: the requested run time, the baseline for other estimators."""

from typing import ClassVar

from outrider.api import Job, JobSpec, RunTimeEstimate, RunTimeEstimator


class UserRunTimes(RunTimeEstimator):
    """The requested run time, without a range; no estimate if none was requested."""

    name: ClassVar[str] = "user"
    description: ClassVar[str] = "What the user asked for; learns nothing."
    api_version = 1

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        """The request, for all three quantiles."""
        if spec.estimate_s is None:
            return None
        return RunTimeEstimate(spec.estimate_s, spec.estimate_s, spec.estimate_s)

    def learn(self, job: Job, run_s: float, now: float) -> None:
        """Nothing is learned."""
