"""Ideal run times for utilities: estimates, or the mean of completed runs."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job

Floats = NDArray[np.float64]

SHORTEST_S: Final = 1e-3
"""Least run time, seconds: utility per second must be finite."""


class RunLengths:
    """Ideal run times: the estimate if there is one, else the mean of completed jobs without one.

    Nothing depends on future jobs: the longest length, if not given, is the longest seen so far.
    """

    def __init__(self, assumed_s: float, longest_s: float | None) -> None:
        """Begin.

        Args:
            assumed_s: length of a job without estimate, until one of them has completed.
            longest_s: the longest possible length, seconds; None: the longest seen so far.
        """
        self._assumed_s = assumed_s
        self._given_s = longest_s
        self._longest_seen_s = 0.0
        self._runs_n = 0
        self._total_s = 0.0

    @property
    def longest_s(self) -> float:
        """The longest length, given or seen; seconds, > 0."""
        return self._given_s or self._longest_seen_s or self._assumed_s

    @property
    def typical_s(self) -> float:
        """Length assumed for a job without estimate, seconds."""
        mean_s = self._total_s / self._runs_n if self._runs_n else self._assumed_s
        return max(mean_s, SHORTEST_S)

    def ideal_s(self, job: Job) -> float:
        """Run time of a job on all requested CPUs, seconds, > 0."""
        estimate_s = job.spec.estimate_s
        return self.typical_s if estimate_s is None else max(estimate_s, SHORTEST_S)

    def of_queue(self, estimate_s: Floats) -> Floats:
        """(n,) ideal run times of queued jobs from their (n,) estimates, nan: no estimate."""
        if len(estimate_s):
            longest_s = float(np.fmax.reduce(estimate_s))
            if longest_s > self._longest_seen_s:
                self._longest_seen_s = longest_s
        return self.of_jobs(estimate_s)

    def of_jobs(self, estimate_s: Floats) -> Floats:
        """(n,) ideal run times of jobs from their (n,) estimates, nan: no estimate."""
        ideal_s: Floats = np.maximum(estimate_s, SHORTEST_S)
        unknown = np.isnan(ideal_s)
        if np.count_nonzero(unknown):
            ideal_s[unknown] = self.typical_s
        return ideal_s

    def completed(self, run_s: float) -> None:
        """Count the completion of a job without estimate after so many seconds."""
        self._runs_n += 1
        self._total_s += run_s
        self._longest_seen_s = max(self._longest_seen_s, run_s)

    def save(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "longest_seen_s": self._longest_seen_s,
            "runs_n": self._runs_n,
            "total_s": self._total_s,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._longest_seen_s = float(saved["longest_seen_s"])
        self._runs_n = int(saved["runs_n"])
        self._total_s = float(saved["total_s"])
