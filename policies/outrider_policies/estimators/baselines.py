"""Baseline estimators: the requested run time, and the mean of the user's last two."""

import random
from typing import Any, ClassVar, Final

from outrider.api import Job, JobSpec, PolicySettings, RunTimeEstimate, RunTimeEstimator

# -- requested -------------------------------------------------------------------------------------
# Estimator ``user``: the requested run time, the baseline for other estimators.


class UserRunTimes(RunTimeEstimator):
    """The requested run time, without a range; no estimate if none was requested."""

    name: ClassVar[str] = "user"
    description: ClassVar[str] = "What the user requested; learns nothing."
    api_version = 1

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        """Return the requested time for all three quantiles."""
        if spec.estimate_s is None:
            return None
        return RunTimeEstimate(spec.estimate_s, spec.estimate_s, spec.estimate_s)

    def learn(self, job: Job, run_s: float, now: float) -> None:
        """Do nothing: this estimator does not learn."""


# -- last two --------------------------------------------------------------------------------------
# Estimator ``last_two``: the mean of the user's last two run times (Tsafrir et al.).

MAX_USERS: Final = 20_000
"""Users who are remembered; the one whose job ended longest ago is forgotten first."""


class LastTwoRunTimes(RunTimeEstimator):
    """Mean run time of the user's last two completed jobs, at most the requested time.

    Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user
    runtime estimates", IEEE TPDS 18(6), 2007, section 3. For a user without completed jobs: the
    request, if there is one. There is no range: all three quantiles are equal.
    """

    name: ClassVar[str] = "last_two"
    description: ClassVar[str] = "Mean of the user's last two run times (Tsafrir et al. 2007)."
    api_version = 1

    def __init__(self, settings: PolicySettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self._last_s: dict[str, list[float]] = {}

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        """Return the mean; None for a user without completed jobs who requests no time."""
        last_s = self._last_s.get(spec.user)
        expected_s = sum(last_s) / len(last_s) if last_s else spec.estimate_s
        if expected_s is None:
            return None
        if spec.estimate_s is not None:
            expected_s = min(expected_s, spec.estimate_s)
        return RunTimeEstimate(expected_s, expected_s, expected_s)

    def learn(self, job: Job, run_s: float, now: float) -> None:
        """Store this run time and the one before."""
        user = job.spec.user
        self._last_s[user] = [*self._last_s.pop(user, ())[-1:], run_s]  # the most recent is last
        if len(self._last_s) > MAX_USERS:
            del self._last_s[next(iter(self._last_s))]

    def save(self) -> dict[str, Any]:
        """Return the run times, by user."""
        return {"last_s": self._last_s}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned."""
        self._last_s = {user: list(last_s) for user, last_s in saved["last_s"].items()}
