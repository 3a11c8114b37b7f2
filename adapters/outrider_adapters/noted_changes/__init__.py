"""Changes of jobs in batch systems that have one attribute for Outrider and the user.

What stood there before is noted in the adapter's undo log, then the change is made, then it is read
back.
"""

from outrider_adapters.noted_changes.begin_times import (
    GONE,
    BeginTimes,
    Change,
    GivenUpError,
    Plan,
    Waiting,
    before_of,
    carry_out,
    is_own,
)
from outrider_adapters.noted_changes.pace import Pace

__all__ = [
    "GONE",
    "BeginTimes",
    "Change",
    "GivenUpError",
    "Pace",
    "Plan",
    "Waiting",
    "before_of",
    "carry_out",
    "is_own",
]
