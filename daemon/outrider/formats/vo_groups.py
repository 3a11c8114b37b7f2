"""Small VOs as one: so that fairness over a hundred of them says something."""

from typing import Final

import numpy as np

from outrider.formats.workload import Floats

OTHER: Final = "other"
"""The VO that takes the place of all those below the share."""


def grouped(vo: list[str], asked_cpu_s: Floats, below_ratio: float) -> list[str]:
    """VOs, with those below a share of all that was asked for as one.

    Args:
        vo: (jobs,) names.
        asked_cpu_s: (jobs,) CPU-seconds that users asked for (`asked_work`): what jobs really
            took would tell policies, by the name of the VO, what nobody could know.
        below_ratio: VOs with strictly less of the sum become `OTHER`; 0: none do.

    >>> grouped(["a", "b", "c"], np.array([8.0, 1.0, 1.0]), 0.2)
    ['a', 'other', 'other']
    """
    names, of_job = np.unique(np.array(vo, dtype=object).astype(str), return_inverse=True)
    asked = np.bincount(of_job, weights=asked_cpu_s, minlength=len(names))
    small = set(names[asked < below_ratio * asked.sum()].tolist())
    return [OTHER if name in small else name for name in vo]


def asked_work(requested_s: Floats, cpus: Floats) -> Floats:
    """(jobs,) CPU-seconds asked for; a job without a request counts as the mean of the others.

    Args:
        requested_s: (jobs,) seconds; nan: nothing was requested.
        cpus: (jobs,) CPUs.
    """
    known = ~np.isnan(requested_s)
    typical_s = float(requested_s[known].mean()) if known.any() else 1.0
    work: Floats = np.where(known, requested_s, typical_s) * cpus
    return work
