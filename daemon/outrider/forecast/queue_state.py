"""State of a site at one moment: running jobs, waiting jobs, and recent arrivals."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Jobs:
    """Columns of jobs, as submitted by their users.

    Attributes:
        cpus: (jobs,) CPUs, >= 1.
        estimate_s: (jobs,) run time estimate that the scheduler uses, seconds; nan: none.
        request_s: (jobs,) run time that the user requested, seconds; nan: none.
        groups: (jobs, levels) their groups in the history of run times, the narrowest first:
            `RunTimeHistory.groups_of`.
    """

    cpus: Ints
    estimate_s: Floats
    request_s: Floats
    groups: Ints

    def __len__(self) -> int:
        return len(self.cpus)


@dataclass(frozen=True)
class QueueState:
    """Running and waiting jobs of a site at a moment.

    Attributes:
        now_s: the moment, seconds.
        week_second: the same on the site's wall clock: seconds since Monday, 00:00.
        free_cpus: number of free CPUs.
        total_cpus: CPUs of the site.
        running: running jobs.
        since_s: (running,) start of each.
        waiting: waiting jobs, in the order of the queue.
        lost_s: (waiting,) the longest run that each lost, seconds; it will run for longer. Empty:
            none lost any.
    """

    now_s: float
    week_second: float
    free_cpus: int
    total_cpus: int
    running: Jobs
    since_s: Floats
    waiting: Jobs
    lost_s: Floats = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class RecentArrivals:
    """Jobs that arrived recently, in order; coming ones are drawn from them in whole days.

    Attributes:
        since_s: begin of the known period.
        submit_s: (arrivals,) times of submission, ascending, none after the state's moment.
        cpus: (arrivals,) CPUs.
        estimate_s: (arrivals,) run time estimate that the scheduler uses, seconds; nan: none.
        run_s: (arrivals,) run time, seconds; nan where `job` is not -1.
        job: (arrivals,) index of those that have not ended among running and then waiting jobs of
            the state, whose drawn run time is used; -1: ended.
    """

    since_s: float
    submit_s: Floats
    cpus: Ints
    estimate_s: Floats
    run_s: Floats
    job: Ints


NO_ARRIVALS = RecentArrivals(
    np.inf, np.empty(0), np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0, np.int64)
)
"""Recent arrivals where there are none, or none are known."""
