"""Waits by true run time: for reports, when a run is over; nobody who decides is told."""

from typing import Any

import numpy as np

from outrider.engine.accounting.distribution import Distribution, summary
from outrider.formats.workload import Floats


def waits_by_length(waits_s: Floats, run_s: Floats, short_below_s: float) -> dict[str, Any]:
    """``wait_s.by_length`` of a report.

    Args:
        waits_s: (jobs,) seconds from submission to start; inf: never started, nan: not submitted.
        run_s: (jobs,) true run times, seconds.
        short_below_s: jobs that run strictly less are short.

    Returns:
        A `summary` of ``short`` and of ``long``; jobs that never started are counted as censored.
    """
    short = run_s < short_below_s
    parts = {}
    for name, mask in (("short", short), ("long", ~short)):
        waits = Distribution(exact=True)
        waits.extend(waits_s[mask & np.isfinite(waits_s)])
        parts[name] = summary([waits], int((mask & np.isinf(waits_s)).sum()))
    return parts
