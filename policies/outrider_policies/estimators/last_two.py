"""Estimator ``last_two``: the mean of the user's last two run times (Tsafrir et al.)."""

import random
from typing import Any, ClassVar

from outrider.api import Job, JobSpec, PolicySettings, RunTimeEstimate, RunTimeEstimator


class LastTwoRunTimes(RunTimeEstimator):
    """Mean of the last two jobs of the user that ended, at most what the user asks for.

    Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user
    runtime estimates", IEEE TPDS 18(6), 2007, section 3. Of a user without a past: the request, if
    there is one. It has no range: all three quantiles are the same.
    """

    name: ClassVar[str] = "last_two"
    description: ClassVar[str] = "Mean of the user's last two run times (Tsafrir et al. 2007)."
    api_version = 1

    def __init__(self, settings: PolicySettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self._last_s: dict[str, list[float]] = {}

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        """The mean; None for a user without a past who asks for nothing."""
        last_s = self._last_s.get(spec.user)
        expected_s = sum(last_s) / len(last_s) if last_s else spec.estimate_s
        if expected_s is None:
            return None
        if spec.estimate_s is not None:
            expected_s = min(expected_s, spec.estimate_s)
        return RunTimeEstimate(expected_s, expected_s, expected_s)

    def learn(self, job: Job, run_s: float, now: float) -> None:
        """Remember it in place of the last but one."""
        self._last_s[job.spec.user] = [*self._last_s.get(job.spec.user, ())[-1:], run_s]

    def save(self) -> dict[str, Any]:
        """The run times, by user."""
        return {"last_s": self._last_s}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._last_s = {user: list(last_s) for user, last_s in saved["last_s"].items()}
