"""Starvation guards: a job that has waited too long comes first, regardless of its value."""

from math import inf
from typing import Final, NamedTuple

import numpy as np

from outrider_policies.sarsa.job_features import JobColumns, MeanRuns

INTERACTIVE: Final = "waited_interactive"
BATCH: Final = "waited_batch"


class Guards(NamedTuple):
    """Limits of the wait, in seconds, above which a job comes first.

    The wait is not a feature of a job, so without guards there is a second equilibrium: once
    interactive jobs wait long, their utility is near 0 and long batch jobs have more.
    """

    interactive_s: float = inf
    batch_s: float = inf

    @classmethod
    def of(
        cls, interactive_s: float, batch_ratio: float, usual_s: float, runs: MeanRuns
    ) -> "Guards":
        """Return guards for mean run times; batch jobs may wait at least `usual_s`, the backlog."""
        return cls(interactive_s, max(batch_ratio * runs.run_s, usual_s) if runs.is_known else inf)

    def first(self, jobs: JobColumns, now: float) -> tuple[int, str] | None:
        """Return the row of the job that must come first, and the reason; None: values decide.

        That is the oldest interactive job if it waited too long. If no interactive job is queued,
        it is the oldest batch job if that waited too long.
        """
        interactive = jobs.interactive
        if interactive.any():
            candidates, limit_s, reason = interactive, self.interactive_s, INTERACTIVE
        else:
            candidates, limit_s, reason = ~interactive, self.batch_s, BATCH
        oldest = int(np.where(candidates, jobs.submit_s, inf).argmin())
        return (oldest, reason) if now - jobs.submit_s[oldest] > limit_s else None
