"""CPUs in use over time, by what became of the runs."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

BINS: Final = 120
"""Equal parts of a window."""
WINDOWS: Final = {"1h": 3_600.0, "24h": 86_400.0, "7d": 7 * 86_400.0, "all": float("inf")}
"""Seconds before now, by their names; all: since the oldest run that is kept, or read."""

Floats = NDArray[np.float64]


class Run(NamedTuple):
    """A run that has ended, or goes on (`end_s` is now then, and `fate` ``open``)."""

    start_s: float
    end_s: float
    cpus: int
    fate: str


FATES: Final = ("completed", "thrown_away", "open")


def use_over_time(runs: Sequence[Run], begin_s: float, end_s: float) -> dict[str, Any]:
    """CPUs in use, the mean of each part of a window, and starts.

    Args:
        runs: all that have a part in it; suspended stretches count as use.
        begin_s: of the window, event time.
        end_s: of it; later than `begin_s`.

    Returns:
        ``time_s`` (BINS,) where each part begins; for each of `FATES` ``cpus`` (BINS,); ``starts``
        (BINS,) how many runs began in each part.
    """
    edges = np.linspace(begin_s, end_s, BINS + 1)
    width_s = float(edges[1] - edges[0])
    start_s = np.array([run.start_s for run in runs], dtype=np.float64)
    stop_s = np.array([run.end_s for run in runs], dtype=np.float64)
    cpus = np.array([run.cpus for run in runs], dtype=np.float64)
    fates = np.array([run.fate for run in runs], dtype=object)
    return {
        "time_s": edges[:-1].tolist(),
        "cpus": {
            fate: (np.diff(_used(edges, start_s[at], stop_s[at], cpus[at])) / width_s).tolist()
            for fate in FATES
            for at in [fates == fate]
        },
        "starts": np.histogram(start_s, edges)[0].tolist(),
    }


def _used(at_s: Floats, start_s: Floats, stop_s: Floats, cpus: Floats) -> Floats:
    """(moments,) CPU-seconds used up to each moment: begun less not yet ended."""
    return _passed(at_s, start_s, cpus) - _passed(at_s, stop_s, cpus)


def _passed(at_s: Floats, since_s: Floats, cpus: Floats) -> Floats:
    """(moments,) CPU-seconds of CPUs that are used from given moments on, up to each."""
    order = np.argsort(since_s)
    since_s, cpus = since_s[order], cpus[order]
    n = np.searchsorted(since_s, at_s, side="right")
    so_many = np.concatenate([[0.0], np.cumsum(cpus)])[n]
    # times count from the first moment, or a year of many jobs would cost the last digits
    begun = np.concatenate([[0.0], np.cumsum(cpus * (since_s - at_s[0]))])[n]
    used: Floats = so_many * (at_s - at_s[0]) - begun
    return used
