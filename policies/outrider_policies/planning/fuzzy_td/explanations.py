"""Explanations of the alternatives that were considered for a job."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job, SiteView
from outrider_policies.planning.explanations import what_it_waits_for
from outrider_policies.planning.forcing import FORCED, Candidates


class Considered(NamedTuple):
    """Candidates for one machine in the last pass, and the value of its state with each.

    Attributes:
        how: `FORCED` or `SHRUNK`.
        jobs: the queued jobs, by row.
        candidates: the candidates.
        values: V1 or V2 of each.
        present: V0, the value without any.
    """

    how: str
    jobs: Sequence[Job]
    candidates: Candidates
    values: NDArray[np.float64]
    present: float

    def of(self, job: Job) -> tuple[float, int, int] | None:
        """(value with this job, its CPUs, runs it would preempt); None: not a candidate."""
        for at, row in enumerate(self.candidates.rows.tolist()):
            if self.jobs[row] is job:
                preempted = int(self.candidates.preempted_n[at])
                return float(self.values[at]), int(self.candidates.cpus[at]), preempted
        return None


def why_it_waits(job: Job, considered_in_pass: Iterable[Considered], view: SiteView) -> str:
    """One sentence: the best alternative for a queued job, compared with no change."""
    found_for = [
        (considered, entry)
        for considered in considered_in_pass
        if (entry := considered.of(job)) is not None
    ]
    waits_for = what_it_waits_for(job, view)
    if not found_for:
        return f"{waits_for}; in the last pass nothing else could be done for it"
    considered, (value, cpus, preempted) = max(
        found_for, key=lambda pair: pair[1][0] - pair[0].present
    )
    action = (
        f"preempting {preempted} for it" if considered.how == FORCED else f"shrinking it to {cpus}"
    )
    change = f"from {considered.present:.3f} to {value:.3f}"
    text = f"{waits_for}; {action} would bring the machine's value {change}"
    if value > considered.present:
        return f"{text}, but another job brought it higher"
    return f"{text}: it gets its place once that is the higher one"
