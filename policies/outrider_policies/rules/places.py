"""What several orders share: positions in the queue, and machines that are taken without a rank."""

import random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import NO_MACHINE, NOWHERE, Choice, Job, SiteView

LAST: Final = 1e300
"""Position of jobs that come after all others; finite: those at one place come by age."""


def longest_free(job: Job, view: SiteView, reason: str) -> Choice:
    """The machine that has been free the longest; for several CPUs the one they fit tightest.

    `NOWHERE` if the job fits on no free machine, else a start with the given reason.
    """
    cpus = job.spec.cpus
    machine = view.longest_free() if cpus == 1 else view.tightest(cpus)
    if machine == NOWHERE:
        return Choice(NOWHERE, NO_MACHINE, 1.0)
    return Choice(machine, reason, 1.0)


def any_free(view: SiteView, rng: random.Random) -> Choice:
    """A free machine drawn uniformly over the site; the propensity is that of its cluster."""
    machine = view.draw(rng)
    cluster = view.cluster_of(machine)
    return Choice(machine, "random", view.free_n[cluster] / view.free_total)


def places_by(*keys: NDArray[np.float64]) -> NDArray[np.float64]:
    """Positions from 0: by the first key, equals by the next, and so on; then by age.

    Args:
        keys: (jobs,) each; the least comes first.
    """
    in_order = np.lexsort(keys[::-1])
    places = np.empty(len(in_order))
    places[in_order] = np.arange(len(in_order))
    return places


def cpus_of_site(view: SiteView) -> int:
    """CPUs that are there, free or not; at least one."""
    return max(1, view.open_cpus)
