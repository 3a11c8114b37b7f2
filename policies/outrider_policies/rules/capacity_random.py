"""Random in proportion to capacity: a baseline that knows CPUs and speeds only."""

from typing import Any

import numpy as np

from outrider.api import NO_MACHINE, NOWHERE, Choice, Job, Policy, SiteView


class CapacityRandom(Policy):
    """The oldest job goes to a free machine drawn with probability proportional to its capacity.

    Capacity is CPUs x speed. In the long run every machine gets work in proportion, whatever its
    queue is now: a baseline for schedulers that learn capacities from experience.
    """

    name = "capacity_random"
    description = "oldest job first, on a free machine drawn in proportion to its capacity"
    api_version = 1
    features = ("cpus",)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """A machine with enough CPUs left; the propensity is that of its cluster."""
        cpus = job.spec.cpus
        machines = [machine for machine in view.free_since if view.cpus_left(machine) >= cpus]
        if not machines:
            return Choice(NOWHERE, NO_MACHINE)
        capacities = np.array([view.cpus_of(m) * view.speed_of(m) for m in machines])
        sums = np.cumsum(capacities)
        at = int(np.searchsorted(sums, self.rng.random() * sums[-1], side="right"))
        machine = machines[min(at, len(machines) - 1)]
        cluster = view.cluster_of(machine)
        here = [view.cluster_of(each) == cluster for each in machines]
        return Choice(machine, "capacity", float(capacities[here].sum() / sums[-1]))

    def explain(self, job: Job, view: SiteView) -> str:
        """How the machine is chosen."""
        return "a free machine is drawn, a fast one with more CPUs more often"
