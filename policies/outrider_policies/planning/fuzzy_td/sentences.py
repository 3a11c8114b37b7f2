"""What was weighed for a job, in one sentence."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job, SiteView
from outrider_policies.planning.forcing import FORCED, Candidates
from outrider_policies.planning.sentences import what_it_waits_for


class Weighed(NamedTuple):
    """Candidates of one machine in the last round, and what its state was worth with each.

    Attributes:
        how: `FORCED` or `SHRUNK`.
        jobs: of the rows.
        candidates: those weighed.
        values: V1 or V2 of each.
        present: V0.
    """

    how: str
    jobs: Sequence[Job]
    candidates: Candidates
    values: NDArray[np.float64]
    present: float

    def of(self, job: Job) -> tuple[float, int, int] | None:
        """The value with this job, its CPUs, and how many it would preempt; None: not weighed."""
        for at, row in enumerate(self.candidates.rows.tolist()):
            if self.jobs[row] is job:
                preempted = int(self.candidates.preempted_n[at])
                return float(self.values[at]), int(self.candidates.cpus[at]), preempted
        return None


def why_it_waits(job: Job, weighed: Iterable[Weighed], view: SiteView) -> str:
    """The best that could be done for a waiting job, against leaving things as they are."""
    told = [(one, found) for one in weighed if (found := one.of(job)) is not None]
    asks = what_it_waits_for(job, view)
    if not told:
        return f"{asks}; in the last round nothing else could be done for it"
    one, (value, cpus, preempted) = max(told, key=lambda pair: pair[1][0] - pair[0].present)
    deed = f"preempting {preempted} for it" if one.how == FORCED else f"shrinking it onto {cpus}"
    change = f"from {one.present:.3f} to {value:.3f}"
    weighed_up = f"{asks}; {deed} would bring the machine's value {change}"
    if value > one.present:
        return f"{weighed_up}, but another job brought it higher"
    return f"{weighed_up}: it gets its place once that is the higher one"
