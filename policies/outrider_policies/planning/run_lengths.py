"""How long jobs run, as far as anybody said or was seen: what utilities are reckoned from."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job

Floats = NDArray[np.float64]

SHORTEST_S: Final = 1e-3
"""What no time at all is taken for: utility a second has to be a number."""


class RunLengths:
    """Ideal run times: the estimate where there is one, else the mean of such jobs seen so far.

    Nothing here is taken from jobs that have not come yet: the longest length, where it is not
    given, is the longest seen.
    """

    def __init__(self, assumed_s: float, longest_s: float | None) -> None:
        """Begin.

        Args:
            assumed_s: length of a job without estimate, until one of them completed.
            longest_s: the longest length there is; None: the longest seen so far.
        """
        self._assumed_s = assumed_s
        self._given_s = longest_s
        self._longest_seen_s = 0.0
        self._runs_n = 0
        self._total_s = 0.0

    @property
    def longest_s(self) -> float:
        """The longest length there is, or was seen; seconds, > 0."""
        return self._given_s or self._longest_seen_s or self._assumed_s

    @property
    def typical_s(self) -> float:
        """What a job without estimate is taken for, seconds."""
        mean_s = self._total_s / self._runs_n if self._runs_n else self._assumed_s
        return max(mean_s, SHORTEST_S)

    def ideal_s(self, job: Job) -> float:
        """Run time of a job on all the CPUs it asks for, seconds, > 0."""
        estimate_s = job.spec.estimate_s
        return self.typical_s if estimate_s is None else max(estimate_s, SHORTEST_S)

    def of_queue(self, estimate_s: Floats) -> Floats:
        """Ideal run times of waiting jobs from their estimates, nan where nobody said."""
        if len(estimate_s):
            longest_s = float(np.fmax.reduce(estimate_s))
            if longest_s > self._longest_seen_s:
                self._longest_seen_s = longest_s
        known_s = np.maximum(estimate_s, SHORTEST_S)
        return np.where(np.isnan(estimate_s), self.typical_s, known_s)

    def completed(self, run_s: float) -> None:
        """A job without estimate completed after so many seconds."""
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
