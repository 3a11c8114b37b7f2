"""The hour that the end of summer time repeats: a clock that names no zone shows it twice."""

import datetime as dt
from typing import Final

LATE_S: Final = 5.0
"""Records of several writers may stand this much out of order; what stands further back than the
record before it was written in the second of two such hours."""


def again_s(there: dt.datetime) -> float | None:
    """When a clock shows this for the second time, in Unix seconds; None if it shows it once."""
    first_s, second_s = there.timestamp(), there.replace(fold=1).timestamp()
    return second_s if second_s > first_s else None
