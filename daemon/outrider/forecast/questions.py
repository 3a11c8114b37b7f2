"""Questions about waiting jobs, with the replicates' quantiles and the actual waits."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.forecast.queue_state import Floats, Ints

LEVELS: Final = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Quantiles of the replicates that are kept."""
LOW, MEDIAN, HIGH = 1, 3, 5
"""Indices of the bounds of the 80 % interval, and of its median, in `LEVELS`."""
FEATURES: Final = (
    "waited_s", "cpus", "request_s", "ahead", "ahead_cpus", "ahead_work_s", "free_cpus",
    "running_new", "ahead_new", "hour", "weekday",
)  # fmt: skip
"""Further features of a question besides the quantiles.

Time waited, request, number, CPUs and estimated work of the jobs before it, free CPUs, the share of
new users in running and waiting jobs, and the clock."""


@dataclass(frozen=True)
class Questions:
    """Table of questions, one row each, in the order of time.

    Attributes:
        job: number of the job.
        asked_s: time of the question, seconds of the log's clock.
        at_submission: whether the job came at that moment; else it is a full hour.
        quantiles_s: (questions, levels) of the wait from that moment on, by the replicates.
        known: (questions, features) further information at that moment.
        wait_s: the actual wait from then on; inf: the job never started.
    """

    job: Ints
    asked_s: Floats
    at_submission: NDArray[np.bool_]
    quantiles_s: Floats
    known: Floats
    wait_s: Floats

    def __len__(self) -> int:
        return len(self.job)

    @property
    def answer_s(self) -> Floats:
        """Time at which each answer was known: the job's start."""
        return self.asked_s + self.wait_s

    def only(self, rows: NDArray[np.bool_]) -> "Questions":
        """Return the questions of a mask."""
        return self.at(rows.nonzero()[0])

    def at(self, rows: Ints) -> "Questions":
        """Return the questions of these rows."""
        return Questions(
            self.job[rows], self.asked_s[rows], self.at_submission[rows], self.quantiles_s[rows],
            self.known[rows], self.wait_s[rows],
        )  # fmt: skip
