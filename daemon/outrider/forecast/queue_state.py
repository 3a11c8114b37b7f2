"""What is known of a site at one moment: what runs, what waits, and what came lately."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Jobs:
    """Columns of jobs, as their users submitted them.

    Attributes:
        cpus: (jobs,) CPUs, >= 1.
        estimate_s: (jobs,) run time that the scheduler reckons with, seconds; nan: none.
        request_s: (jobs,) run time that the user asked for, seconds; nan: none.
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
    """A site at a moment.

    Attributes:
        now_s: the moment, seconds.
        week_second: the same on the site's wall clock: seconds since Monday, 00:00.
        free_cpus: CPUs that nobody uses.
        total_cpus: CPUs of the site.
        running: what runs.
        since_s: (running,) when each began.
        waiting: what waits, in the order of the queue.
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
    """Jobs that came in the recent past, in order; what comes is drawn from them in whole days.

    Attributes:
        since_s: from when on they are known.
        submit_s: (arrivals,) when each came, ascending, none later than the state's moment.
        cpus: (arrivals,) CPUs.
        estimate_s: (arrivals,) run time that the scheduler reckons with, seconds; nan: none.
        run_s: (arrivals,) run time, seconds; nan where `job` is not -1.
        job: (arrivals,) place of those that have not ended among running and then waiting jobs of
            the state, whose drawn run time is taken; -1: ended.
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
"""Where nothing came, or nothing is known of it."""
