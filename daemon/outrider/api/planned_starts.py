"""When a batch system itself expects its waiting jobs to start."""

from collections.abc import Mapping

import msgspec


class PlannedStarts(msgspec.Struct, frozen=True):
    """The plan of a batch system that makes one (``squeue --start``), as of one look.

    It is no event: it is made anew every half a minute, for thousands of jobs, and no decision
    depends on it. Expected starts of Outrider's own are held against it.

    Attributes:
        asked_s: when the batch system was asked, Unix seconds.
        starts_s: when each job is to start, Unix seconds, by its name as in the adapter's events.
            A job that the plan does not hold is left out.
    """

    asked_s: float
    starts_s: Mapping[str, float] = {}
