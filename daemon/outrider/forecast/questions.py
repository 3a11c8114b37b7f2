"""Questions about waiting jobs, with what the replicates said and what came of it."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.forecast.queue_state import Floats, Ints

LEVELS: Final = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Quantiles that are kept of the replicates."""
LOW, MEDIAN, HIGH = 1, 3, 5
"""Places of the bounds of the 80 % interval, and of its median, in `LEVELS`."""
FEATURES: Final = (
    "waited_s", "cpus", "request_s", "ahead", "ahead_cpus", "ahead_work_s", "free_cpus",
    "running_new", "ahead_new", "hour", "weekday",
)  # fmt: skip
"""What else was known: how long it has waited, what it asks for, jobs, CPUs and estimated work
before it, CPUs that are free, the share of new users in what runs and waits, and the clock."""


@dataclass(frozen=True)
class Questions:
    """One row a question, in the order in which they were asked.

    Attributes:
        job: number of the job.
        asked_s: when, seconds of the log's clock.
        at_submission: it came at that moment; else it is asked at a full hour.
        quantiles_s: (questions, levels) of the wait from that moment on, by the replicates.
        known: (questions, features) what else was known then.
        wait_s: how long it did wait from then on; inf: it never started.
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
        """When the answer was seen: the job's start."""
        return self.asked_s + self.wait_s

    def only(self, rows: NDArray[np.bool_]) -> "Questions":
        """Those of a mask."""
        return self.at(rows.nonzero()[0])

    def at(self, rows: Ints) -> "Questions":
        """Those of these rows."""
        return Questions(
            self.job[rows], self.asked_s[rows], self.at_submission[rows], self.quantiles_s[rows],
            self.known[rows], self.wait_s[rows],
        )  # fmt: skip
