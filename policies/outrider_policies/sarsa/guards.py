"""Yielding guards: who has waited too long comes first, whatever the values say."""

from math import inf
from typing import Final, NamedTuple

import numpy as np

from outrider_policies.sarsa.job_features import Asks
from outrider_policies.sarsa.mean_runs import MeanRuns

INTERACTIVE: Final = "waited_interactive"
BATCH: Final = "waited_batch"


class Guards(NamedTuple):
    """How long jobs wait before values yield, in seconds.

    Without them there are two equilibria (jobs do not tell how long they have waited): once
    interactive jobs wait long, their utility is near 0 and long batch jobs are worth more.
    """

    interactive_s: float = inf
    batch_s: float = inf

    @classmethod
    def of(
        cls, interactive_s: float, batch_ratio: float, usual_s: float, runs: MeanRuns
    ) -> "Guards":
        """Those of a site whose runs are so long, and where batch jobs wait `usual_s` anyway."""
        return cls(interactive_s, max(batch_ratio * runs.run_s, usual_s) if runs.is_known else inf)

    def first(self, asks: Asks, now: float) -> tuple[int, str] | None:
        """Whose turn it is, by row, and why: the oldest interactive job that waited too long.

        If no interactive job waits at all, the oldest batch job that did. None: values decide.
        """
        interactive = asks.interactive
        if interactive.any():
            who, limit_s, reason = interactive, self.interactive_s, INTERACTIVE
        else:
            who, limit_s, reason = ~interactive, self.batch_s, BATCH
        oldest = int(np.where(who, asks.submit_s, inf).argmin())
        return (oldest, reason) if now - asks.submit_s[oldest] > limit_s else None
