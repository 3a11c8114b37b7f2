"""Least loaded: the machine with the least work in relation to its capacity."""

from math import inf
from typing import Any

from outrider.api import NO_MACHINE, NOWHERE, Choice, Job, Policy, SiteView


class LeastLoaded(Policy):
    """The oldest job goes to the machine of least load.

    Load is used CPUs over CPUs x speed; for machines with local queues, queue length over speed.
    Ties are drawn. It looks at every free machine for every job, and knows the true speeds and
    queues: a baseline for learners that know neither.
    """

    name = "least_loaded"
    description = "oldest job first, on the machine of least load for its capacity"
    api_version = 1
    features = ("cpus",)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """One of the machines of least load that have enough CPUs left."""
        cpus, least = job.spec.cpus, inf
        ties: list[int] = []
        for machine in view.free_since:
            left = view.cpus_left(machine)
            if left < cpus:
                continue
            load = _load(machine, left, view)
            if load < least:
                least, ties = load, [machine]
            elif load == least:
                ties.append(machine)
        if not ties:
            return Choice(NOWHERE, NO_MACHINE)
        machine = ties[int(self.rng.random() * len(ties))]
        cluster = view.cluster_of(machine)
        here = sum(view.cluster_of(each) == cluster for each in ties)
        return Choice(machine, "least_loaded", here / len(ties))

    def explain(self, job: Job, view: SiteView) -> str:
        """The least load now."""
        cpus = job.spec.cpus
        loads = [
            _load(machine, view.cpus_left(machine), view)
            for machine in view.free_since
            if view.cpus_left(machine) >= cpus
        ]
        if not loads:
            return f"no machine has {cpus} CPUs left"
        return f"goes where the fewest CPUs are taken for the capacity: {min(loads):.3g} now"


def _load(machine: int, left: int, view: SiteView) -> float:
    cpus = view.cpus_of(machine)
    return (cpus - left) / (cpus * view.speed_of(machine))
